package shard

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestMoreShapesThanNumbers: limits with more different numbers than a table has for shapes decide as
// limiter.Rule does, with keys of any length, and shapes without states give their numbers back.
func TestMoreShapesThanNumbers(t *testing.T) {
	t.Parallel()
	const seed = 7
	t.Logf("seed %d", seed)
	r, s, nowNs := rand.New(rand.NewPCG(seed, 0)), newStore(1), t0
	var rules []limiter.Rule
	for i := range 3 * int64(mostShapes) {
		one := limiter.PlainRule(limit(t, 100+i, 1+i, 60), 60*sec)
		two := limiter.PlainRule(limit(t, 10+i, 1+i, 3600), 3600*sec)
		window := limiter.Spec{Kind: limiter.FixedWindow, Unit: funnel.WholeSeconds, Numbers: limiter.Numbers{9 + i, 60}}
		var fixed limiter.Rule
		if err := window.Build(&fixed); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, fixed, limiter.OfNamed(limiter.NewNamedLimit([]limiter.NamedRule{one}, 0)),
			limiter.OfNamed(limiter.NewNamedLimit([]limiter.NamedRule{one, two}, 0)),
			limiter.OfNamed(limiter.NewNamedLimit([]limiter.NamedRule{limiter.OtherRule(fixed, fmt.Sprint("fixed ", i))}, 0)))
	}
	states := map[string]*limiter.State{}
	for range 40_000 {
		nowNs += r.Int64N(sec / 100)
		i := r.IntN(2000)
		name := fmt.Appendf(nil, "%d:%0*d", i, 1+i%40, i)
		db := uint16(i % 2 * 3)
		rule := rules[(i+i%7)%len(rules)]
		if i%5 == 0 { // the same key by other numbers
			rule = rules[r.IntN(len(rules))]
		}
		var q [1]store.Request
		q[0] = store.Request{Key: store.Key{DB: db, Name: name}, Rule: rule, Quantity: r.Int64N(5) - 1}
		was := states[string(name)]
		if was == nil {
			was = &limiter.State{}
			states[string(name)] = was
		}
		want, _, err := rule.Decide(was, nowNs, q[0].Quantity)
		s.Throttle(nowNs, q[:])
		if q[0].Result != want || !errors.Is(q[0].Err, err) {
			t.Fatalf("%q: got %+v, %v, want %+v, %v", name, q[0].Result, q[0].Err, want, err)
		}
		if got, ok, _ := s.State(nowNs, q[0].Key); ok && (got.Kind != was.Kind || got.ExpiresNs != was.ExpiresNs || !bytes.Equal(got.Payload, was.Payload)) {
			t.Fatalf("%q: the state is %+v, want %+v", name, got, *was)
		}
	}
	for i := range s.shards {
		sh := &s.shards[i]
		for _, of := range []*table{&sh.inline, &sh.packed} {
			if got, want := countShapes(of), of.count; got != want || want == 0 {
				t.Errorf("%d states are of shapes, want %d", got, want)
			}
		}
		if sh.long.count == 0 {
			t.Error("no state has a payload: the shapes had numbers for all")
		}
	}
	w := NewSweeper(s)
	for range 10_000 {
		w.Step(nowNs + 24*3600*sec)
	}
	for i := range s.shards {
		if n := countShapes(&s.shards[i].inline) + countShapes(&s.shards[i].packed); n != 0 {
			t.Errorf("%d expired states are counted", n)
		}
	}
}

func countShapes(t *table) (n int) {
	for _, states := range t.shapes.states {
		n += states
	}
	return n
}
