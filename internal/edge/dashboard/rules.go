package dashboard

import (
	"fmt"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/ask"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

// measure has the texts, and the unit of the limit that they tell: namedlimit.USD, or "" for none.
type measure struct {
	*words.Texts
	unit string
}

// in returns the measure of a named limit, which may be nil.
func in(t *words.Texts, l *namedlimit.Limit) measure {
	if l == nil {
		return measure{Texts: t}
	}
	return measure{t, l.Unit}
}

// number tells units as a number, or as money.
func (t measure) number(n int64) string {
	if t.unit == namedlimit.USD {
		return namedlimit.Dollars(n)
	}
	return words.Grouped(n)
}

// amount is number with what is counted, where the language says that.
func (t measure) amount(n int64) string {
	if t.unit == namedlimit.USD {
		return namedlimit.Dollars(n)
	}
	return fmt.Sprintf(t.InUnits, words.Grouped(n))
}

// policyText tells how a policy decides.
func (t measure) policyText(p *namedlimit.Policy) string {
	switch p.Constant {
	case limiter.Deny:
		return t.Denied
	case limiter.Unlimited:
		return t.Unlimited
	default:
	}
	texts := make([]string, len(p.Rules))
	for i := range p.Rules {
		texts[i] = t.ruleText(&p.Rules[i])
	}
	return strings.Join(texts, " · ")
}

// ruleText tells a rule's limit, after the rule's name if it has one.
func (t measure) ruleText(r *namedlimit.Rule) string {
	text := t.limitText(r)
	if r.BlockSec > 0 {
		text += t.Comma + fmt.Sprintf(t.Blocks, t.Period(r.BlockSec))
	}
	if r.Name != "" {
		return r.Name + t.Colon + text
	}
	return text
}

func (t measure) limitText(r *namedlimit.Rule) string {
	most := t.amount(r.Capacity)
	windows := map[namedlimit.Algorithm]string{namedlimit.FixedWindow: t.Fixed, namedlimit.SlidingWindow: t.Sliding, namedlimit.ApproximateWindow: t.Approximate}
	switch window := windows[r.Algorithm]; {
	case window != "":
		return rateText(t.Texts, most, r.PeriodSec) + t.Comma + window
	case r.Algorithm == namedlimit.Quota:
		return quotaText(t.Texts, most, r.Calendar)
	}
	return fmt.Sprintf(t.AtOnce, most) + t.Comma + rateText(t.Texts, t.amount(r.Count), r.PeriodSec)
}

// callText tells the limit of a call of a kind.
func callText(texts *words.Texts, kind limiter.Kind, r *namedlimit.Rule) string {
	t := in(texts, nil)
	switch {
	case kind == limiter.Bucket, kind == limiter.Concurrency:
		return fmt.Sprintf(t.AtOnce, t.amount(r.Capacity))
	case kind == limiter.Quota && r.Calendar == calendar.Spec{}:
		return fmt.Sprintf(t.APeriod, t.amount(r.Capacity))
	}
	return t.limitText(r)
}

// rateText names the usual periods.
func rateText(t *words.Texts, count string, periodSec int64) string {
	if usual := map[int64]string{1: t.PerSecond, 60: t.PerMinute, 60 * 60: t.PerHour, 24 * 60 * 60: t.PerDay}[periodSec]; usual != "" {
		return fmt.Sprintf(usual, count)
	}
	return fmt.Sprintf(t.PerPeriod, count, t.Period(periodSec))
}

// quotaText names the zone of windows that depend on it, and a start that is not the natural one.
func quotaText(t *words.Texts, most string, c calendar.Spec) string {
	units := [calendar.Everies]string{t.ASecond, t.AMinute, t.AnHour, t.ADay, t.AWeek, t.AMonth, t.AYear}
	text := fmt.Sprintf(units[c.Every], most)
	switch {
	case c.Epoch:
		text += fmt.Sprintf(t.InZone, t.SinceEpoch)
	case c.Zone != "":
		text += fmt.Sprintf(t.InZone, c.Zone)
	case c.Every >= calendar.Day:
		text += fmt.Sprintf(t.InZone, "UTC")
	}
	start := c.Start.Text(c.Every)
	if start == "" {
		return text
	}
	switch c.Every {
	case calendar.Week:
		weekdays := strings.Fields(t.Weekdays)
		n, _ := strconv.Atoi(start) // 1 to 7
		start = weekdays[(n-1)%len(weekdays)]
	case calendar.Month:
		start = fmt.Sprintf(t.DayOfMonth, start)
	default:
	}
	return text + t.Comma + fmt.Sprintf(t.FromStart, start)
}

// A vessel in units of its SVG.
const (
	vesselTop  = 10.0
	vesselHigh = 100.0
)

// picture draws the n-th rule of the drawer: a funnel that leaks, a bucket, places, or a window with its
// ticks of time.
func picture(t measure, r *ask.RuleLook, n int) g.Node {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	part := r.Units / float64(max(r.MaxUnits, 1))
	share, high := words.Percent(part), vesselHigh*max(0, min(part, 1))
	title := fmt.Sprintf("picture-%d", n)
	glass, drop, name := "M15 6V110H54V122M66 122V110H105V6", el("path", class("water"), attr("d", "M60 128q6 9 0 12q-6-3 0-12")), t.FunnelPicture
	switch r.Kind {
	case limiter.Funnel:
	case limiter.Bucket:
		glass, drop, name = "M15 6V110H105V6M15 20Q60 -14 105 20", nil, t.BucketPicture
	case limiter.Concurrency:
		glass, drop, name = "M15 6V110H105V6", nil, t.PlacesPicture
	default:
		glass, drop, name = "M15 6V110H105V6M15 116V122M37.500 116V122M60 116V122M82.500 116V122M105 116V122M15 122H105", nil, t.WindowPicture
	}
	return el("svg", class("vessel"), attr("viewBox", "0 0 120 142"), attr("role", "img"), attr("aria-labelledby", title),
		el("title", id(title), text(fmt.Sprintf(name, share, t.unitsText(r)))),
		el("rect", class(water(r)), attr("x", "15"), attr("width", "90"), attr("y", number(vesselTop+vesselHigh-high)), attr("height", number(high))),
		el("path", class("glass"), attr("d", glass)), drop,
		el("text", attr("x", "60"), attr("y", "66"), attr("text-anchor", "middle"), text(share)),
	)
}

// water returns the class of what a vessel holds, by the next call.
func water(r *ask.RuleLook) string {
	if r.Limited {
		return "water limited"
	}
	return "water"
}

func (t measure) unitsText(r *ask.RuleLook) string {
	if t.unit != "" {
		return fmt.Sprintf(t.AmountOf, t.number(int64(r.Units)), t.number(r.MaxUnits))
	}
	return fmt.Sprintf(t.UnitsOf, words.Rate.Text(r.Units), words.Grouped(r.MaxUnits))
}

// ruleEntries lists a rule's figures.
func ruleEntries(t measure, r *ask.RuleLook) []g.Node {
	entries := limiterEntries(t, r)
	if r.Settles {
		entries = append(entries, entry(t.Settled, t.number(int64(r.Units)-r.Held)), entry(t.NotSettled, t.number(r.Held)))
	}
	if r.BlockedNs > 0 {
		entries = append(entries, entry(t.BlockEnds, after(t.Texts, r.BlockedNs)))
	}
	return entries
}

// limiterEntries lists the figures of a rule's limiter.
func limiterEntries(t measure, r *ask.RuleLook) []g.Node {
	units := t.unitsText(r)
	available := entry(t.Available, t.number(r.Left))
	switch r.Kind {
	case limiter.Funnel:
		return []g.Node{entry(t.Level, units), available, entry(t.Leak, fmt.Sprintf(t.LeakRate, t.amount(r.Count), t.Period(r.PeriodSec))),
			entry(t.UntilFree, freeText(t.Texts, &r.Outcome)), entry(t.UntilEmpty, after(t.Texts, r.EmptyNs))}
	case limiter.Bucket:
		return []g.Node{entry(t.Level, units)}
	case limiter.Concurrency:
		return []g.Node{entry(t.Used, units), available}
	default:
		return []g.Node{entry(t.Used, units), available, entry(t.UntilFree, freeText(t.Texts, &r.Outcome)), entry(t.ResetAfter, after(t.Texts, r.EmptyNs))}
	}
}

// freeText tells when a unit is available.
func freeText(t *words.Texts, o *ask.Outcome) string {
	if o.Never {
		return t.NoTime
	}
	return after(t, o.FreeNs)
}

// after formats a time ns from now.
func after(t *words.Texts, ns uint64) string {
	if ns == 0 {
		return t.Now
	}
	return fmt.Sprintf(t.In, words.Wait(ns))
}
