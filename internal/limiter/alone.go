package limiter

import (
	"encoding/binary"

	"cellserver/internal/funnel"
)

// The key of a plain limiter, such as CL.QUOTA's, can have holds, too. From the first hold on its state is a
// named limit's with one rule, whose id no limit's rule has, and the holds. Requests of the plain limiter
// find it there, and with the last hold it is the plain limiter's again: a key without holds keeps its form.

// Alone returns a limit of one rule, by which the key of a plain limiter holds units. Its kind has debits.
func Alone(r Rule) *NamedLimit {
	r.Flags = 0 // those of a request are given
	n := NewNamedLimit([]NamedRule{{Rule: r, ID: aloneID(r.Kind), near: -1}}, 0)
	n.alone = true
	return n
}

// aloneID is of an identity that no rule of a limit has.
func aloneID(k Kind) uint64 { return stateID(k, "") }

// hasAlone reports whether a live state is that of a plain limiter's key with holds.
func (s *State) hasAlone(k Kind) bool {
	if s.Kind != Named {
		return false
	}
	id := aloneID(k)
	if e := entryOf(s.Payload, id); e.id == id {
		return true
	}
	l := holdsOf(s) // which may outlast a window
	return l.Knows(id)
}

// IsOf reports whether requests of a kind are decided on a live state.
func (s *State) IsOf(k Kind) bool {
	return s.Kind == k || s.Kind == Reserving && k == Funnel || s.hasAlone(k)
}

// adopts reports whether a live state is of the limit's plain limiter.
func (n *NamedLimit) adopts(s *State) bool { return n.alone && s.Kind == n.Rules[0].Rule.Kind }

// adopted returns the state of a plain limiter in the form that a named limit's has.
func (n *NamedLimit) adopted(s *State) State {
	r := &n.Rules[0]
	b := make([]byte, 0, otherHeadBytes+len(s.Payload)+intervalBytes+firstBytes)
	b = binary.LittleEndian.AppendUint64(b, r.ID)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.ExpiresNs))
	if s.Kind == Funnel {
		b = binary.LittleEndian.AppendUint32(b, intervalBytes)
		b = binary.LittleEndian.AppendUint64(b, r.Rule.Funnel.IntervalNs())
	} else {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(s.Payload))), s.Payload...)
	}
	return State{Kind: Named, ExpiresNs: s.ExpiresNs, Payload: b, Notes: s.Notes}
}

// release makes a state with nothing but a plain limiter's that limiter's again.
func (s *State) release() {
	e, rest, ok := readEntry(s.Payload)
	if !ok || len(rest) > 0 || e.isHolds() || e.id != aloneID(e.kind()) {
		return
	}
	s.Kind, s.ExpiresNs = e.kind(), e.expiresNs
	if s.Kind == Funnel {
		e.payload = nil
	}
	s.Payload = append(s.Payload[:0], e.payload...)
}

// reprice has a funnel's debt keep its time under another interval, as a plain funnel does.
func (h *split) reprice(n *NamedLimit) {
	for _, e := range entries(h.base.Payload) {
		if e.kind() == Funnel && e.id == n.Rules[0].ID {
			binary.LittleEndian.PutUint64(e.payload, n.Rules[0].Rule.Funnel.IntervalNs())
		}
	}
}

// decideAlone decides a plain limiter's request on a key with holds.
func (r *Rule) decideAlone(s *State, nowNs, quantity int64, result *funnel.Result) (changed bool, err error) {
	*result = funnel.Result{}
	return Alone(*r).decide(s, nowNs, quantity, r.Flags, r.Unit, result)
}
