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

// TestStatesOfTests: limitertest's states are valid and live as long as promised.
func TestStatesOfTests(t *testing.T) {
	for kind := range limiter.Kinds {
		s, want := stateOf(t, kind, t0), int64(t0)
		switch kind {
		case limiter.Bucket:
			want = limiter.NeverNs
		case limiter.ApproxWindow: // which counts on in the period after its own
			want = t0 + limitertest.LifeNs
		default:
		}
		if s.Kind != kind || s.ExpiresNs != want || limiter.Valid(&s) != nil || (len(s.Payload) == 0) != (kind == limiter.Funnel) {
			t.Errorf("%s: %+v, want it to expire at %d", kind, s, want)
		}
	}
}

func TestKindsByName(t *testing.T) {
	for kind := range limiter.Kinds {
		if got, ok := limiter.KindOf(kind.String()); got != kind || !ok {
			t.Errorf("%s is read as %d, %t", kind, got, ok)
		}
	}
	for _, name := range []string{"", "string", "Funnel", "cl-"} {
		if got, ok := limiter.KindOf(name); ok {
			t.Errorf("%q is read as %s", name, got)
		}
	}
}

// TestShift: a state on another clock is the one that was made there.
func TestShift(t *testing.T) {
	for kind := range limiter.Kinds {
		for _, byNs := range []int64{0, 1, -1, 3600e9, -3600e9, 1 << 60} {
			s, want := stateOf(t, kind, t0), stateOf(t, kind, t0+byNs)
			if limiter.Shift(&s, byNs); !reflect.DeepEqual(s, want) || limiter.Valid(&s) != nil {
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
			t.Fatalf("%q is read as %+v", b, s)
		}
		again, rest, ok := limiter.ReadState(append(limiter.AppendState(nil, &s), "behind"...))
		if !ok || string(rest) != "behind" || !reflect.DeepEqual(again, s) {
			t.Fatalf("%+v is written and read as %+v", s, again)
		}
		s.Payload = bytes.Clone(s.Payload)
		limiter.Shift(&s, byNs) // which is total
	})
}
