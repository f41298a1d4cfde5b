package dashboard

import (
	"math"
	"strconv"
	"time"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/figures"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/bucket"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/limiter/lease"
	"cellserver/internal/limiter/value"
	"cellserver/internal/limiter/window"
)

// keyAnswer is the state of a key and what its next call would get.
type keyAnswer struct {
	found
	kind limiter.Kind
	by   string // the limit's terms in links; empty for a named limit or none

	isGiven bool // by the address, else the limit is that of the last call

	rules []ruleLook // none if no rule is known, or none decides
	next  outcome
	reply *funnel.Result // to the next call for one unit; nil if no limit is known

	limit    *namedlimit.Limit // nil for none
	override string            // as text; empty for none
	policy   namedlimit.Policy // which decides under the limit
	shadowed bool              // only a shadow allows the next call

	value *valueLook // in place of all above, if the key holds a value
}

// outcome is what happens next.
type outcome struct {
	limited bool
	left    int64  // units that are allowed at once
	freeNs  uint64 // until a unit is available
	never   bool   // no waiting makes it available
}

// ruleLook is a rule's view of a key.
type ruleLook struct {
	namedlimit.Rule
	kind     limiter.Kind
	units    float64 // in use; in a bucket those left
	capacity int64
	emptyNs  uint64 // until nothing is in use; 0 for now, or for never
	outcome
}

// lookNamed looks at a key under the name of a limit. key lacks the name.
func (v *view) lookNamed(f *found, l *namedlimit.Limit, key []byte) (*keyAnswer, error) {
	p := v.page
	nowNs := p.source.Now()
	by := l.Explain(key, p.source.Now, p.source.Reading)
	a := &keyAnswer{found: *f, kind: limiter.Named, limit: l, override: by.Override, policy: by.Policy}
	rule := limiter.OfNamed(by.Named)
	state := limiter.Shifted(f.state, 0)
	reply, _, err := rule.Decide(&state, nowNs, 1)
	if err != nil {
		return nil, err
	}
	a.reply, a.shadowed = &reply, reply.Marks&funnel.Shadowed != 0
	a.next = outcome{limited: reply.Limited, left: reply.Remaining + 1}
	if by.Named.Constant != limiter.ByRules {
		a.next.never = true
		return a, nil
	}
	precise := by.Named.Precise()
	for i := range precise.Rules {
		of := &precise.Rules[i].Rule
		look := ruleLook{Rule: by.Rules[i], kind: of.Kind}
		look.set(of, precise.Look(i, &f.state, nowNs, 0), precise.Look(i, &f.state, nowNs, 1))
		a.rules = append(a.rules, look)
	}
	a.tightest()
	return a, nil
}

// tightest sets when the next call is allowed: all rules have to allow it.
func (a *keyAnswer) tightest() {
	for i := range a.rules {
		r := &a.rules[i].outcome
		a.next.freeNs, a.next.never = max(a.next.freeNs, r.freeNs), a.next.never || r.never
	}
}

// lookBy looks at a key by a limit.
func (v *view) lookBy(f *found, spec limiter.Spec) (*keyAnswer, error) {
	nowNs := v.page.source.Now()
	anyWindow := spec.Kind.Row().Calendar && spec.Calendar == nil
	if anyWindow { // one that has begun ends with its key
		spec.Calendar, _ = v.page.source.Calendars.Of(calendar.Spec{Every: calendar.Second}) // valid
	}
	decide := func(s limiter.Spec, quantity int64) (rule limiter.Rule, r funnel.Result, err error) {
		if err = s.Build(&rule); err == nil {
			state := limiter.Shifted(f.state, 0)
			r, _, err = rule.Decide(&state, nowNs, quantity)
		}
		return rule, r, err
	}
	rule, reply, err := decide(spec, 1)
	if err != nil {
		return nil, err
	}
	terms := rule.Terms()
	a := &keyAnswer{found: *f, kind: spec.Kind, by: v.page.termsText(terms), reply: &reply}
	if anyWindow && !f.known {
		a.reply = nil // which would tell when the window ends
	}
	precise, none, err := decide(inMilliseconds(spec), 0)
	if err != nil {
		return nil, err
	}
	_, one, err := decide(inMilliseconds(spec), 1)
	look := ruleLook{Rule: ruleOf(v.page.arguments(terms), terms), kind: spec.Kind}
	look.set(&precise, none, one)
	a.rules, a.next = []ruleLook{look}, look.outcome
	return a, err
}

// inMilliseconds returns a limit whose results are in milliseconds.
func inMilliseconds(s limiter.Spec) limiter.Spec {
	const ms = 1000
	row := s.Kind.Row()
	period := &s.Numbers[len(row.Arguments())-1]
	switch {
	case s.Unit == funnel.Milliseconds || s.Kind == limiter.Bucket:
		return s
	case s.Calendar == nil && *period > math.MaxInt64/ms:
		return s
	case s.Calendar == nil:
		*period *= ms
	}
	s.Unit = funnel.Milliseconds
	return s
}

// ruleOf returns a limit's text by its numbers in seconds.
func ruleOf(n []int64, terms limiter.Terms) (r namedlimit.Rule) {
	r.Capacity = n[0]
	switch terms.Kind {
	case limiter.Funnel:
		r.Capacity, r.Count, r.PeriodSec = terms.Numbers[0], n[1], n[2]
	case limiter.FixedWindow:
		r.Algorithm, r.PeriodSec = namedlimit.FixedWindow, n[1]
	case limiter.SlidingWindow:
		r.Algorithm, r.PeriodSec = namedlimit.SlidingWindow, n[1]
	case limiter.ApproxWindow:
		r.Algorithm, r.PeriodSec = namedlimit.ApproximateWindow, n[1]
	case limiter.Quota:
		r.Algorithm = namedlimit.Quota
	default:
	}
	return r
}

// set reads the results in milliseconds of a call for no unit and of one for a unit.
func (r *ruleLook) set(rule *limiter.Rule, none, one funnel.Result) {
	ms := func(n int64) uint64 {
		return uint64(min(max(n, 0), math.MaxInt64/int64(time.Millisecond))) * uint64(time.Millisecond)
	}
	r.capacity = none.Limit
	r.outcome = outcome{limited: one.Limited, left: max(none.Remaining, 0)}
	if one.Limited {
		r.freeNs, r.never = ms(one.RetryAfter), one.RetryAfter < 0
	}
	switch r.kind {
	case limiter.Funnel:
		r.emptyNs = ms(none.ResetAfter)
		r.units = float64(r.emptyNs) / float64(max(rule.Funnel.IntervalNs(), 1))
		used := float64(none.Limit - none.Remaining)
		if r.units = max(r.units, used-1); none.Remaining > 0 { // units are exact where a millisecond is many
			r.units = min(r.units, used)
		}
	case limiter.Bucket:
		r.units = float64(none.Remaining)
	default:
		r.emptyNs = ms(none.ResetAfter)
		r.units = float64(none.Limit - none.Remaining)
	}
}

// lookAtPlaces tells how many of a key's places are taken.
func (v *view) lookAtPlaces(f *found, places int64) *keyAnswer {
	held, _ := unitsOf(&f.state, v.page.source.Now())
	look := ruleLook{kind: limiter.Concurrency, units: float64(held), capacity: places}
	look.Capacity, look.outcome = places, outcome{limited: held >= places, left: max(0, places-held)}
	by := kindName(limiter.Concurrency) + " " + strconv.FormatInt(places, 10)
	return &keyAnswer{found: *f, kind: limiter.Concurrency, by: by, rules: []ruleLook{look}, next: look.outcome}
}

// lookWithoutLimit tells what a state says by itself.
func (v *view) lookWithoutLimit(f *found) *keyAnswer {
	return &keyAnswer{found: *f, kind: f.state.Kind}
}

// unitsOf returns the units that a state counts; ok is false for one that counts time.
func unitsOf(s *limiter.State, nowNs int64) (units int64, ok bool) {
	switch s.Kind {
	case limiter.FixedWindow, limiter.Quota:
		return window.Count(s.Payload), true
	case limiter.Bucket:
		return bucket.Level(s.Payload), true
	case limiter.Concurrency:
		return lease.Holders(s.Payload, nowNs), true
	default:
		return 0, false
	}
}

// valueLook describes a key that holds a value. Its text is not shown.
type valueLook struct {
	number string // empty for a text
	bytes  int
}

// lookAtValue describes a value: limits do not matter for it.
func (v *view) lookAtValue(f *found) *keyAnswer {
	is := &valueLook{bytes: value.TextBytes(f.state.Payload)}
	if n, ok := value.Counter(f.state.Payload); ok {
		is.number = figures.Grouped(n)
	}
	return &keyAnswer{found: *f, kind: limiter.Value, value: is}
}

// leftNs returns the time until a key expires.
func (f *found) leftNs(nowNs int64) uint64 { return uint64(max(0, f.state.ExpiresNs-nowNs)) }

// withSeconds returns a funnel's limit with its period in seconds.
func withSeconds(s limiter.Spec) limiter.Spec {
	s.Numbers[1], s.Numbers[2] = inSeconds(s.Unit, s.Numbers[1], s.Numbers[2])
	s.Unit = funnel.Seconds
	return s
}

// inSeconds converts count and period to a period in whole seconds with the same rate.
func inSeconds(unit funnel.Unit, count, period int64) (countInSec, periodSec int64) {
	const ms = 1000
	switch {
	case unit != funnel.Milliseconds:
		return count, period
	case period%ms == 0:
		return count, period / ms
	case count < 0 || count > math.MaxInt64/ms:
		return count, max(1, period/ms) // nearly the same, for an absurd count
	}
	return count * ms, period
}
