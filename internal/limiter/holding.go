package limiter

import (
	"encoding/binary"
	"math"
	"slices"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/hold"
	"cellserver/internal/limiter/window"
)

// The holds of a key are the last entry of its payload, which expires when the last one is forgotten. All
// rules of a limit decide on the payload before it, and the holds follow what they change.

// holdsKind is the kind in the id of holds. It is none of a key's.
const (
	holdsKind Kind = kindMask - 1
	holdsID        = otherBit | uint64(holdsKind)<<kindShift
)

func (e *entry) isHolds() bool { return e.id == holdsID }

// holdsIn returns the holds of a payload and their position, or its length for none.
func holdsIn(payload []byte) (e entry, at int) {
	for rest := payload; len(rest) > 0; {
		e, after, ok := readEntry(rest)
		if !ok {
			break
		}
		if e.isHolds() {
			return e, len(payload) - len(rest)
		}
		rest = after
	}
	return entry{}, len(payload)
}

func hasHolds(payload []byte) bool {
	_, at := holdsIn(payload)
	return at < len(payload)
}

// holdsOf returns a state's holds, as of its last change.
func holdsOf(s *State) (l hold.Ledger) {
	if s.Kind == Named {
		e, _ := holdsIn(s.Payload)
		l, _ = hold.Open(e.payload, e.expiresNs)
	}
	return l
}

// HoldsOf returns the numbers of a state's holds, as of its last change.
func HoldsOf(s *State) (open, overdue int) {
	l := holdsOf(s)
	return l.Open(), l.Overdue()
}

// LookAtHolds returns the holds of a state at a time, in the order of their charges.
func LookAtHolds(s *State, nowNs int64) []Held {
	if s.ExpiresNs <= nowNs {
		return nil
	}
	l := holdsOf(EndedHolds(s, nowNs))
	return l.Look()
}

// UnitsHeld returns the units of holds that are charged to the state of a rule and not settled.
func UnitsHeld(s *State, nowNs int64, id uint64) int64 {
	l := holdsOf(EndedHolds(s, nowNs))
	return l.In(id)
}

func sameHolds(a, b *State) bool {
	of, other := holdsOf(a), holdsOf(b)
	return of.Same(&other)
}

// EndedHolds returns a state without holds whose time is over: s itself, or a copy.
func EndedHolds(s *State, nowNs int64) *State {
	if s.Kind != Named || s.ExpiresNs <= nowNs {
		return s
	}
	if l := holdsOf(s); l.NextNs() > nowNs {
		return s
	}
	own := Shifted(*s, 0)
	own.Notes = nil
	EndHolds(&own, nowNs)
	return &own
}

// EndHolds ends the holds of a named limit's state whose time is over, in place.
func EndHolds(s *State, nowNs int64) {
	h := splitOf(s, nowNs)
	h.close(s, true)
}

// split is a Named state apart: what the rules decide on, and the holds.
type split struct {
	base  State
	at    int // of the holds in the state's payload
	holds hold.Ledger
}

// mark is what a change of an entry is known by.
type mark struct {
	id         uint64
	expiresNs  int64
	intervalNs uint64 // of a funnel
	startNs    int64  // of an approximate window's period
}

// splitOf takes a live state apart, and ends the holds whose time is over.
func splitOf(s *State, nowNs int64) split {
	e, at := holdsIn(s.Payload)
	h := split{base: State{Kind: Named, Payload: s.Payload[:at]}, at: at}
	if at < len(s.Payload) {
		h.base.Payload = s.Payload[:at:at]
		h.holds, _ = hold.Open(s.Payload[at+otherHeadBytes:at+otherHeadBytes+len(e.payload)], e.expiresNs)
	}
	notes := s.Notes
	if notes == nil {
		notes = &Notes{}
	}
	h.holds.End(nowNs, notes, h.giveBack)
	h.bound(nowNs)
	return h
}

// bound sets the expiry of the base.
func (h *split) bound(nowNs int64) {
	h.base.ExpiresNs = nowNs
	for _, e := range entries(h.base.Payload) {
		h.base.ExpiresNs = max(h.base.ExpiresNs, e.expiresNs)
	}
}

// giveBack returns units to a state that still exists.
func (h *split) giveBack(r hold.Return) {
	for at, e := range entries(h.base.Payload) {
		if e.id != r.State {
			continue
		}
		switch e.kind() {
		case Funnel:
			e.expiresNs = funnel.GiveBack(e.expiresNs, r.AtNs, r.DebitNs)
		case FixedWindow, Quota:
			window.TakeOff(e.payload, r.Units)
		case ApproxWindow:
			if e.expiresNs = window.TakeOffApprox(e.payload, e.expiresNs, r.Units, r.Place == hold.Previous); !e.valid() { // empty
				h.base.Payload = slices.Delete(h.base.Payload, at, at+otherHeadBytes+len(e.payload))
				return
			}
		default:
		}
		binary.LittleEndian.PutUint64(h.base.Payload[at+entryExpires:], uint64(e.expiresNs))
		return
	}
}

// close puts a state together. An unchanged one keeps its expiry, which may be later than all that is left.
func (h *split) close(s *State, changed bool) {
	base, holds, lastNs := h.base.Payload, h.holds.Bytes(), h.holds.LastNs()
	if changed {
		s.ExpiresNs = h.base.ExpiresNs
	}
	if len(holds) == 0 {
		s.Payload = base
		return
	}
	s.ExpiresNs = max(s.ExpiresNs, lastNs)
	b, size := s.Payload, len(base)+otherHeadBytes+len(holds)
	if size > cap(b) {
		b = make([]byte, size, size+size/spareShare)
	}
	b = b[:size]
	copy(b[len(base)+otherHeadBytes:], holds) // perhaps farther in the same bytes
	copy(b, base)
	head := b[len(base):]
	binary.LittleEndian.PutUint64(head, holdsID)
	binary.LittleEndian.PutUint64(head[entryExpires:], uint64(lastNs))
	binary.LittleEndian.PutUint32(head[plainHeadBytes:], uint32(len(holds)))
	s.Payload = b
}

// spareShare is the part of a payload that is room for more holds.
const spareShare = 8

// fewMarks are kept on the stack.
const fewMarks = 4

// mark appends marks of the base before a change, for holds that have to follow it.
func (h *split) mark(marks []mark) []mark {
	if h.holds.Len() == 0 {
		return marks
	}
	for _, e := range entries(h.base.Payload) {
		marks = append(marks, markOf(&e))
	}
	return marks
}

func markOf(e *entry) mark {
	m := mark{id: e.id, expiresNs: e.expiresNs}
	switch e.kind() {
	case Funnel:
		m.intervalNs = e.intervalNs()
	case ApproxWindow:
		m.startNs = window.ApproxStartNs(e.payload)
	default:
	}
	return m
}

// markIn returns an entry's mark, or one that has expired.
func markIn(marks []mark, id uint64) mark {
	for _, m := range marks {
		if m.id == id {
			return m
		}
	}
	return mark{expiresNs: math.MinInt64}
}

// follow has the holds follow a change of the base by a limit's rules.
func (h *split) follow(marks []mark, n *NamedLimit, nowNs int64) {
	if h.holds.Len() == 0 {
		return
	}
	for _, e := range entries(h.base.Payload) {
		i := n.ruleOf(e.id, 0)
		if i < 0 || e.expiresNs <= nowNs {
			continue
		}
		is, was, rule := markOf(&e), markIn(marks, e.id), &n.Rules[i].Rule
		switch live := was.expiresNs > nowNs; {
		case e.kind() == Funnel:
			h.followFunnel(&is, &was, rule.Funnel, nowNs)
		case !live:
			h.holds.Begun(e.id)
		case is.startNs == was.startNs:
		case is.startNs == funnel.After(was.startNs, rule.window().PeriodNs()):
			h.holds.Advanced(e.id)
		default:
			h.holds.Begun(e.id)
		}
	}
}

func (h *split) followFunnel(is, was *mark, l funnel.Limit, nowNs int64) {
	beforeNs := max(was.expiresNs, nowNs)
	if beforeNs > nowNs && was.intervalNs != is.intervalNs && was.intervalNs > 0 {
		h.holds.Rebased(is.id, was.intervalNs, is.intervalNs)
		beforeNs = l.Rebased(beforeNs, nowNs, was.intervalNs)
	}
	if is.expiresNs > beforeNs {
		h.holds.Raised(is.id, funnel.Since(nowNs, beforeNs))
	}
}

// decideHolding is decide for a state with holds, or a request that holds.
func (n *NamedLimit) decideHolding(s *State, nowNs, quantity int64, flags Flags, unit funnel.Unit, result *funnel.Result) (changed bool, err error) {
	h := splitOf(s, nowNs)
	defer func() { h.close(s, changed) }()
	holds := n.hold != nil && quantity > 0
	if holds {
		if !n.hold.New {
			if _, taken := h.holds.Find(n.hold.ID); taken {
				return false, ErrHoldTaken
			}
		}
		if !h.holds.Fits(len(n.Rules)) {
			return false, ErrTooManyHolds
		}
	}
	if n.alone {
		h.reprice(n)
	}
	var few [fewMarks]mark
	marks := h.mark(few[:0])
	changed = n.decideBase(&h.base, nowNs, quantity, flags, unit, result)
	if holds && n.Shadow && flags&Debit == 0 && result.Marks.Denied() != 0 {
		*result = funnel.Result{}
		changed = n.decideBase(&h.base, nowNs, quantity, flags|Debit, unit, result)
	}
	if changed {
		h.follow(marks, n, nowNs)
	}
	if holds && (flags&Debit != 0 || !result.Limited) {
		h.hold(n, nowNs, quantity)
		s.Notes.Spend(nowNs, quantity)
		changed = true
	}
	return changed, nil
}

// hold adds the request's hold, which has been charged.
func (h *split) hold(n *NamedLimit, nowNs, quantity int64) {
	var few [MaxRules]hold.Part
	parts := few[:0]
	for i := range n.Rules {
		r := &n.Rules[i]
		p := hold.Part{State: r.ID, Place: hold.Present}
		if r.Rule.Kind == Funnel {
			e := entryOf(h.base.Payload, r.ID)
			p.Place, p.IntervalNs, p.LeastNs = hold.InFunnel, r.Rule.Funnel.IntervalNs(), funnel.Since(nowNs, e.expiresNs)
		}
		parts = append(parts, p)
	}
	if h.holds.Len() == 0 {
		h.holds = hold.New(make([]byte, 0, firstBytes))
	}
	of, endNs := n.hold, funnel.After(nowNs, uint64(max(n.hold.TTLNs, 0)))
	if of.InWindow {
		endNs = min(endNs, h.windowEndNs(n))
	}
	h.holds.Add(&hold.Hold{
		ID: of.ID, Pairs: of.Call.Pairs, All: of.Call.All, Units: quantity, Charge: of.Charge, BeganNs: nowNs, EndNs: endNs,
	}, parts)
}

// windowEndNs returns the time at which the first of the rules' windows has ended.
func (h *split) windowEndNs(n *NamedLimit) int64 {
	endNs := int64(math.MaxInt64)
	for i := range n.Rules {
		if r := &n.Rules[i]; r.Rule.Kind != Funnel {
			e := entryOf(h.base.Payload, r.ID)
			endNs = min(endNs, e.expiresNs)
		}
	}
	return endNs
}

// firstBytes fits a hold by a few rules.
const firstBytes = 128

// holds is the entry of a key's holds.
type holds struct{ defaults }

func (holds) row() Row { return noKind{}.row() }

func (holds) valid(s State) bool { return hold.Valid(s.Payload, s.ExpiresNs) }

func (holds) shift(payload []byte, byNs int64) {
	if l, ok := hold.Open(payload, NeverNs); ok {
		l.Shift(byNs)
	}
}

// clocked takes the latest ends, and each least debt as it is at the later time, which returns less, never
// more.
func (holds) clocked(s State, visit Visit) {
	l, _ := hold.Open(s.Payload, s.ExpiresNs)
	l.Each(func(of uint64, at int, what hold.What) {
		form := Latest
		switch {
		case what == hold.Next:
			form = Earliest
		case what >= hold.Least:
			form = AsLater
		}
		visit(Part{What: uint8(what), Of: of}, at, form)
	})
}

func (holds) endNs(s State, nowNs int64) int64 {
	l, _ := hold.Open(s.Payload, s.ExpiresNs)
	return l.NextAfterNs(nowNs)
}
