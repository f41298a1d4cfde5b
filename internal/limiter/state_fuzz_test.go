package limiter

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/limiter/window"
)

// tape reads a fuzzer's bytes as numbers.
type tape struct{ b []byte }

func (t *tape) byte() byte {
	if len(t.b) == 0 {
		return 0
	}
	c := t.b[0]
	t.b = t.b[1:]
	return c
}

// number returns mostly small numbers, else critical ones.
func (t *tape) number() int64 {
	edges := [...]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 4095, 4096, 4097, sec, 1 << 62, math.MaxInt64 - 1, math.MaxInt64}
	switch c := t.byte(); {
	case c < 128:
		return int64(c % 16)
	case c < 192:
		return -int64(c % 8)
	case c < 240:
		return edges[int(c)%len(edges)]
	}
	var b [8]byte
	t.b = t.b[copy(b[:], t.b):]
	return int64(binary.LittleEndian.Uint64(b[:]))
}

// rule returns any rule, with a zero limit for invalid arguments.
func (t *tape) rule() Rule {
	r := Rule{Kind: Kind(t.byte()) % (Kinds + 1), Flags: Flags(t.byte() % 4), Unit: funnel.Unit(t.byte() % 4)}
	r.Funnel = t.funnel()
	w, _ := window.NewLimit(r.Unit, t.number(), t.number())
	capacity := t.number()
	if r.Packed = w.Packed(); r.Kind == Bucket {
		r.Packed = Packed{max(0, capacity)}
	}
	if r.Kind == Named && t.byte() < 240 { // else without a limit
		var rules []NamedRule
		for range t.byte() % 6 {
			rules = append(rules, t.namedRule())
		}
		n := NewNamedLimit(rules, float64(t.byte())/100)
		n.Shadow, n.Constant = t.byte()%4 == 0, Constant(t.byte()%9/7)
		r.Shared = n
		if t.byte() >= 128 {
			r.Shared = n.Holding(&Hold{ID: t.holdID(), Call: HoldCall{uint32(t.byte() % 2), uint32(t.byte() % 3)}, TTLNs: t.number(), Charge: t.byte()%2 == 0})
		}
	}
	if r.Kind == Quota && t.byte() < 240 {
		r.Shared = t.calendar()
	}
	return r
}

func (t *tape) calendar() *calendar.Calendar {
	return calendar.New(calendar.Spec{Every: calendar.Every(t.byte()) % calendar.Everies, Epoch: t.byte()%2 == 0}, nil, &calendar.Wall{})
}

// namedRule returns a rule of a named limit.
func (t *tape) namedRule() NamedRule {
	kinds := [...]Kind{Funnel, FixedWindow, SlidingWindow, ApproxWindow, Quota, Funnel}
	i := int(t.byte()) % len(kinds)
	limit := t.funnel()
	if limit.IntervalNs() == 0 { // which no call can define
		limit, _ = funnel.NewLimitIn(funnel.Milliseconds, funnel.Burst, 10, 1, 1)
	}
	if i == 0 {
		return PlainRule(limit, t.number()&math.MaxInt64)
	}
	r := Rule{Kind: kinds[i], Funnel: limit}
	w, _ := window.NewLimit(funnel.Milliseconds, t.number(), t.number())
	r.Packed = w.Packed()
	if r.Kind == Quota {
		r.Shared = t.calendar()
	}
	return OtherRule(r, string(rune('a'+t.byte()%4)))
}

func (t *tape) funnel() funnel.Limit {
	l, _ := funnel.NewLimitIn(funnel.Milliseconds, funnel.Burst, t.number(), t.number(), t.number())
	return l
}

func (t *tape) holdID() (id HoldID) {
	id[0] = t.byte() % 4
	return id
}

// ofHolds returns a step of holds.
func (t *tape) ofHolds() Step {
	id := t.holdID()
	switch t.byte() % 4 {
	case 0:
		return &FindHold{ID: id}
	case 1:
		return &Extend{ID: id, Pairs: uint32(t.byte() % 2), TTLNs: t.number()}
	default:
		return &Settle{ID: id, Pairs: uint32(t.byte() % 2), Used: t.number(), Rule: t.rule()}
	}
}

func (t *tape) operation() Operation {
	return Operation{
		Verb: Verb(t.byte() % byte(GiveBack+2)), Unit: funnel.Unit(t.byte() % 4), Funnel: t.funnel(),
		Late: t.byte()%2 == 0, Dated: t.byte()%2 == 0, Quantity: t.number(), Max: t.number(), ID: uint64(t.byte() % 4), TTLNs: t.number(), AtNs: t.number(), DebitNs: uint64(t.number()),
	}
}

// FuzzState applies any requests, operations and clock changes to any state: nothing panics, and valid states
// stay valid.
func FuzzState(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(uint8(s.Kind), s.ExpiresNs, s.Payload, t0, []byte("\x00\x01\x00\x01\x05\x05\x05\x00\x00\x00\x01\x02"))
		f.Add(uint8(s.Kind), s.ExpiresNs, s.Payload, t0+sec/2, bytes.Repeat([]byte{1, 7, 130, 200, 3, 250}, 40))
		f.Add(uint8(s.Kind), s.ExpiresNs, s.Payload[:len(s.Payload)/2], int64(math.MaxInt64-1), bytes.Repeat([]byte{0, 2, 9, 15}, 40))
	}
	held := heldSample(f)
	f.Add(uint8(held.Kind), held.ExpiresNs, held.Payload, t0+sec, bytes.Repeat([]byte{1, 210, 1, 2, 0, 5, 220, 0, 2, 0, 3, 7, 0, 0, 1}, 12))
	f.Add(uint8(held.Kind), held.ExpiresNs, held.Payload, t0+9*sec, bytes.Repeat([]byte{8, 230, 2, 1, 1, 9, 201, 1, 3, 0, 15, 7, 2, 4, 6}, 12))
	f.Add(uint8(held.Kind), held.ExpiresNs, held.Payload[:len(held.Payload)-3], t0, bytes.Repeat([]byte{1, 210, 1, 2, 0, 5}, 12))
	f.Fuzz(func(t *testing.T, kind uint8, expiresNs int64, payload []byte, nowNs int64, steps []byte) {
		s := State{Kind: Kind(kind) % Kinds, ExpiresNs: expiresNs, Payload: payload}
		valid := Valid(&s) == nil
		var notes Notes
		for in := (tape{steps}); len(in.b) > 0; {
			notes.Reset()
			s.Notes = &notes
			nowNs = funnel.After(nowNs, uint64(max(in.number(), 0)))
			before := State{Kind: s.Kind, ExpiresNs: s.ExpiresNs, Payload: bytes.Clone(s.Payload)}
			var changed bool
			var err error
			switch c := in.byte(); {
			case c >= 250: // the time goes back, as on another machine
				Shift(&s, in.number())
				nowNs, changed = nowNs-in.number(), true
			case c >= 200:
				changed, err = in.ofHolds().Do(&s, nowNs)
			case c%2 == 0:
				r := in.rule()
				_, changed, err = r.Decide(&s, nowNs, in.number())
			default:
				o := in.operation()
				changed, err = o.Do(&s, nowNs)
			}
			live := s.ExpiresNs > nowNs
			for of := range notes.Spent {
				if valid && err != nil && of.Units > 0 {
					t.Fatalf("an error has spent %+v", of)
				}
			}
			for _, h := range LookAtHolds(&s, nowNs) {
				if valid && !h.Overdue && h.EndNs <= nowNs {
					t.Fatalf("%+v is looked at", h)
				}
			}
			s.Notes = nil
			if err != nil && changed {
				t.Fatalf("an error has changed %+v to %+v", before, s)
			}
			if !changed && live && (s.Kind != before.Kind || s.ExpiresNs != before.ExpiresNs || len(s.Payload) > len(before.Payload)) {
				t.Fatalf("%+v is said not to have changed, and is %+v", before, s)
			}
			if !live { // a store drops it
				s, valid = State{Payload: s.Payload[:0]}, true
			}
			if b := AppendState(nil, &s); valid && live {
				if again, _, ok := ReadState(b); ok && !bytes.Equal(AppendState(nil, &again), b) {
					t.Fatalf("%+v is read as %+v", s, again)
				}
			}
			if err := Valid(&s); valid && live && err != nil {
				t.Fatalf("%+v was valid, and is %+v", before, s)
			}
			if _, err := s.TAT(nowNs); live && err != nil && (s.Kind == Funnel || s.Kind == Reserving) {
				t.Fatalf("TAT of %+v: %v", s, err)
			}
			if len(s.Payload) > len(before.Payload)+1<<18 {
				t.Fatalf("a payload of %d bytes has become %d", len(before.Payload), len(s.Payload))
			}
		}
	})
}

// samples returns a live state of each kind.
func samples(t testing.TB) []State {
	t.Helper()
	l := mustFunnel(t, 10, 1, 1)
	states := make([]State, Kinds)
	for _, kind := range []Kind{Funnel, FixedWindow, SlidingWindow, ApproxWindow, Named} {
		r := ruleOf(t, kind)
		for i := range int64(5) {
			mustDecide(t, &r, &states[kind], t0+i*ms, 1)
		}
	}
	for kind := Named + 1; kind < Kinds; kind++ {
		var r Rule
		if r = ruleOf(t, kind); r.Shared == nil && kind != Value {
			t.Fatalf("no rule for %s", kind)
		}
		mustDecide(t, &r, &states[kind], t0, 1)
	}
	for _, o := range []struct {
		kind Kind
		o    Operation
	}{
		{Reserving, Operation{Verb: Reserve, Funnel: l, Quantity: 2, ID: 1, TTLNs: sec}},
		{Reserving, Operation{Verb: Reserve, Funnel: l, Quantity: 3, ID: 2, TTLNs: 2 * sec}},
		{Bucket, Operation{Verb: Add, Max: 10, Quantity: 7}},
		{Concurrency, Operation{Verb: Acquire, Max: 2, ID: 1, TTLNs: sec}},
		{Concurrency, Operation{Verb: Acquire, Max: 2, ID: 2, TTLNs: 2 * sec}},
	} {
		mustDo(t, &states[o.kind], t0, &o.o)
	}
	for kind := range states {
		if states[kind].Kind != Kind(kind) {
			t.Fatalf("the sample of %s is %+v", Kind(kind).Type(), states[kind])
		}
	}
	return states
}

// heldSample returns a live state with holds of each algorithm, open and overdue.
func heldSample(t testing.TB) (s State) {
	t.Helper()
	rules := []NamedRule{PlainRule(mustFunnel(t, 20, 5, 60), 60*sec)}
	for i, kind := range []Kind{Funnel, FixedWindow, ApproxWindow, Quota} {
		rules = append(rules, OtherRule(ruleOf(t, kind), string(rune('a'+i))))
	}
	n := NewNamedLimit(rules, 0)
	n.Shadow = true // so that all are charged
	for i := range byte(4) {
		r := OfNamed(n.Holding(&Hold{ID: HoldID{i}, TTLNs: (1 + int64(i)) * sec, Charge: i%2 == 0}))
		mustDecide(t, &r, &s, t0, 2)
	}
	return s
}
