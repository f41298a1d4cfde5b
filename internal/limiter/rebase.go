package limiter

import (
	"encoding/binary"
	"math"
	"slices"

	"cellserver/internal/funnel"
)

// strange reports whether a payload has a live funnel that was charged by another interval than that of its
// rule, or by none that is known.
func (n *NamedLimit) strange(payload []byte, nowNs int64) bool {
	for rest := payload; len(rest) > 0; {
		e, after, ok := readEntry(rest)
		if !ok {
			return false
		}
		if n.funnelOf(&e, nowNs) != nil {
			return true
		}
		rest = after
	}
	return false
}

// funnelOf returns the limit of a live funnel if it was charged by another interval.
func (n *NamedLimit) funnelOf(e *entry, nowNs int64) *funnel.Limit {
	if e.kind() != Funnel || e.expiresNs <= nowNs {
		return nil
	}
	if i := n.ruleOf(e.id, 0); i >= 0 && n.Rules[i].Rule.Funnel.IntervalNs() != e.intervalNs() {
		return &n.Rules[i].Rule.Funnel
	}
	return nil
}

// rebase makes the debts of strange funnels those of the rules, in place.
func (n *NamedLimit) rebase(s *State, nowNs int64) {
	lastNs := int64(math.MinInt64)
	for at, e := range entries(s.Payload) {
		if l := n.funnelOf(&e, nowNs); l != nil {
			e.expiresNs = l.Rebased(e.expiresNs, nowNs, e.intervalNs())
			binary.LittleEndian.PutUint64(s.Payload[at+entryExpires:], uint64(e.expiresNs))
			binary.LittleEndian.PutUint64(e.payload, l.IntervalNs())
		}
		lastNs = max(lastNs, e.expiresNs)
	}
	s.ExpiresNs = lastNs
}

// decideStrange is decide for a payload with strange funnels. A denial rebases them, too, so that its times
// hold; a look changes nothing.
func (n *NamedLimit) decideStrange(s *State, nowNs, quantity int64, flags Flags, unit funnel.Unit, result *funnel.Result) (changed bool) {
	own := *s
	if quantity == 0 {
		own.Payload = slices.Clone(s.Payload)
	}
	n.rebase(&own, nowNs)
	n.decideCharged(&own, nowNs, quantity, flags, unit, result)
	if quantity == 0 {
		return false
	}
	if *s = own; result.Marks.Denied() != 0 {
		result.Marks |= funnel.Changed
	}
	return true
}

// Rebased returns the parts, as of EachClocked, of funnels that a change at nowNs has rebased.
func Rebased(before, after *State, nowNs int64) (parts []Part) {
	if before.Kind != Named || after.Kind != Named {
		return nil
	}
	for _, e := range entries(after.Payload) {
		if was := entryOf(before.Payload, e.id); e.kind() == Funnel && was.expiresNs > nowNs && was.intervalNs() != e.intervalNs() {
			parts = append(parts, Part{Of: e.id})
		}
	}
	return parts
}

// withIntervals returns the second form of a payload in the first one, where funnels have no payload. It
// returns nil for a damaged one.
func withIntervals(first []byte) (b []byte) {
	for range MaxRules {
		if len(first) < plainHeadBytes {
			break
		}
		id, head := binary.LittleEndian.Uint64(first), plainHeadBytes
		e := entry{id: id}
		switch {
		case e.kind() != Funnel:
			_, rest, ok := readEntry(first)
			if !ok {
				return nil
			}
			b, first = append(b, first[:len(first)-len(rest)]...), rest
			continue
		case !isPlainID(id):
			if len(first) < otherHeadBytes || binary.LittleEndian.Uint32(first[plainHeadBytes:]) != 0 {
				return nil
			}
			head = otherHeadBytes
		}
		at := len(b)
		b = binary.LittleEndian.AppendUint64(append(b, first[:head]...), 0)
		if head == otherHeadBytes {
			binary.LittleEndian.PutUint32(b[at+plainHeadBytes:], intervalBytes)
		}
		first = first[head:]
	}
	if len(first) > 0 {
		return nil
	}
	return b
}
