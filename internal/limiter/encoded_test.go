package limiter_test

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
)

const t0 = 1_700_000_000_000_000_000

func stateOf(t testing.TB, kind limiter.Kind, expiresNs int64) limiter.State {
	t.Helper()
	s, err := limitertest.State(kind, expiresNs, 3)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestKindsByName(t *testing.T) {
	for kind := range limiter.Kinds {
		if got, ok := limiter.KindOf(kind.String()); got != kind || !ok {
			t.Errorf("%s: got %d, %t", kind, got, ok)
		}
	}
	for _, name := range []string{"", "string", "Funnel", "cl-"} {
		if got, ok := limiter.KindOf(name); ok {
			t.Errorf("%q: got %s, want none", name, got)
		}
	}
}

// TestShift: a shifted state equals one made on the other clock.
func TestShift(t *testing.T) {
	for kind := range limiter.Kinds {
		for _, byNs := range []int64{0, 1, -1, 3600e9, -3600e9, 1 << 60} {
			s, want := stateOf(t, kind, t0), stateOf(t, kind, t0+byNs)
			if limiter.Shift(&s, byNs); s.Kind != kind || !reflect.DeepEqual(s, want) || limiter.Valid(&s) != nil {
				t.Errorf("%s shifted by %d: %+v, want %+v", kind, byNs, s, want)
			}
		}
	}
	s := limiter.State{ExpiresNs: math.MaxInt64 - 5}
	if limiter.Shift(&s, 7); s.ExpiresNs != math.MaxInt64 {
		t.Errorf("beyond the last time: %d", s.ExpiresNs)
	}
	s = limiter.State{ExpiresNs: math.MinInt64 + 5}
	if limiter.Shift(&s, -7); s.ExpiresNs != math.MinInt64 {
		t.Errorf("before the first time: %d", s.ExpiresNs)
	}
}

// FuzzReadState: every state read is valid and encoded identically.
func FuzzReadState(f *testing.F) {
	for kind := range limiter.Kinds {
		s := stateOf(f, kind, t0)
		f.Add(limiter.AppendState(nil, &s), int64(5))
	}
	f.Fuzz(func(t *testing.T, b []byte, byNs int64) {
		s, rest, ok := limiter.ReadState(b)
		if !ok {
			return
		}
		if limiter.Valid(&s) != nil || len(rest) >= len(b) {
			t.Fatalf("%q: got %+v", b, s)
		}
		again, rest, ok := limiter.ReadState(append(limiter.AppendState(nil, &s), "behind"...))
		if !ok || string(rest) != "behind" || !reflect.DeepEqual(again, s) {
			t.Fatalf("got %+v, want %+v", again, s)
		}
		s.Payload = bytes.Clone(s.Payload)
		limiter.Shift(&s, byNs) // must not panic
	})
}
