package limiter

import (
	"encoding/binary"

	"cellserver/internal/funnel"
)

// mostAgain is the most rules of a named limit that DecideAgain decides.
const mostAgain = 4

// DecideAgain is DecideInto for a state of the rule's kind, or an expired one, whose payload keeps its
// size, as that of most calls does: it changes the payload in place. Otherwise it returns false, with no
// effect.
func (r *Rule) DecideAgain(payload []byte, expiresNs, nowNs, quantity int64, result *funnel.Result) (newExpiresNs int64, changed, ok bool) {
	switch r.Kind {
	case Named:
		switch n := r.named(); {
		case n == nil || n.exact > 0 || !n.decidesAgain(quantity):
		case n.plain:
			return n.decideAgain(payload, expiresNs, nowNs, quantity, r.Flags, r.Unit, result)
		case n.isWhole(payload):
			s := State{Kind: Named, ExpiresNs: expiresNs, Payload: payload[:len(payload):len(payload)]}
			*result = funnel.Result{}
			changed = n.decideRules(&s, nowNs, quantity, r.Flags, r.Unit, result)
			ok = len(s.Payload) == len(payload) && &s.Payload[0] == &payload[0] // else a copy was made
			return s.ExpiresNs, changed, ok && n.beginning(quantity, r.Flags, result) == 0
		}
	case FixedWindow, ApproxWindow, Quota:
		if r.Kind == Quota && r.calendar() == nil || len(payload) != r.Kind.fixedBytes() {
			break
		}
		_, newExpiresNs, changed = r.decideSmall(payload, expiresNs, nowNs, quantity, r.Flags, result)
		return newExpiresNs, changed, true
	default:
	}
	return 0, false, false
}

// decidesAgain reports whether requests by rules are decided in place: a refund may end a state, and a
// precise shadow decides twice.
func (n *NamedLimit) decidesAgain(quantity int64) bool {
	return n.Constant == ByRules && quantity >= 0 && n.hold == nil && (!n.Shadow || n.results == nil)
}

// isWhole reports whether a payload has exactly the entries of the rules, in order, none of them strange.
func (n *NamedLimit) isWhole(payload []byte) bool {
	rest := payload
	for i := range n.Rules {
		r := &n.Rules[i]
		size := r.headBytes() + r.Rule.Kind.entryBytes()
		if len(rest) < size || binary.LittleEndian.Uint64(rest) != r.ID || !r.isPlain() && int(binary.LittleEndian.Uint32(rest[plainHeadBytes:])) != size-otherHeadBytes {
			return false
		}
		if r.Rule.Kind == Funnel && binary.LittleEndian.Uint64(rest[size-intervalBytes:]) != r.Rule.Funnel.IntervalNs() {
			return false
		}
		rest = rest[size:]
	}
	return len(rest) == 0 && len(payload) > 0
}

// entryBytes returns the size of every payload in an entry of a kind but SlidingWindow.
func (k Kind) entryBytes() int {
	if k == Funnel {
		return intervalBytes
	}
	return k.fixedBytes()
}

// fixedBytes returns the size of every payload of a kind but SlidingWindow.
func (k Kind) fixedBytes() int {
	switch k {
	case FixedWindow, Quota:
		return 8
	case ApproxWindow:
		return smallBytes
	default:
		return 0
	}
}

// decideAgain is decidePlain for a payload with exactly the entries of the rules.
func (n *NamedLimit) decideAgain(payload []byte, expiresNs, nowNs, quantity int64, flags Flags, unit funnel.Unit, result *funnel.Result) (newExpiresNs int64, changed, ok bool) {
	if len(payload) != len(n.Rules)*plainBytes || len(n.Rules) > mostAgain {
		return 0, false, false
	}
	for i := range n.Rules {
		e, r := payload[i*plainBytes:][:plainBytes], &n.Rules[i]
		if binary.LittleEndian.Uint64(e) != r.ID || binary.LittleEndian.Uint64(e[plainHeadBytes:]) != r.Rule.Funnel.IntervalNs() {
			return 0, false, false
		}
	}
	*result = funnel.Result{}
	var tats [mostAgain]int64
	for i := range n.Rules {
		tats[i%mostAgain] = max(nowNs, int64(binary.LittleEndian.Uint64(payload[i*plainBytes+entryExpires:])))
	}
	if !n.charge(tats[:len(n.Rules)], nowNs, quantity, flags, unit, result) {
		return expiresNs, false, n.beginning(quantity, flags, result) == 0
	}
	for i := range n.Rules {
		binary.LittleEndian.PutUint64(payload[i*plainBytes+entryExpires:], uint64(tats[i%mostAgain]))
		newExpiresNs = max(newExpiresNs, tats[i%mostAgain])
	}
	return newExpiresNs, true, true
}
