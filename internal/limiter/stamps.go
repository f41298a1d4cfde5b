package limiter

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"cellserver/internal/funnel"
)

// ExpiresAt is the Stamp position of the key's expiry.
const ExpiresAt = -1

// Stamp describes how a number of a state would differ after a delay: a time later, or a duration shorter.
type Stamp struct {
	At     int   // of its eight bytes in the payload, or ExpiresAt
	FromNs int64 // delay at which it begins to change
	MostNs int64 // largest change
	Less   bool  // it decreases
	Twice  bool  // it changes by twice the delay
	Ends   bool  // of no number: from FromNs on the state must not be written, but decided again
}

// By returns the change of the number after laterNs.
func (p Stamp) By(laterNs int64) int64 {
	if p.Twice {
		laterNs *= 2
	}
	ns := max(0, min(laterNs-p.FromNs, p.MostNs))
	if p.Less {
		return -ns
	}
	return ns
}

// Stamps are all stamps of a state by position.
type Stamps []Stamp

// Apply changes a state, and its payload in place, to that after laterNs.
func (all Stamps) Apply(s *State, laterNs int64) {
	for _, p := range all {
		if p.Ends {
			continue
		}
		if p.At == ExpiresAt {
			s.ExpiresNs += p.By(laterNs)
			continue
		}
		b := s.Payload[p.At:]
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)+uint64(p.By(laterNs)))
	}
}

// add adds a stamp unless its number never changes. Times saturate.
func (all *Stamps) add(at int, number, fromNs, mostNs int64, less bool) {
	if !less {
		mostNs = min(mostNs, math.MaxInt64-max(number, 0))
	}
	if mostNs > 0 {
		*all = append(*all, Stamp{At: at, FromNs: fromNs, MostNs: mostNs, Less: less})
	}
}

// Course follows a state through changes at one time. Its Stamps describe the state if the same had happened
// later with the same outcomes, for callers that decide before the time of effect is known.
//
// Whatever is allowed at one time is allowed later, if nothing else happens. Nothing is dropped early: a
// record or lease that expires during the delay is kept, and a period that would end lasts through it.
//
// Written times move by the delay. A TAT, max(TAT, now) + charge, stays unchanged while the funnel is not
// empty: it follows the clock from the course's least debt on. Returns of a reservation depend on all debts
// since its creation. So after a charge on the same course, the TAT is taken to follow the clock at once,
// which is never too early.
type Course struct {
	nowNs     int64
	before    State // with an unchanged payload
	debts     []debt
	debited   bool
	reserving bool // there were reservations
}

// debt is a debt of a named limit's window, or of a funnel, with period 0.
type debt struct {
	periodNs         int64
	firstNs, leastNs int64 // at the course's start, and the least since
	lastNs           int64
}

// Follow returns the course of a state whose payload must not change.
func Follow(s *State, nowNs int64) Course { return Course{nowNs: nowNs, before: *s}.from(s) }

// from adds the debts of a state to the course.
func (c Course) from(s *State) Course {
	c.debts, c.debited, c.reserving = debtsOf(s, c.nowNs), false, s.Kind == Reserving
	return c
}

// Did returns the course after a change to s.
func (c Course) Did(s *State) Course {
	if s.ExpiresNs <= c.nowNs { // the next change starts a new state
		return c.Set(s)
	}
	present := debtsOf(s, c.nowNs)
	c.debts, c.reserving = slices.Clone(c.debts), c.reserving || s.Kind == Reserving
	for i := range c.debts {
		d := &c.debts[i]
		ns := debtOf(present, d.periodNs).lastNs
		if c.reserving && c.debited && ns < d.lastNs {
			d.leastNs = 0
		}
		c.debited = c.debited || ns > d.lastNs
		d.leastNs, d.lastNs = min(d.leastNs, ns), ns
	}
	for _, p := range present {
		if !slices.ContainsFunc(c.debts, func(d debt) bool { return d.periodNs == p.periodNs }) {
			c.debts = append(c.debts, debt{periodNs: p.periodNs, lastNs: p.lastNs})
			c.debited = true
		}
	}
	return c
}

// Set returns the course after replacement by s, whose times are final.
func (c Course) Set(s *State) Course {
	c.before = State{s.Kind, s.ExpiresNs, bytes.Clone(s.Payload)}
	return c.from(s)
}

func debtsOf(s *State, nowNs int64) (debts []debt) {
	if s.ExpiresNs > nowNs {
		s.Kind.of().eachTAT(*s, nowNs, func(_ int, periodNs, tatNs int64) {
			ns := int64(min(funnel.Since(nowNs, tatNs), math.MaxInt64))
			debts = append(debts, debt{periodNs, ns, ns, ns})
		})
	}
	return debts
}

// debtOf returns the debt of a period, zero without one.
func debtOf(debts []debt, periodNs int64) (d debt) {
	if i := slices.IndexFunc(debts, func(d debt) bool { return d.periodNs == periodNs }); i >= 0 {
		d = debts[i]
	}
	return d
}

// stamping is a course's final state with the stamps found so far.
type stamping struct {
	course *Course
	state  *State
	all    Stamps
	lastNs int64 // the least expiry that follows the clock
}

// follow stamps a time of the payload up to which the key lives, later from fromNs on.
func (t *stamping) follow(at int, ns, fromNs int64) {
	t.all.add(at, ns, fromNs, math.MaxInt64, false)
	t.lastNs = max(t.lastNs, funnel.Shift(ns, -fromNs))
}

// Stamps returns the stamps of the course's final state. A funnel with reservations expires later by twice
// the delay: its TAT is later, and its reservations return less, each by at most the delay. Accept corrects
// the expiry.
func (c *Course) Stamps(s *State) Stamps {
	endNs := s.ExpiresNs
	if endNs <= c.nowNs {
		return nil
	}
	// the first is the expiry
	t := stamping{course: c, state: s, all: make(Stamps, 1, 4), lastNs: math.MinInt64}
	s.Kind.of().stamp(&t)
	if t.lastNs == math.MinInt64 || endNs == NeverNs {
		return t.all[1:]
	}
	t.all[0] = Stamp{At: ExpiresAt, FromNs: endNs - t.lastNs, MostNs: math.MaxInt64 - max(endNs, 0)}
	if s.Kind == Reserving {
		t.all[0].FromNs, t.all[0].Twice = 0, true
	}
	return t.all
}

// payloadBefore returns the initial payload if it was of the kind.
func (c *Course) payloadBefore(kind Kind) []byte {
	if c.before.Kind != kind || c.before.ExpiresNs <= c.nowNs {
		return nil
	}
	return c.before.Payload
}
