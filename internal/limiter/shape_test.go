package limiter

import (
	"bytes"
	"math"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
)

const shapeNowNs = 1_700_000_000_000_000_000

func shapeRule(t testing.TB, kind Kind, numbers ...int64) Rule {
	s := Spec{Kind: kind, Unit: funnel.WholeSeconds, Reading: funnel.Capacity}
	copy(s.Numbers[:], numbers)
	var r Rule
	if err := s.Build(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestStatesAreOfShapes: which states have a Shape, and that nothing of them is lost.
func TestStatesAreOfShapes(t *testing.T) {
	t.Parallel()
	plain := PlainRule(shapeRule(t, Funnel, 10, 5, 60).Funnel, 60e9)
	slow := PlainRule(shapeRule(t, Funnel, 100, 5, 3600).Funnel, 3600e9)
	bucket := OtherRule(shapeRule(t, Funnel, 10, 5, 60), "bucket")
	fixed := OtherRule(shapeRule(t, FixedWindow, 10, 60), "fixed")
	approx := OtherRule(shapeRule(t, ApproxWindow, math.MaxInt64, 60), "approx")
	named := func(rules ...NamedRule) Rule { return OfNamed(NewNamedLimit(rules, 0)) }
	for _, tt := range []struct {
		name     string
		rule     Rule
		quantity int64
		words    int // -1 for no Shape
	}{
		{"a funnel of a name", named(plain), 1, 0},
		{"a token bucket of a name", named(bucket), 1, 0},
		{"two funnels", named(plain, slow), 1, 2},
		{"a funnel and a token bucket", named(plain, bucket), 1, 2},
		{"three funnels", named(plain, slow, bucket), 1, -1},
		{"a funnel and a window", named(plain, fixed), 1, -1},
		{"a window of a name", named(fixed), 1, 1},
		{"an approximate window of a name", named(approx), 1, 2},
		{"an approximate window with 2^32 units", named(approx), 1 << 32, -1},
		{"a fixed window", shapeRule(t, FixedWindow, 10, 60), 1, 1},
		{"an approximate window", shapeRule(t, ApproxWindow, 10, 60), 1, 2},
		{"an exact window", shapeRule(t, SlidingWindow, 10, 60), 1, -1},
		{"a bucket", shapeRule(t, Bucket, 10), 0, -1},
	} {
		s := tt.rule.Full(shapeNowNs)
		if _, _, err := tt.rule.Decide(&s, shapeNowNs, tt.quantity); err != nil {
			t.Fatal(err)
		}
		f, w, ok := Pack(&s)
		if ok != (tt.words >= 0) {
			t.Errorf("%s: of a shape: %t", tt.name, ok)
			continue
		}
		if _, likely := tt.rule.Words(); ok && !likely {
			t.Errorf("%s: its rule does not say that states are of shapes", tt.name)
		}
		if !ok {
			continue
		}
		if f.Words() != tt.words || f.Kind() != tt.rule.Kind {
			t.Errorf("%s: %d words of %s", tt.name, f.Words(), f.Kind())
		}
		if got := f.AppendPayload(nil, s.ExpiresNs, w); !bytes.Equal(got, s.Payload) {
			t.Errorf("%s: got %x, want %x", tt.name, got, s.Payload)
		}
		if again, ok := f.Repack(s.Payload); tt.words > 0 && (!ok || again != w) {
			t.Errorf("%s: the words are %x, want %x", tt.name, again, w)
		}
	}
}

// FuzzShape: what Pack takes from any state, AppendPayload gives back.
func FuzzShape(f *testing.F) {
	month, err := calendar.NewSet(&calendar.Wall{}, nil).Of(calendar.Spec{Every: calendar.Month})
	if err != nil {
		f.Fatal(err)
	}
	rules := []Rule{
		OfNamed(NewNamedLimit([]NamedRule{PlainRule(shapeRule(f, Funnel, 10, 5, 60).Funnel, 60e9), OtherRule(shapeRule(f, Funnel, 10, 5, 60), "b")}, 0)),
		OfNamed(NewNamedLimit([]NamedRule{OtherRule(shapeRule(f, ApproxWindow, 10, 60), "a")}, 0)),
		shapeRule(f, FixedWindow, 10, 60), shapeRule(f, ApproxWindow, 10, 60),
		{Kind: Quota, Shared: month, Packed: Packed{10}},
	}
	for _, r := range rules {
		var s State
		if _, _, err := r.Decide(&s, shapeNowNs, 1); err != nil {
			f.Fatal(err)
		}
		f.Add(byte(s.Kind), s.ExpiresNs, s.Payload)
	}
	f.Fuzz(func(t *testing.T, kind byte, expiresNs int64, payload []byte) {
		s := State{Kind: Kind(kind % byte(Kinds)), ExpiresNs: expiresNs, Payload: payload}
		shape, w, ok := Pack(&s)
		if !ok {
			return
		}
		if got := shape.AppendPayload(nil, expiresNs, w); !bytes.Equal(got, payload) {
			t.Fatalf("got %x, want %x", got, payload)
		}
		if shape.Words() > shapeWords {
			t.Fatalf("%d words", shape.Words())
		}
	})
}
