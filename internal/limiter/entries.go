package limiter

import (
	"encoding/binary"
	"hash/fnv"
	"iter"
	"slices"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/hold"
)

// The payload of a Named key has an entry for each rule with a state, in little endian:
//
//	id: u64 | expiry: i64 | payload                               of a plain funnel, by its period in ns
//	id: u64 | expiry: i64 | bytes of the payload: u32 | payload   of another rule
//
// The id of the latter has the highest bit, seven bits of the kind, and 56 of its identity's hash. A funnel's
// payload is the interval that it was last charged by, 0 for the one that charges it next.
const (
	entryExpires   = 8
	plainHeadBytes = 16
	otherHeadBytes = plainHeadBytes + 4
	intervalBytes  = 8
	plainBytes     = plainHeadBytes + intervalBytes

	otherBit  = 1 << 63
	kindShift = 56
	kindMask  = 1<<7 - 1
	hashMask  = 1<<kindShift - 1
)

func isPlainID(id uint64) bool { return id&otherBit == 0 }

func stateID(k Kind, identity string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(identity)) // never fails
	return otherBit | uint64(k)<<kindShift | h.Sum64()&hashMask
}

// entry is a rule's state in a payload.
type entry struct {
	id        uint64
	expiresNs int64
	payload   []byte
}

func (e *entry) kind() Kind {
	if isPlainID(e.id) {
		return Funnel
	}
	return Kind(e.id >> kindShift & kindMask)
}

func (e *entry) state() State {
	return State{Kind: e.kind(), ExpiresNs: e.expiresNs, Payload: e.payload}
}

func (e *entry) headBytes() int {
	if isPlainID(e.id) {
		return plainHeadBytes
	}
	return otherHeadBytes
}

// intervalNs returns the interval that a funnel was last charged by, 0 if it is unknown.
func (e *entry) intervalNs() uint64 {
	if len(e.payload) != intervalBytes {
		return 0
	}
	return binary.LittleEndian.Uint64(e.payload)
}

// valid reports whether a rule can make the entry.
func (e *entry) valid() bool {
	switch s := e.state(); s.Kind {
	case Funnel:
		return len(e.payload) == intervalBytes
	case FixedWindow, SlidingWindow, ApproxWindow, Quota, holdsKind:
		return s.Kind.of().valid(s)
	case blockKind:
		return len(e.payload) == 0
	default:
		return false
	}
}

// readEntry reads the first entry of b.
func readEntry(b []byte) (e entry, rest []byte, ok bool) {
	if len(b) < otherHeadBytes {
		return e, nil, false
	}
	e.id, e.expiresNs = binary.LittleEndian.Uint64(b), int64(binary.LittleEndian.Uint64(b[entryExpires:]))
	if isPlainID(e.id) {
		if len(b) < plainBytes {
			return e, nil, false
		}
		e.payload = b[plainHeadBytes:plainBytes:plainBytes]
		return e, b[plainBytes:], true
	}
	size := int(binary.LittleEndian.Uint32(b[plainHeadBytes:]))
	if b = b[otherHeadBytes:]; size > hold.MaxBytes || size > len(b) {
		return e, nil, false
	}
	e.payload = b[:size:size]
	return e, b[size:], true
}

// entries yields the entries of a payload and their positions, as far as they are sound.
func entries(payload []byte) iter.Seq2[int, entry] {
	return func(yield func(at int, e entry) bool) {
		for rest := payload; len(rest) > 0; {
			e, after, ok := readEntry(rest)
			if !ok || !yield(len(payload)-len(rest), e) {
				return
			}
			rest = after
		}
	}
}

// entryOf returns the entry of an id, or one that has expired.
func entryOf(payload []byte, id uint64) (found entry) {
	for _, e := range entries(payload) {
		if e.id == id {
			found = e
		}
	}
	return found
}

// plainTAT returns a plain funnel's TAT, nowNs if it is empty.
func plainTAT(payload []byte, id uint64, nowNs int64) int64 {
	for len(payload) >= plainBytes {
		of := binary.LittleEndian.Uint64(payload)
		if of == id {
			return max(nowNs, int64(binary.LittleEndian.Uint64(payload[entryExpires:])))
		}
		if isPlainID(of) {
			payload = payload[plainBytes:]
			continue
		}
		_, rest, ok := readEntry(payload)
		if !ok {
			break
		}
		payload = rest
	}
	return nowNs
}

const (
	// fewRules is the number of rules whose states take little of the stack.
	fewRules = 3
	// smallBytes fits the payload of every kind but SlidingWindow.
	smallBytes = 24
)

// part is the state of a rule during a decision. It must not point into itself, else it would escape.
type part struct {
	at, end   int    // of its entry in the payload; equal for none
	payload   []byte // present one, then the new one of an exact window
	expiresNs int64
	small     [smallBytes]byte // the new payload of another kind
	bytes     int              // of small
	changed   bool
	untilNs   int64 // of the rule's block; 0 for none
	result    funnel.Result
}

func (n *NamedLimit) decideFew(s *State, nowNs, quantity int64, flags Flags, result *funnel.Result) bool {
	var parts [fewRules]part
	return n.decideParts(parts[:len(n.Rules)], s, nowNs, quantity, flags, result)
}

func (n *NamedLimit) decideMany(s *State, nowNs, quantity int64, flags Flags, result *funnel.Result) bool {
	var parts [MaxRules]part
	return n.decideParts(parts[:min(len(n.Rules), MaxRules)], s, nowNs, quantity, flags, result)
}

// decideParts decides rules of any kind. Exact windows, which may be large, are looked at first and changed
// in place if all rules allow the request; the others are decided on copies.
func (n *NamedLimit) decideParts(parts []part, s *State, nowNs, quantity int64, flags Flags, result *funnel.Result) (changed bool) {
	n.find(parts, s.Payload, nowNs)
	denied, near, blocked := uint16(0), uint16(0), false
	for i := range parts {
		p, r := &parts[i], &n.Rules[i].Rule
		if p.expiresNs <= nowNs {
			p.payload, p.expiresNs = p.payload[:0], nowNs
		}
		switch {
		case p.untilNs > 0:
			blocked = true
			p.decideBlocked(r, nowNs, quantity, flags)
		case r.Kind == SlidingWindow:
			p.look(r, nowNs, quantity)
		default:
			p.decide(r, nowNs, quantity, flags)
		}
		if p.result.Limited {
			denied |= 1 << i
		}
	}
	for i := range parts {
		p, r := &parts[i], &n.Rules[i]
		if r.Rule.Kind == SlidingWindow && quantity != 0 {
			p.chargeExact(&r.Rule, denied != 0, nowNs, quantity, flags)
		}
		if p.result.Remaining <= r.near {
			near |= 1 << i
		}
		changed = changed || p.changed
		n.choose(i, &p.result, result, flags)
	}
	charges := n.settle(denied, near, flags, result)
	if blocked {
		result.Remaining = 0
	}
	if !charges || !changed {
		return false
	}
	n.write(parts, s, nowNs)
	return true
}

// decide decides on a copy.
func (p *part) decide(r *Rule, nowNs, quantity int64, flags Flags) {
	if r.Kind == Funnel {
		beforeNs := p.expiresNs
		p.expiresNs, p.result = r.decideFunnel(beforeNs, nowNs, quantity, flags)
		p.changed = p.expiresNs != beforeNs
		binary.LittleEndian.PutUint64(p.small[:], r.Funnel.IntervalNs())
		p.bytes = intervalBytes
		return
	}
	var of [smallBytes]byte
	payload := of[:copy(of[:], p.payload)]
	payload, p.expiresNs, p.changed = r.decideSmall(payload, p.expiresNs, nowNs, quantity, flags, &p.result)
	p.bytes = copy(p.small[:], payload)
}

// look sets the result if the rule limits the request, which then changes nothing. A window may have more
// units than a maximum that was lowered: it limits a look, and no refund.
func (p *part) look(r *Rule, nowNs, quantity int64) {
	payload, expiresNs, _ := r.decideSliding(p.payload, p.expiresNs, nowNs, 0, 0, &p.result)
	if quantity > p.result.Remaining {
		payload, expiresNs, _ = r.decideSliding(payload, expiresNs, nowNs, quantity, 0, &p.result)
	} else {
		p.result.Limited = p.result.Limited && quantity == 0
	}
	p.payload, p.expiresNs = payload, expiresNs
}

// find sets the states of the rules.
func (n *NamedLimit) find(parts []part, payload []byte, nowNs int64) {
	next := 0
	for rest := payload; len(rest) > 0; {
		e, after, ok := readEntry(rest)
		if !ok {
			return
		}
		if i := n.ruleOf(e.id, next); i >= 0 {
			p := &parts[i]
			p.at, p.end = len(payload)-len(rest), len(payload)-len(after)
			p.expiresNs, p.payload = e.expiresNs, e.payload
			next = i + 1
		} else if e.isBlock() && e.expiresNs > nowNs && !n.Shadow {
			if i := n.blockOf(e.id); i >= 0 {
				parts[i].untilNs = e.expiresNs
			}
		}
		rest = after
	}
}

// ruleOf returns the index of the rule of a state, most likely the next one, or -1.
func (n *NamedLimit) ruleOf(id uint64, next int) int {
	if next < len(n.Rules) && n.Rules[next].ID == id {
		return next
	}
	return slices.IndexFunc(n.Rules, func(r NamedRule) bool { return r.ID == id })
}

// write stores the states of all rules, in place if the payload has their entries in their order, and behind
// them live ones of other rules.
func (n *NamedLimit) write(parts []part, s *State, nowNs int64) {
	s.ExpiresNs = nowNs
	at, same := 0, true
	for i := range parts {
		p, r := &parts[i], &n.Rules[i]
		s.ExpiresNs = max(s.ExpiresNs, p.expiresNs)
		same = same && p.at == at && p.end-p.at == r.headBytes()+p.newBytes(r) && p.expiresNs > nowNs
		at = p.end
	}
	lastNs, live := s.ExpiresNs, at == len(s.Payload)
	if same && !live {
		lastNs, live = n.others(s.Payload[at:], nowNs)
	}
	if same && live {
		s.ExpiresNs = max(s.ExpiresNs, lastNs)
		for i := range parts {
			p := &parts[i]
			p.replace(&n.Rules[i], s.Payload[p.at:p.end])
		}
		return
	}
	before := len(s.Payload)
	b := s.Payload // those of exact windows are parts of it
	for i := range parts {
		if p := &parts[i]; p.expiresNs > nowNs {
			b = p.put(&n.Rules[i], b)
		}
	}
	b, s.ExpiresNs = n.carry(b, s.Payload, nowNs, s.ExpiresNs)
	s.Payload = b[:copy(b, b[before:])]
}

// others returns the latest expiry of a payload without states of the rules, and whether it is all live.
func (n *NamedLimit) others(payload []byte, nowNs int64) (lastNs int64, live bool) {
	lastNs, end := nowNs, 0
	for at, e := range entries(payload) {
		if !n.keeps(&e, nowNs) {
			return lastNs, false
		}
		lastNs, end = max(lastNs, e.expiresNs), at+e.headBytes()+len(e.payload)
	}
	return lastNs, end == len(payload)
}

// hasOthers reports whether a payload has live states of other rules.
func (n *NamedLimit) hasOthers(payload []byte, nowNs int64) bool {
	for _, e := range entries(payload) {
		if e.expiresNs > nowNs && n.ruleOf(e.id, 0) < 0 {
			return true
		}
	}
	return false
}

// carry appends the live states that other rules have in a payload, those of the last ones first, and the
// rules' blocks. It returns the later expiry.
func (n *NamedLimit) carry(b, payload []byte, nowNs, expiresNs int64) ([]byte, int64) {
	left := MaxRules - len(n.Rules)
	for at, e := range entries(payload) {
		if (left > 0 || e.isBlock()) && n.keeps(&e, nowNs) && len(b)-len(payload)+len(e.payload)+otherHeadBytes <= MaxPayloadBytes {
			b = append(b, payload[at:at+e.headBytes()+len(e.payload)]...)
			if expiresNs = max(expiresNs, e.expiresNs); !e.isBlock() {
				left--
			}
		}
	}
	return b, expiresNs
}

func (r *NamedRule) headBytes() int {
	if r.isPlain() {
		return plainHeadBytes
	}
	return otherHeadBytes
}

func (p *part) newBytes(r *NamedRule) int {
	if r.Rule.Kind == SlidingWindow {
		return len(p.payload)
	}
	return p.bytes
}

func (p *part) put(r *NamedRule, b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.ID)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.expiresNs))
	if !r.isPlain() {
		b = binary.LittleEndian.AppendUint32(b, uint32(p.newBytes(r)))
	}
	if r.Rule.Kind == SlidingWindow {
		return append(b, p.payload...)
	}
	return append(b, p.small[:p.bytes]...)
}

// replace overwrites the rule's entry by one of the same size.
func (p *part) replace(r *NamedRule, b []byte) {
	binary.LittleEndian.PutUint64(b[entryExpires:], uint64(p.expiresNs))
	switch b = b[r.headBytes():]; {
	case r.Rule.Kind != SlidingWindow:
		copy(b, p.small[:])
	case &b[0] != &p.payload[0]: // else changed in place
		copy(b, p.payload)
	}
}
