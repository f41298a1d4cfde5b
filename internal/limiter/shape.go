package limiter

import (
	"encoding/binary"
	"math"

	"cellserver/internal/funnel"
)

// Shape is what many states have in common beside their expiries and Words: a window's kind, or the ids of a
// named limit's rules and the intervals of its funnels. Few are in use, so a store keeps a state's Shape by a
// number.
type Shape struct {
	kind        Kind
	entries     uint8                // of a Named payload
	ids         [shapeEntries]uint64 // of the entries
	intervalsNs [shapeEntries]uint64 // of their funnels
}

// Words are the rest of a state: the TATs of two funnels, the units of a window, or an approximate window's
// start and counters. The TAT of a single funnel is the expiry, so it has none.
type Words [shapeWords]uint64

const (
	shapeEntries = 2
	shapeWords   = 2

	counterBits = 32 // of each of two in a word
)

// Pack splits a state. ok is false for one that has more than a Shape and its Words.
func Pack(s *State) (f Shape, w Words, ok bool) {
	f.kind = s.Kind
	if s.Kind != Named {
		w, ok = packWindow(s.Kind, s.Payload)
		return f, w, ok
	}
	lastNs := int64(math.MinInt64)
	for rest := s.Payload; len(rest) > 0; {
		e, after, ok := readEntry(rest)
		switch {
		case !ok || f.entries == shapeEntries:
			return f, w, false
		case e.kind() == Funnel:
			f.intervalsNs[f.entries], w[f.entries] = e.intervalNs(), uint64(e.expiresNs)
			ok = len(e.payload) == intervalBytes && isFunnel(f.ids[0])
		default:
			w, ok = packWindow(e.kind(), e.payload)
			ok = ok && f.entries == 0 && len(after) == 0
		}
		if !ok {
			return f, w, false
		}
		f.ids[f.entries] = e.id
		f.entries++
		lastNs, rest = max(lastNs, e.expiresNs), after
	}
	if f.Words() == 0 {
		w = Words{}
	}
	return f, w, f.entries > 0 && lastNs == s.ExpiresNs
}

// isFunnel reports whether an id is that of a funnel's state. So is 0, of none.
func isFunnel(id uint64) bool {
	e := entry{id: id}
	return e.kind() == Funnel
}

func packWindow(kind Kind, payload []byte) (w Words, ok bool) {
	if len(payload) != kind.fixedBytes() {
		return w, false
	}
	switch kind {
	case FixedWindow, Quota:
		w[0] = binary.LittleEndian.Uint64(payload)
	case ApproxWindow:
		previous, current := binary.LittleEndian.Uint64(payload[8:]), binary.LittleEndian.Uint64(payload[16:])
		if (previous|current)>>counterBits != 0 {
			return w, false
		}
		w = Words{binary.LittleEndian.Uint64(payload), previous<<counterBits | current}
	default:
		return w, false
	}
	return w, true
}

func (w Words) appendWindow(b []byte, kind Kind) []byte {
	b = binary.LittleEndian.AppendUint64(b, w[0])
	if kind == ApproxWindow {
		b = binary.LittleEndian.AppendUint64(b, w[1]>>counterBits)
		b = binary.LittleEndian.AppendUint64(b, w[1]&math.MaxUint32)
	}
	return b
}

// AppendPayload appends the payload of a state with an expiry and the Words.
func (f *Shape) AppendPayload(b []byte, expiresNs int64, w Words) []byte {
	if f.kind != Named {
		return w.appendWindow(b, f.kind)
	}
	for i, id := range f.ids[:min(f.entries, shapeEntries)] {
		e := entry{id: id, expiresNs: expiresNs}
		if f.entries > 1 {
			e.expiresNs = int64(w[i])
		}
		b = binary.LittleEndian.AppendUint64(b, id)
		b = binary.LittleEndian.AppendUint64(b, uint64(e.expiresNs))
		if !isPlainID(id) {
			b = binary.LittleEndian.AppendUint32(b, uint32(e.kind().entryBytes()))
		}
		if e.kind() == Funnel {
			b = binary.LittleEndian.AppendUint64(b, f.intervalsNs[i])
		} else {
			b = w.appendWindow(b, e.kind())
		}
	}
	return b
}

// Repack returns the words of a payload that DecideAgain has changed, and false for those that no longer fit.
func (f *Shape) Repack(payload []byte) (w Words, ok bool) {
	if f.kind != Named {
		return packWindow(f.kind, payload)
	}
	first := entry{id: f.ids[0]}
	size := first.headBytes() + first.kind().entryBytes()
	if len(payload) < size {
		return w, false
	}
	if f.entries == 1 {
		return packWindow(first.kind(), payload[first.headBytes():])
	}
	w[0] = binary.LittleEndian.Uint64(payload[entryExpires:])
	if payload = payload[size:]; len(payload) < plainHeadBytes {
		return w, false
	}
	w[1] = binary.LittleEndian.Uint64(payload[entryExpires:])
	return w, true
}

func (f *Shape) Kind() Kind { return f.kind }

// Words returns the number of words that states of the Shape have. A single funnel's have none.
func (f *Shape) Words() int {
	switch f.entries {
	case shapeEntries:
		return shapeEntries
	case 1:
		e := entry{id: f.ids[0]}
		return e.kind().words()
	default:
		return f.kind.words()
	}
}

// words returns the number of words of a kind's state in a Shape.
func (k Kind) words() int {
	switch k {
	case Funnel:
		return 0
	case ApproxWindow:
		return 2
	default:
		return 1
	}
}

// Version returns a number that most likely tells states of a Shape and Words from others.
func (f *Shape) Version(w Words) (v uint64) {
	const odd = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	for _, word := range [...]uint64{uint64(f.kind), f.ids[0], f.ids[1], f.intervalsNs[0], f.intervalsNs[1], w[0], w[1]} {
		v = (v ^ word) * odd
		v ^= v >> 32
	}
	return v | 1<<63
}

// Words returns the number of words that most states of the rule have beside a Shape, and false if theirs
// have none.
func (r *Rule) Words() (n int, ok bool) {
	if r.Kind != Named {
		return r.Kind.Words()
	}
	if n := r.named(); n != nil {
		return int(n.words), n.shaped
	}
	return 0, false
}

// Words is Rule.Words for a kind whose rules are alike.
func (k Kind) Words() (n int, ok bool) {
	switch k {
	case FixedWindow, ApproxWindow, Quota:
		return k.words(), true
	default:
		return 0, false
	}
}

func (n *NamedLimit) setWords() {
	switch {
	case len(n.Rules) == 1 && n.exact == 0:
		n.shaped, n.words = true, uint8(n.Rules[0].Rule.Kind.words())
	case len(n.Rules) == shapeEntries && n.onlyFunnels():
		n.shaped, n.words = true, shapeEntries
	}
}

func (n *NamedLimit) onlyFunnels() bool {
	for i := range n.Rules {
		if n.Rules[i].Rule.Kind != Funnel {
			return false
		}
	}
	return true
}

// DecideFunnel is DecideAgain for a state of a Shape without Words.
func (r *Rule) DecideFunnel(f *Shape, expiresNs, nowNs, quantity int64, result *funnel.Result) (newExpiresNs int64, changed, ok bool) {
	n := r.named()
	if n == nil || !n.shaped || n.words > 0 || !n.decidesAgain(quantity) {
		return 0, false, false
	}
	own := &n.Rules[0]
	if f.Words() > 0 || f.ids[0] != own.ID || f.intervalsNs[0] != own.Rule.Funnel.IntervalNs() {
		return 0, false, false
	}
	*result = funnel.Result{}
	tats := [1]int64{max(nowNs, expiresNs)}
	changed = n.charge(tats[:], nowNs, quantity, r.Flags, r.Unit, result)
	return tats[0], changed, n.beginning(quantity, r.Flags, result) == 0
}
