package limiter

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"cellserver/internal/funnel"
)

// ExpiresAt is the place of a Stamp that is when the key expires.
const ExpiresAt = -1

// Stamp says how a number of a state would differ if the same had been done a little later: a time would be
// later, or a duration shorter.
type Stamp struct {
	At     int   // where its eight bytes begin in the payload, or ExpiresAt
	FromNs int64 // how late it begins to change with the clock
	MostNs int64 // and by no more than this
	Less   bool  // it becomes less
	Twice  bool  // it changes by two nanoseconds with each of the clock
}

// By returns what is added to the number if the same is done laterNs later.
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

// Stamps are all stamps of a state, in the order of their places.
type Stamps []Stamp

// Apply changes a state, and its payload in place, to what it would be after laterNs.
func (all Stamps) Apply(s *State, laterNs int64) {
	for _, p := range all {
		if p.At == ExpiresAt {
			s.ExpiresNs += p.By(laterNs)
			continue
		}
		b := s.Payload[p.At:]
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)+uint64(p.By(laterNs)))
	}
}

// add adds a stamp, unless its number never changes. No time becomes later than the last one that there is.
func (all *Stamps) add(at int, number, fromNs, mostNs int64, less bool) {
	if !less {
		mostNs = min(mostNs, math.MaxInt64-max(number, 0))
	}
	if mostNs > 0 {
		*all = append(*all, Stamp{At: at, FromNs: fromNs, MostNs: mostNs, Less: less})
	}
}

// Course follows a state through all that is done to it at one time. Its Stamps say what the state would be
// if the same had been done a little later, with the same outcomes. They are for callers that decide before
// it is certain when that takes effect.
//
// What is allowed at a time is allowed at any later one, as long as nothing else is done. Nothing is
// forgotten early: a record or lease that expires during the delay is kept, and a period that would end
// during it lasts until it is over.
//
// Times that were written move by the delay. A TAT is max(TAT, now) + debit, so it stays as it is while the
// funnel does not become empty: it follows the clock from the least debt on the course on. What a
// reservation gives back depends on all debts since it was made. So behind a debit on the same course the
// TAT is taken to follow the clock at once, which is never too early.
type Course struct {
	nowNs     int64
	before    State // nobody changes its payload
	debts     []debt
	debited   bool
	reserving bool // there were reservations
}

// debt is that of a window of a named limit, or of a funnel, which has the period 0 and no other debt.
type debt struct {
	periodNs         int64
	firstNs, leastNs int64 // when the course began, and on it
	lastNs           int64
}

// Follow returns the course of a state, of which nobody may change the payload.
func Follow(s *State, nowNs int64) Course { return Course{nowNs: nowNs, before: *s}.from(s) }

// from returns the course with the debts of a state.
func (c Course) from(s *State) Course {
	c.debts, c.debited, c.reserving = nil, false, s.Kind == Reserving
	eachTAT(s, c.nowNs, func(_ int, periodNs, tatNs int64) {
		ns := debtNs(c.nowNs, tatNs)
		c.debts = append(c.debts, debt{periodNs, ns, ns, ns})
	})
	return c
}

// Did returns the course after something more was done, which has made s of the state.
func (c Course) Did(s *State) Course {
	if s.ExpiresNs <= c.nowNs { // what is done next begins a new state
		return c.Set(s)
	}
	c.debts, c.reserving = slices.Clone(c.debts), c.reserving || s.Kind == Reserving
	for i := range c.debts {
		d, ns := &c.debts[i], int64(0)
		eachTAT(s, c.nowNs, func(_ int, periodNs, tatNs int64) {
			if periodNs == d.periodNs {
				ns = debtNs(c.nowNs, tatNs)
			}
		})
		if c.reserving && c.debited && ns < d.lastNs {
			d.leastNs = 0
		}
		c.debited = c.debited || ns > d.lastNs
		d.leastNs, d.lastNs = min(d.leastNs, ns), ns
	}
	eachTAT(s, c.nowNs, func(_ int, periodNs, tatNs int64) {
		if !slices.ContainsFunc(c.debts, func(d debt) bool { return d.periodNs == periodNs }) {
			c.debts = append(c.debts, debt{periodNs: periodNs, lastNs: debtNs(c.nowNs, tatNs)})
			c.debited = true
		}
	})
	return c
}

// Set returns the course after s has replaced the state. The times of s are right as they are.
func (c Course) Set(s *State) Course {
	c.before = State{s.Kind, s.ExpiresNs, bytes.Clone(s.Payload)}
	return c.from(s)
}

// eachTAT calls f with the TATs of a state, and where they are in its payload.
func eachTAT(s *State, nowNs int64, f func(at int, periodNs, tatNs int64)) {
	if s.ExpiresNs > nowNs {
		s.Kind.of().eachTAT(*s, nowNs, f)
	}
}

func debtNs(nowNs, tatNs int64) int64 { return int64(min(funnel.Since(nowNs, tatNs), math.MaxInt64)) }

// of returns the debt of a period.
func (c *Course) of(periodNs int64) debt {
	i := slices.IndexFunc(c.debts, func(d debt) bool { return d.periodNs == periodNs })
	if i < 0 {
		return debt{}
	}
	return c.debts[i]
}

// stamping is the state with which a course ends, and its stamps as far as they are found.
type stamping struct {
	course *Course
	state  *State
	all    Stamps
	lastNs int64 // when the key expires at least, as far as that follows the clock
}

// follow stamps a time of the payload that the key lives until, and that is later from fromNs on.
func (t *stamping) follow(at int, ns, fromNs int64) {
	t.all.add(at, ns, fromNs, math.MaxInt64, false)
	t.lastNs = max(t.lastNs, funnel.Shift(ns, -fromNs))
}

// Stamps returns the stamps of the state with which the course ends. A funnel with reservations is stamped
// to expire later by twice the delay: its TAT becomes later, and its reservations give back less, each by
// at most the delay. Accept then finds out when it expires.
func (c *Course) Stamps(s *State) Stamps {
	endNs := s.ExpiresNs
	if endNs <= c.nowNs {
		return nil
	}
	t := stamping{course: c, state: s, all: make(Stamps, 1, 4), lastNs: math.MinInt64} // the first is when the key expires
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

// payloadBefore returns what the course began with, if that was of the kind.
func (c *Course) payloadBefore(kind Kind) []byte {
	if c.before.Kind != kind || c.before.ExpiresNs <= c.nowNs {
		return nil
	}
	return c.before.Payload
}
