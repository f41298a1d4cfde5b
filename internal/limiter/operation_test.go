package limiter

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/limiter/reserve"
	"cellserver/internal/limiter/window"
)

// ruleOf returns a kind's rule for 10 units; a funnel leaks one a second, a window lasts a minute.
func ruleOf(t testing.TB, kind Kind) Rule {
	t.Helper()
	l := mustFunnel(t, 10, 1, 1)
	w, err := window.NewExactLimit(funnel.Seconds, 10, 60)
	if err != nil {
		t.Fatal(err)
	}
	r := Rule{Kind: kind, Funnel: l, Packed: w.Packed()}
	switch kind {
	case Bucket:
		r.Packed = Packed{10}
	case Value:
		r = Rule{}
		r.Add(1)
	case Named:
		r.Shared = NewNamedLimit([]NamedRule{PlainRule(l, sec), PlainRule(l, 60*sec)}, 0)
	case Quota:
		r.Shared = calendar.New(calendar.Spec{Every: calendar.Year}, nil, &calendar.Wall{})
	default:
	}
	return r
}

// TestWrongType: calls for another kind are refused without a change, until the key expires.
func TestWrongType(t *testing.T) {
	t.Parallel()
	l := mustFunnel(t, 10, 1, 1)
	operations := map[Kind][]Verb{
		Funnel:      {Reserve, Commit, Wait, GiveBack},
		Bucket:      {Add, Fill, Level},
		Concurrency: {Acquire, Release, Renew, Holders},
	}
	for _, sample := range samples(t) {
		of := sample.Kind
		if of == Reserving {
			of = Funnel
		}
		try := func(name string, kind Kind, do func(s *State, nowNs int64) error) {
			t.Helper()
			s := State{Kind: sample.Kind, ExpiresNs: sample.ExpiresNs, Payload: bytes.Clone(sample.Payload)}
			switch err := do(&s, t0+5*ms); {
			case kind == of && err != nil:
				t.Errorf("%s of a %s: %v", name, sample.Kind.Type(), err)
			case kind != of && (!errors.Is(err, ErrWrongType) || s.Kind != sample.Kind || s.ExpiresNs != sample.ExpiresNs || !bytes.Equal(s.Payload, sample.Payload)):
				t.Errorf("%s of a %s: got %v, and %+v became %+v", name, sample.Kind.Type(), err, sample, s)
			}
			s = State{Kind: sample.Kind, ExpiresNs: t0 + 5*ms, Payload: bytes.Clone(sample.Payload)}
			if err := do(&s, t0+5*ms); err != nil {
				t.Errorf("%s of an expired %s: %v", name, sample.Kind.Type(), err)
			}
		}
		for _, kind := range []Kind{Funnel, FixedWindow, SlidingWindow, ApproxWindow, Bucket, Named, Value} {
			for _, quantity := range []int64{-1, 0, 1, 100} {
				r := ruleOf(t, kind)
				try("a request", kind, func(s *State, nowNs int64) error {
					_, _, err := r.Decide(s, nowNs, quantity)
					return err
				})
			}
		}
		for kind, verbs := range operations {
			for _, verb := range verbs {
				try("an operation", kind, func(s *State, nowNs int64) error {
					o := Operation{Verb: verb, Funnel: l, Quantity: 1, Max: 5, ID: 9, TTLNs: sec, DebitNs: 1}
					_, err := o.Do(s, nowNs)
					return err
				})
			}
		}
	}
}

// TestExpireOnDemand: only values and buckets get another expiry, and any key is gone if the time has passed.
func TestExpireOnDemand(t *testing.T) {
	for _, s := range samples(t) {
		kind, before := s.Kind, s.ExpiresNs
		endless := kind == Bucket || kind == Value
		for _, tt := range []struct {
			atNs  int64
			count bool
		}{{t0 + 5*sec, true}, {NeverNs, endless}, {NeverNs, false}} {
			o := Operation{Verb: Expire, AtNs: tt.atNs}
			wantNs := before
			if endless {
				wantNs = tt.atNs
			}
			if changed := mustDo(t, &s, t0+5*ms, &o); changed != (endless && tt.count) || (o.Count == 1) != tt.count || s.ExpiresNs != wantNs {
				t.Errorf("%s, %d: count %d, changed %v, expires at %d", kind.Type(), tt.atNs, o.Count, changed, s.ExpiresNs)
			}
		}
		o := Operation{Verb: Expire, AtNs: t0}
		if !mustDo(t, &s, t0+5*ms, &o) || o.Count != 1 || s.ExpiresNs > t0+5*ms {
			t.Errorf("%s: count %d, expires at %d", kind.Type(), o.Count, s.ExpiresNs)
		}
		o = Operation{Verb: Expire, AtNs: NeverNs}
		if s.ExpiresNs = t0; mustDo(t, &s, t0, &o) || o.Count != 0 {
			t.Errorf("an expired %s: count %d", s.Kind.Type(), o.Count)
		}
	}
}

func TestReserveAndCommit(t *testing.T) {
	l := mustFunnel(t, 10, 1, 1)
	var s State
	do := func(atSec int64, o Operation) Operation {
		t.Helper()
		mustDo(t, &s, t0+atSec*sec, &o)
		return o
	}
	reserveOf := func(id uint64, units, ttlSec int64) Operation {
		return Operation{Verb: Reserve, Funnel: l, ID: id, Quantity: units, TTLNs: ttlSec * sec}
	}
	if r := do(0, reserveOf(1, 6, 100)).Result; r != (funnel.Result{Limit: 10, Remaining: 4, RetryAfter: -1, ResetAfter: 6}) {
		t.Errorf("reserve: got %+v", r)
	}
	if s.Kind != Reserving || s.ExpiresNs != t0+100*sec {
		t.Errorf("reserved: %+v", s)
	}
	if r := do(0, reserveOf(2, 5, 100)).Result; r != (funnel.Result{Limited: true, Limit: 10, Remaining: 4, RetryAfter: 1, ResetAfter: 6}) {
		t.Errorf("one that does not fit: got %+v", r)
	}
	if r := mustDecide(t, &Rule{Funnel: l}, &s, t0, 5); !r.Limited || r.Remaining != 4 {
		t.Errorf("a request: got %+v", r)
	}
	if n := do(1, Operation{Verb: Commit, ID: 7}).Count; n != 0 {
		t.Errorf("an unknown one: got %d", n)
	}
	if n := do(1, Operation{Verb: Commit, ID: 1, Quantity: 2}).Count; n != 1 || s.Kind != Funnel || s.ExpiresNs != t0+2*sec || len(s.Payload) != 0 {
		t.Errorf("committed: count %d and %+v", n, s)
	}
	if n := do(1, Operation{Verb: Commit, ID: 1, Quantity: 2}).Count; n != 0 || s.ExpiresNs != t0+2*sec {
		t.Errorf("committed again: count %d and %+v", n, s)
	}
	do(1, reserveOf(3, 5, 100))
	if n := do(1, Operation{Verb: Commit, ID: 3, Quantity: 50}).Count; n != 1 || s.ExpiresNs != t0+52*sec {
		t.Errorf("committed more: count %d and %+v", n, s)
	}
	s = State{}
	do(0, reserveOf(4, 5, 2))
	if r := mustDecide(t, &Rule{Funnel: l}, &s, t0+2*sec, 10); r.Limited || s.Kind != Funnel {
		t.Errorf("after it has expired: got %+v and %+v", r, s)
	}
	if do(0, reserveOf(5, 0, 2)); s.Kind != Funnel {
		t.Errorf("a reservation of nothing: %+v", s)
	}
}

func TestTooManyOpen(t *testing.T) {
	ledger := reserve.New(nil, t0)
	for id := range uint64(reserve.MaxOpen) {
		ledger.Reserve(t0, t0+int64(id+1)*sec, id, sec, 1, uint64(sec))
	}
	payload, before := ledger.Close()
	s := State{Kind: Reserving, ExpiresNs: before, Payload: payload}
	o := Operation{Verb: Reserve, Funnel: mustFunnel(t, 10_000, 1, 1), ID: reserve.MaxOpen, Quantity: 1, TTLNs: sec}
	if changed, err := o.Do(&s, t0); !errors.Is(err, ErrTooManyOpen) || changed || s.ExpiresNs != before || o.Result != (funnel.Result{}) {
		t.Errorf("got %v, changed %v", err, changed)
	}
	if mustDo(t, &s, t0+sec, &o); o.Result.Limited || s.ExpiresNs != t0+2*sec || len(s.Payload) > 100 {
		t.Errorf("when all have expired: got %+v, and a payload of %d bytes", o.Result, len(s.Payload))
	}
}

func TestWaitAndGiveBack(t *testing.T) {
	l := mustFunnel(t, 2, 1, 1)
	for _, reserving := range []bool{false, true} {
		var s State
		if reserving {
			mustDo(t, &s, t0, &Operation{Verb: Reserve, Funnel: l, Quantity: 1, ID: 1, TTLNs: 100 * sec})
		} else {
			mustDecide(t, &Rule{Funnel: l}, &s, t0, 1)
		}
		var second Operation
		for i, tt := range []struct {
			quantity, ttlSec int64
			waitNs           int64
			want             funnel.Result
		}{
			{1, 0, 0, funnel.Result{Limit: 2, RetryAfter: -1, ResetAfter: 2}},
			{1, 1, sec, funnel.Result{Limit: 2, RetryAfter: -1, ResetAfter: 3}},
			{2, 3, 3 * sec, funnel.Result{Limit: 2, RetryAfter: -1, ResetAfter: 5}},
			{1, 3, 0, funnel.Result{Limited: true, Limit: 2, RetryAfter: 4, ResetAfter: 5}},
			{3, math.MaxInt64 / sec, 0, funnel.Result{Limited: true, Limit: 2, RetryAfter: -1, ResetAfter: 5}},
			{0, 10, 0, funnel.Result{Limited: true, Limit: 2, RetryAfter: 3, ResetAfter: 5}},
			{-1, 10, 0, funnel.Result{Limit: 2, RetryAfter: -1, ResetAfter: 4}},
		} {
			o := Operation{Verb: Wait, Funnel: l, Quantity: tt.quantity, TTLNs: tt.ttlSec * sec}
			changed := mustDo(t, &s, t0, &o)
			if o.Result != tt.want || o.WaitNs != tt.waitNs || changed != (!tt.want.Limited) {
				t.Errorf("call %d: got %+v, %d ns to wait, want %+v, %d", i, o.Result, o.WaitNs, tt.want, tt.waitNs)
			}
			if i == 2 {
				second = o
			}
		}
		if second.DebitNs != uint64(2*sec) {
			t.Errorf("the debit was %d ns, want 2 s", second.DebitNs)
		}
		second.Verb = GiveBack
		if mustDo(t, &s, t0, &second); mustTAT(t, &s, t0) != t0+2*sec {
			t.Errorf("given back: %+v", s)
		}
		if mustDo(t, &s, t0+sec, &second); mustTAT(t, &s, t0+sec) != t0+sec {
			t.Errorf("given back more than charged: %+v", s)
		}
		if mustDo(t, &s, t0+sec, &second) {
			t.Error("giving back to an empty funnel changed it")
		}
	}
}

func TestMakesKey(t *testing.T) {
	t.Parallel()
	l := mustFunnel(t, 10, 1, 1)
	for kind := range Kinds {
		for _, flags := range []Flags{0, CountDenied, Debit} {
			if flags == Debit && kind == SlidingWindow {
				continue // has none
			}
			for _, quantity := range []int64{math.MinInt64, -1, 0, 1, 10, 11, math.MaxInt64} {
				var s State
				r := ruleOf(t, kind)
				r.Flags = flags
				_, changed, err := r.Decide(&s, t0, quantity)
				if err == nil && (changed != r.MakesKey(quantity) || changed != (s.ExpiresNs > t0)) {
					t.Errorf("%s, flags %d, quantity %d: got %v, want %v: %+v", kind.Type(), flags, quantity, !changed, changed, s)
				}
			}
		}
	}
	for verb := Reserve; verb <= GiveBack; verb++ {
		for _, n := range []int64{0, 1, 11} {
			var s State
			o := Operation{Verb: verb, Funnel: l, Quantity: n, Max: n, ID: 1, TTLNs: sec, AtNs: NeverNs}
			makes := o.MakesKey()
			if _, err := o.Do(&s, t0); err == nil && s.ExpiresNs > t0 && !makes {
				t.Errorf("verb %d of %d made %+v", verb, n, s)
			}
		}
	}
}

func TestDoesNotAllocate(t *testing.T) {
	l := mustFunnel(t, 100, 100, 1)
	named := NewNamedLimit([]NamedRule{PlainRule(l, sec), PlainRule(mustFunnel(t, 5000, 5000, 60), 60*sec)}, 0.8)
	kinds := make([]NamedRule, 0, MaxRules)
	for _, kind := range []Kind{Funnel, FixedWindow, ApproxWindow, SlidingWindow, Quota} {
		kinds = append(kinds, OtherRule(ruleOf(t, kind), "a"), OtherRule(ruleOf(t, kind), "b"))
	}
	few, many := NewNamedLimit(kinds[6:9], 0.8), NewNamedLimit(kinds, 0.8)
	quota := ruleOf(t, Quota)
	states, manyKinds := make([]State, Kinds), make([]State, 2)
	nowNs := t0
	for name, call := range map[string]func(){
		"reserve and commit": func() {
			reserved := Operation{Verb: Reserve, Funnel: l, Quantity: 2, ID: uint64(nowNs), TTLNs: sec}
			mustDo(t, &states[Reserving], nowNs, &reserved)
			mustDecide(t, &Rule{Funnel: l}, &states[Reserving], nowNs, 1)
			mustDo(t, &states[Reserving], nowNs, &Operation{Verb: Commit, ID: uint64(nowNs), Quantity: 1})
			mustDo(t, &states[Reserving], nowNs, &reserved)
		},
		"wait":             func() { mustDo(t, &states[Funnel], nowNs, &Operation{Verb: Wait, Funnel: l, Quantity: 2, TTLNs: sec}) },
		"check":            func() { mustDecide(t, &Rule{Kind: Named, Shared: named}, &states[Named], nowNs, 1) },
		"check few kinds":  func() { mustDecide(t, &Rule{Kind: Named, Shared: few}, &manyKinds[0], nowNs, 1) },
		"check many kinds": func() { mustDecide(t, &Rule{Kind: Named, Shared: many}, &manyKinds[1], nowNs, 1) },
		"quota":            func() { mustDecide(t, &quota, &states[Quota], nowNs, 1) },
		"acquire and release": func() {
			mustDo(t, &states[Concurrency], nowNs, &Operation{Verb: Acquire, Max: 10, ID: 1, TTLNs: sec})
			mustDo(t, &states[Concurrency], nowNs, &Operation{Verb: Release, ID: 1})
		},
		"add and level": func() {
			mustDo(t, &states[Bucket], nowNs, &Operation{Verb: Add, Max: 1 << 40, Quantity: 1})
			mustDo(t, &states[Bucket], nowNs, &Operation{Verb: Level})
		},
	} {
		again := func() {
			nowNs += 50 * ms
			call()
		}
		for range 100 {
			again()
		}
		if n := testing.AllocsPerRun(1000, again); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
