package ask

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/limiter/value"
	"cellserver/internal/limiter/window"
	"cellserver/internal/resp"
)

// Answer is the state of a key and what its next call would get.
type Answer struct {
	found
	Kind limiter.Kind
	By   string // the limit's terms in links; empty for a named limit or none

	IsGiven bool // by the address, else the limit is that of the last call

	Rules []RuleLook // none if no rule is known, or none decides
	Next  Outcome
	Reply *funnel.Result // to the next call for one unit; nil if no limit is known

	Limit    *namedlimit.Limit // nil for none
	Override string            // as text; empty for none
	Policy   namedlimit.Policy // which decides under the limit
	Shadowed bool              // only a shadow allows the next call

	Value *ValueLook // in place of all above, if the key holds a value
}

// Outcome is what happens next.
type Outcome struct {
	Limited bool
	Left    int64  // units that are allowed at once
	FreeNs  uint64 // until a unit is available
	Never   bool   // no waiting makes it available
}

// RuleLook is a rule's view of a key.
type RuleLook struct {
	namedlimit.Rule
	Kind     limiter.Kind
	Units    float64 // in use; in a bucket those left
	MaxUnits int64
	EmptyNs  uint64 // until nothing is in use; 0 for now, or for never

	BlockedNs uint64 // until the end of the rule's block; 0 without

	Settles bool  // it counts units that may be held
	Held    int64 // of Units, those that are not settled

	Outcome
}

// lookNamed looks at a key under the name of a limit. key lacks the name.
func (in *search) lookNamed(f *found, l *namedlimit.Limit, key []byte) (*Answer, error) {
	nowNs := in.Now()
	by := l.Explain(key, namedlimit.At(nowNs), in.Reading)
	a := &Answer{found: *f, Kind: limiter.Named, Limit: l, Override: by.Override, Policy: by.Policy}
	rule := limiter.OfNamed(by.Named)
	rule.Flags = limiter.NoBlock // a look
	state := limiter.Shifted(f.State, 0)
	reply, _, err := rule.Decide(&state, nowNs, 1)
	if err != nil {
		return nil, err
	}
	a.Reply, a.Shadowed = &reply, reply.Marks&funnel.Shadowed != 0
	a.Next = Outcome{Limited: reply.Limited, Left: reply.Remaining + 1}
	if by.Named.Constant != limiter.ByRules {
		a.Next.Never = true
		return a, nil
	}
	precise, holds := by.Named.Precise(nil), l.HoldCounts().Held > 0
	for i := range precise.Rules {
		of := &precise.Rules[i].Rule
		look := RuleLook{Rule: by.Rules[i], Kind: of.Kind}
		look.set(of, precise.Rules[i].Look(&f.State, nowNs, 0), precise.Look(i, &f.State, nowNs, 1))
		if look.BlockedNs = precise.BlockedNs(i, &f.State, nowNs); look.BlockedNs > 0 {
			look.Left = 0
		}
		if look.Kind == limiter.FixedWindow || look.Kind == limiter.Quota { // units leak from others
			look.Settles, look.Held = holds, min(limiter.UnitsHeld(&f.State, nowNs, precise.Rules[i].ID), int64(look.Units))
		}
		a.Rules = append(a.Rules, look)
	}
	a.tightest()
	return a, nil
}

// IsJudged reports whether a limit is known.
func (a *Answer) IsJudged() bool { return a.Limit != nil || len(a.Rules) > 0 }

// tightest sets when the next call is allowed: all rules have to allow it.
func (a *Answer) tightest() {
	for i := range a.Rules {
		r := &a.Rules[i].Outcome
		a.Next.FreeNs, a.Next.Never = max(a.Next.FreeNs, r.FreeNs), a.Next.Never || r.Never
	}
}

// lookBy looks at a key by a limit.
func (in *search) lookBy(f *found, spec limiter.Spec) (*Answer, error) {
	nowNs := in.Now()
	anyWindow := spec.Kind.Row().Calendar && spec.Calendar == nil
	if anyWindow { // one that has begun ends with its key
		spec.Calendar, _ = in.Calendars.Of(calendar.Spec{Every: calendar.Second}) // valid
	}
	decide := func(s limiter.Spec, quantity int64) (rule limiter.Rule, r funnel.Result, err error) {
		if err = s.Build(&rule); err == nil {
			state := limiter.Shifted(f.State, 0)
			r, _, err = rule.Decide(&state, nowNs, quantity)
		}
		return rule, r, err
	}
	rule, reply, err := decide(spec, 1)
	if err != nil {
		return nil, err
	}
	terms := rule.Terms()
	a := &Answer{found: *f, Kind: spec.Kind, By: in.TermsText(terms), Reply: &reply}
	if anyWindow && !f.Known {
		a.Reply = nil // which would tell when the window ends
	}
	precise, none, err := decide(inMilliseconds(spec), 0)
	if err != nil {
		return nil, err
	}
	_, one, err := decide(inMilliseconds(spec), 1)
	look := RuleLook{Rule: in.RuleOf(terms), Kind: spec.Kind}
	look.set(&precise, none, one)
	a.Rules, a.Next = []RuleLook{look}, look.Outcome
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

// RuleOf returns the rule of terms, with its period in seconds.
func (from *Source) RuleOf(terms limiter.Terms) (r namedlimit.Rule) {
	n := from.arguments(terms)
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
func (r *RuleLook) set(rule *limiter.Rule, none, one funnel.Result) {
	ms := func(n int64) uint64 {
		return uint64(min(max(n, 0), math.MaxInt64/int64(time.Millisecond))) * uint64(time.Millisecond)
	}
	r.MaxUnits = none.Limit
	r.Outcome = Outcome{Limited: one.Limited, Left: max(none.Remaining, 0)}
	if one.Limited {
		r.FreeNs, r.Never = ms(one.RetryAfter), one.RetryAfter < 0
	}
	switch r.Kind {
	case limiter.Funnel:
		r.EmptyNs = ms(none.ResetAfter)
		r.Units = float64(r.EmptyNs) / float64(max(rule.Funnel.IntervalNs(), 1))
		used := float64(none.Limit - none.Remaining)
		if r.Units = max(r.Units, used-1); none.Remaining > 0 { // units are exact where a millisecond is many
			r.Units = min(r.Units, used)
		}
	case limiter.Bucket:
		r.Units = float64(none.Remaining)
	default:
		r.EmptyNs = ms(none.ResetAfter)
		r.Units = float64(none.Limit - none.Remaining)
	}
}

// lookAtPlaces tells how many of a key's places are taken.
func (in *search) lookAtPlaces(f *found, places int64) *Answer {
	held, _ := UnitsOf(&f.State, in.Now())
	look := RuleLook{Kind: limiter.Concurrency, Units: float64(held), MaxUnits: places}
	look.Capacity, look.Outcome = places, Outcome{Limited: held >= places, Left: max(0, places-held)}
	by := kindName(limiter.Concurrency) + " " + strconv.FormatInt(places, 10)
	return &Answer{found: *f, Kind: limiter.Concurrency, By: by, Rules: []RuleLook{look}, Next: look.Outcome}
}

// UnitsOf returns the units that a state counts; ok is false for one that counts time.
func UnitsOf(s *limiter.State, nowNs int64) (units int64, ok bool) {
	switch s.Kind {
	case limiter.FixedWindow, limiter.Quota:
		return window.Count(s.Payload), true
	case limiter.Bucket:
		return s.Left(), true
	case limiter.Concurrency:
		held, state := limiter.Operation{Verb: limiter.Holders}, *s
		_, _ = held.Do(&state, nowNs) // the kind fits
		return held.Count, true
	default:
		return 0, false
	}
}

// ValueLook describes a key that holds a value. Its text is not shown.
type ValueLook struct {
	Number string // empty for a text
	Bytes  int
}

// lookAtValue describes a value: limits do not matter for it.
func (in *search) lookAtValue(f *found) *Answer {
	is := &ValueLook{Bytes: value.TextBytes(f.State.Payload)}
	if n, ok := value.Counter(f.State.Payload); ok {
		is.Number = words.Grouped(n)
	}
	return &Answer{found: *f, Kind: limiter.Value, Value: is}
}

// LeftNs returns the time until a key expires.
func (f *found) LeftNs(nowNs int64) uint64 { return uint64(max(0, f.State.ExpiresNs-nowNs)) }

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

// KeyText returns a key as the address and the field have it: in quotes, too, if it reads like a whole call.
func KeyText(key []byte) string {
	text := resp.Quote(key)
	if _, isCall := readCall(text); isCall {
		return resp.QuoteWord(key)
	}
	return text
}

// TermsText formats terms as readTerms reads them; empty for none.
func (from *Source) TermsText(terms limiter.Terms) string {
	row := terms.Kind.Row()
	if terms.Numbers[0] == 0 || len(row.Arguments()) == 0 {
		return ""
	}
	text := []byte(kindName(terms.Kind))
	for _, n := range from.arguments(terms) {
		text = strconv.AppendInt(append(text, ' '), n, 10)
	}
	return string(text)
}

// arguments returns the numbers of terms as the kind's command takes them.
func (from *Source) arguments(terms limiter.Terms) []int64 {
	terms = asCommand(terms)
	row, n := terms.Kind.Row(), terms.Numbers
	if terms.Kind == limiter.Funnel {
		if from.Reading == funnel.Burst {
			n[0]--
		}
		n[1], n[2] = inSeconds(terms.Unit, n[1], n[2])
	}
	return n[:len(row.Arguments())]
}

// asCommand returns terms in the unit of the kind's command: calls over gRPC are in milliseconds. Those of a
// funnel are left.
func asCommand(terms limiter.Terms) limiter.Terms {
	const ms = 1000
	row := terms.Kind.Row()
	if terms.Kind == limiter.Funnel || terms.Unit != funnel.Milliseconds || row.Unit == funnel.Milliseconds {
		return terms
	}
	if terms.Unit = row.Unit; len(row.Arguments()) > 1 {
		terms.Numbers[1] /= ms
	}
	return terms
}

// Names in links for limits of funnels beside that of CL.THROTTLE:
const (
	byCapacity     = "tokenbucket" // by the capacity, whatever CL.THROTTLE reads
	byMilliseconds = "pthrottle"
)

// maxTermBytes bounds the terms in an address, which errors quote.
const maxTermBytes = 160

// readTerms reads a limit as links have it, such as "throttle 15 30 60": a kind and the arguments of its
// command.
func (from *Source) readTerms(by string) (s limiter.Spec, isGiven bool, err error) {
	given := strings.Fields(by[:min(len(by), maxTermBytes)])
	if len(given) == 0 {
		return s, false, nil
	}
	s.Reading = from.Reading
	named := given[0]
	switch named {
	case byCapacity:
		given[0], s.Reading = kindName(limiter.Funnel), funnel.Capacity
	case byMilliseconds:
		given[0] = kindName(limiter.Funnel)
	}
	for s.Kind = range limiter.Kinds {
		if kindName(s.Kind) == given[0] {
			break
		}
	}
	row := s.Kind.Row()
	names, given := row.Arguments(), given[1:]
	s.Unit = row.Unit
	if len(names) == 0 || len(given) < len(names) {
		return s, false, fmt.Errorf("by=%s: want a kind and its limit, such as throttle 15 30 60", resp.Quote([]byte(by[:min(len(by), maxTermBytes)])))
	}
	for i := range names {
		if s.Numbers[i], err = strconv.ParseInt(given[i], 10, 64); err != nil {
			return s, false, fmt.Errorf("%s: %s is not a whole number", names[i], resp.Quote([]byte(given[i])))
		}
	}
	if named == byMilliseconds {
		s.Unit = funnel.Milliseconds
		s = withSeconds(s)
	}
	if row.Calendar && len(given) > len(names) {
		rules, _, err := namedlimit.ReadRules(append([]string{"QUOTA", given[0]}, given[1:]...), from.Reading)
		if err == nil {
			s.Calendar, err = from.Calendars.Of(rules[0].Calendar)
		}
		if err != nil {
			return s, false, err
		}
	}
	return s, true, nil
}
