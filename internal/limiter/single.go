package limiter

import (
	"encoding/binary"

	"cellserver/internal/funnel"
)

// Single is the rest of a Named state that is a single funnel's: its TAT is the expiry. Stores keep few
// different ones, so that most named limits cost the memory of a funnel.
type Single struct {
	id         uint64 // of the rule
	intervalNs uint64 // that the funnel was last charged by
}

// SingleOf returns the Single of a state, and false for one of several rules or of another kind.
func SingleOf(s *State) (f Single, ok bool) {
	if s.Kind != Named {
		return f, false
	}
	e, rest, ok := readEntry(s.Payload)
	if !ok || len(rest) > 0 || e.kind() != Funnel || len(e.payload) != intervalBytes || e.expiresNs != s.ExpiresNs {
		return f, false
	}
	return Single{e.id, e.intervalNs()}, true
}

// Append appends the payload of a state that expires at a time.
func (f Single) Append(b []byte, expiresNs int64) []byte {
	b = binary.LittleEndian.AppendUint64(b, f.id)
	b = binary.LittleEndian.AppendUint64(b, uint64(expiresNs))
	if !isPlainID(f.id) {
		b = binary.LittleEndian.AppendUint32(b, intervalBytes)
	}
	return binary.LittleEndian.AppendUint64(b, f.intervalNs)
}

// Version returns a number by which different ones differ, most likely.
func (f Single) Version() uint64 { return f.id*0x9e3779b97f4a7c15 ^ f.intervalNs | 1<<63 }

// IsSingle reports whether states of the rule are those of a single funnel, unless they have others, too.
func (r *Rule) IsSingle() bool {
	if r.Kind != Named {
		return false
	}
	n := r.named()
	return n != nil && n.single
}

// DecideSingle is DecideAgain for a Single. The expiry may have passed.
func (r *Rule) DecideSingle(f Single, expiresNs, nowNs, quantity int64, result *funnel.Result) (newExpiresNs int64, changed, ok bool) {
	n := r.named()
	if n == nil || !n.single || !n.decidesAgain(quantity) {
		return 0, false, false
	}
	own := &n.Rules[0]
	if f != (Single{own.ID, own.Rule.Funnel.IntervalNs()}) {
		return 0, false, false
	}
	*result = funnel.Result{}
	tats := [1]int64{max(nowNs, expiresNs)}
	changed = n.charge(tats[:], nowNs, quantity, r.Flags, r.Unit, result)
	return tats[0], changed, true
}
