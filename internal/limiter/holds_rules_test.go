package limiter_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"cellserver/internal/base/zones"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/limiter/window"
)

const (
	heldT0  = int64(1_700_000_000_000_000_000)
	heldSec = int64(time.Second)
	heldMs  = int64(time.Millisecond)
	heldDay = int64(24 * time.Hour)
)

// identity is what a rule's state is known by.
type identity struct {
	kind      limiter.Kind
	name      string // "" for a plain funnel
	periodSec int64
	every     calendar.Every
	zone      string
}

// identities are at most as many as a key keeps states of rules.
var identities = []identity{
	{kind: limiter.Funnel, periodSec: 10},
	{kind: limiter.Funnel, periodSec: 3600},
	{kind: limiter.Funnel, name: "bucket", periodSec: 60},
	{kind: limiter.Funnel, name: "slow bucket", periodSec: 86_400},
	{kind: limiter.FixedWindow, name: "window", periodSec: 10},
	{kind: limiter.FixedWindow, name: "long window", periodSec: 3600},
	{kind: limiter.ApproxWindow, name: "approximate", periodSec: 10},
	{kind: limiter.ApproxWindow, name: "long approximate", periodSec: 3600},
	{kind: limiter.Quota, name: "minute", every: calendar.Minute},
	{kind: limiter.Quota, name: "day", every: calendar.Day, zone: "America/New_York"},
	{kind: limiter.Quota, name: "month", every: calendar.Month, zone: "Europe/Berlin"},
	{kind: limiter.SlidingWindow, name: "exact", periodSec: 10},
}

// heldRule is a rule with its numbers.
type heldRule struct {
	limiter.NamedRule
	identity
	id         string
	capacity   int64
	intervalNs int64 // of a funnel
	periodNs   int64 // of a window
	zoneOf     *time.Location
}

func (r *heldRule) isFunnel() bool { return r.kind == limiter.Funnel }

func (r *heldRule) toleranceNs() int64 { return r.capacity * r.intervalNs }

// boundaryNs returns the end of the calendar's window.
func (r *heldRule) boundaryNs(nowNs int64) int64 {
	now := time.Unix(0, nowNs).In(r.zoneOf)
	year, month, day := now.Date()
	switch r.every {
	case calendar.Minute:
		return now.Truncate(time.Minute).Add(time.Minute).UnixNano()
	case calendar.Day:
		return time.Date(year, month, day+1, 0, 0, 0, 0, r.zoneOf).UnixNano()
	default:
		return time.Date(year, month+1, 1, 0, 0, 0, 0, r.zoneOf).UnixNano()
	}
}

// class is what a run of the model has besides the base.
type class struct {
	rates   bool // rules that change how fast funnels leak
	periods bool // the same windows with other periods
	refunds bool
	huge    bool // units of up to 2^40
}

func (c class) String() string {
	return fmt.Sprintf("rates %t, periods %t, refunds %t, huge %t", c.rates, c.periods, c.refunds, c.huge)
}

// heldArtist draws rules and units.
type heldArtist struct {
	*rand.Rand
	t *testing.T
	class
	calendars *calendar.Set
	counts    []int64 // by identity, where rates do not change
}

func newHeldArtist(t *testing.T, rng *rand.Rand, c class) *heldArtist {
	a := &heldArtist{Rand: rng, t: t, class: c, calendars: calendar.NewSet(&calendar.Wall{}, zones.Load)}
	for i := range identities {
		a.counts = append(a.counts, a.count(&identities[i]))
	}
	return a
}

func pick[T any](rng *rand.Rand, of []T) T { return of[rng.IntN(len(of))] }

func (a *heldArtist) often(percent int) bool { return a.IntN(100) < percent }

func (a *heldArtist) count(of *identity) int64 {
	if a.huge {
		return of.periodSec * heldSec / (1 + a.Int64N(1000))
	}
	return 1 + a.Int64N(50)
}

// rule draws the numbers of a rule.
func (a *heldArtist) rule(i int) heldRule {
	of := identities[i]
	capacity := 1 + a.Int64N(40)
	if a.huge {
		capacity = 1 + a.Int64N(1<<40)
	}
	r := heldRule{identity: of, capacity: capacity, id: fmt.Sprint(of.kind, of.name)}
	if of.kind == limiter.Funnel && of.name == "" {
		r.id += fmt.Sprint(of.periodSec)
	}
	var err error
	by := limiter.Rule{Kind: of.kind}
	switch of.kind {
	case limiter.Funnel:
		count := a.counts[i]
		if a.rates {
			count = a.count(&of)
		}
		l, wrong := funnel.NewLimit(funnel.Capacity, capacity, count, of.periodSec)
		err, r.intervalNs = wrong, int64(l.IntervalNs())
		by = limiter.OfFunnel(l)
		if of.name == "" {
			r.NamedRule = limiter.PlainRule(l, of.periodSec*heldSec)
		}
	case limiter.Quota:
		spec := limiter.Spec{Kind: of.kind, Unit: funnel.WholeSeconds, Numbers: limiter.Numbers{capacity}}
		if spec.Calendar, err = a.calendars.Of(calendar.Spec{Every: of.every, Zone: of.zone}); err == nil {
			err = spec.Build(&by)
		}
		if r.zoneOf = time.UTC; of.zone != "" && err == nil {
			r.zoneOf, err = time.LoadLocation(of.zone)
		}
	case limiter.SlidingWindow:
		l, wrong := window.NewExactLimit(funnel.Seconds, 1+a.Int64N(40), of.periodSec)
		by.Packed, err, r.periodNs, r.capacity = l.Packed(), wrong, of.periodSec*heldSec, l.MaxCount()
	default:
		period := of.periodSec
		if a.periods && a.often(40) {
			period = pick(a.Rand, []int64{3, 10, 600, 3600})
		}
		l, wrong := window.NewLimit(funnel.Seconds, capacity, period)
		by.Packed, err, r.periodNs = l.Packed(), wrong, period*heldSec
	}
	if err != nil {
		a.t.Fatal(err)
	}
	if of.kind != limiter.Funnel || of.name != "" {
		r.NamedRule = limiter.OtherRule(by, of.name)
	}
	return r
}

// law is what decides a key.
type law struct {
	rules    []heldRule
	constant limiter.Constant
	shadow   bool
	exact    bool // it has an exact window
	by       *limiter.NamedLimit
}

func newLaw(rules []heldRule, constant limiter.Constant, shadow, overrides bool) *law {
	l := &law{rules: rules, constant: constant, shadow: shadow}
	var named []limiter.NamedRule
	for i := range rules {
		named = append(named, rules[i].NamedRule)
		l.exact = l.exact || rules[i].kind == limiter.SlidingWindow
	}
	l.by = limiter.NewNamedLimit(named, 0.8)
	l.by.Constant, l.by.Shadow, l.by.Overridden = constant, shadow, overrides
	return l
}

// law draws one, of rules like some before.
func (a *heldArtist) law(before *law, overrides bool) *law {
	shadow := a.often(20)
	if overrides && a.often(25) {
		return newLaw(nil, pick(a.Rand, []limiter.Constant{limiter.Deny, limiter.Unlimited}), shadow, true)
	}
	var rules []heldRule
	has := map[int]bool{}
	for i := range identities {
		was := before != nil && before.has(i)
		has[i] = was && a.often(85) || !was && a.often(25)
		if identities[i].kind == limiter.SlidingWindow { // which can hold nothing
			has[i] = a.often(6)
		}
	}
	if a.often(30) { // plain funnels alone have their own way
		for i := range identities {
			has[i] = has[i] && i < 2
		}
	}
	for _, i := range a.Perm(len(identities)) {
		if has[i] && len(rules) < 6 {
			rules = append(rules, a.rule(i))
		}
	}
	if len(rules) == 0 {
		rules = append(rules, a.rule(a.IntN(len(identities))))
	}
	return newLaw(rules, limiter.ByRules, shadow, overrides)
}

func (l *law) has(i int) bool {
	for j := range l.rules {
		if l.rules[j].identity == identities[i] {
			return true
		}
	}
	return false
}

// units draws those of a request by a law.
func (a *heldArtist) units(l *law) int64 {
	most := int64(12)
	if a.huge {
		most = 1 << 38
	}
	if len(l.rules) > 0 && a.often(70) {
		for i := range l.rules {
			most = min(most, max(1, l.rules[i].capacity/2))
		}
	}
	return 1 + a.Int64N(most)
}
