package script

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(1_000_000_000)
)

// someStates returns a state of each kind.
func someStates(t testing.TB) (states []limiter.State) {
	t.Helper()
	for kind := range limiter.Kinds {
		s, err := limitertest.State(kind, t0+limitertest.LifeNs, 2)
		if err != nil || s.Kind != kind {
			t.Fatalf("kind %v: %v, %v", kind, s.Kind, err)
		}
		states = append(states, s)
	}
	budget, err := limitertest.Budget(100, 3600)
	if err != nil {
		t.Fatal(err)
	}
	s, err := limitertest.Held(budget, t0, 5)
	if err != nil {
		t.Fatal(err)
	}
	return append(states, s) // with holds
}

func sameState(a, b limiter.State) bool {
	return a.Kind == b.Kind && a.ExpiresNs == b.ExpiresNs && bytes.Equal(a.Payload, b.Payload)
}

func TestValuesAreReadAsTheyAreWritten(t *testing.T) {
	states := someStates(t)
	if len(states) != int(limiter.Kinds)+1 {
		t.Fatalf("%d kinds, and there are %d", len(states), limiter.Kinds)
	}
	for _, want := range states {
		v := ValueOf(&want)
		got, err := ReadValue(v)
		if err != nil || !sameState(got, want) {
			t.Errorf("%v: got %+v, %v, want %+v", want.Kind, got, err, want)
		}
		kind, expiresNs, ok := ReadHead(v[:min(len(v), headBytes)])
		if !ok || kind != want.Kind || expiresNs != want.ExpiresNs {
			t.Errorf("%v: the head is %v, %d, %v", want.Kind, kind, expiresNs, ok)
		}
		if isText := !strings.HasPrefix(v, statePrefix); isText != (want.Kind == limiter.Funnel) {
			t.Errorf("%v: %q", want.Kind, v)
		}
		for n := range len(v) {
			if s, err := ReadValue(v[:n]); want.Kind != limiter.Funnel && !errors.Is(err, limiter.ErrWrongType) {
				t.Errorf("%v: the first %d of %d bytes are %+v, %v", want.Kind, n, len(v), s, err)
			}
		}
	}
}

func TestWhatIsNotOurs(t *testing.T) {
	for _, v := range []string{"", " ", "x", "-1", "+1", "01", "1.5", "1e9", "9223372036854775808", "12 ", "cl1", "cl1:", "cl2:xxxxxxxxxxxx",
		"cl1:\x0aaaaaaaaa\x00", "cl1:\x02aaaaaaaa\x00",
		prefixed(limiter.State{ExpiresNs: -1}), prefixed(limiter.State{ExpiresNs: t0}), strings.Repeat("9", 30)} {
		if s, err := ReadValue(v); !errors.Is(err, limiter.ErrWrongType) {
			t.Errorf("%q is %+v, %v", v, s, err)
		}
		if k, _, ok := ReadHead(v); ok && k == limiter.Funnel {
			t.Errorf("%q is the head of a funnel", v)
		}
	}
	if s, err := ReadValue("9223372036854775807"); err != nil || s.ExpiresNs != math.MaxInt64 {
		t.Errorf("the last TAT is %+v, %v", s, err)
	}
}

func prefixed(s limiter.State) string { return string(limiter.AppendState([]byte(statePrefix), &s)) }

// TestTimesToLive round up to a millisecond; states that never expire have none.
func TestTimesToLive(t *testing.T) {
	for _, c := range []struct {
		expiresNs int64
		want      uint64
	}{{t0 + 1, 1}, {t0 + 1_000_000, 1}, {t0 + 1_000_001, 2}, {t0 + sec, 1000}, {limiter.NeverNs, 0}, {limiter.NeverNs - 1, (math.MaxInt64 - uint64(t0)) / 1_000_000}} {
		s := limiter.State{Kind: limiter.Bucket, ExpiresNs: c.expiresNs}
		if got := pxOf(&s, t0, 0); got != c.want && got != c.want+1 || c.expiresNs < t0+2*sec && got != c.want {
			t.Errorf("%d ns: %d ms, want %d", c.expiresNs-t0, got, c.want)
		}
	}
}

func FuzzReadValue(f *testing.F) {
	for _, s := range someStates(f) {
		f.Add(ValueOf(&s))
	}
	f.Add("cl1:")
	f.Add(prefixed(limiter.State{ExpiresNs: -1}))
	f.Add("0")
	f.Fuzz(func(t *testing.T, v string) {
		s, err := ReadValue(v)
		if err != nil {
			return
		}
		again := ValueOf(&s)
		_, expiresNs, _ := ReadHead(v) // later than the state's if limiter.Accept has corrected it
		if expiresNs == s.ExpiresNs && len(again) == len(v) && again != v {
			t.Fatalf("%q is %+v, which is written as %q", v, s, again)
		}
		if second, err := ReadValue(again); err != nil || !sameState(second, s) {
			t.Fatalf("%+v is written as %q, which is read as %+v, %v", s, again, second, err)
		}
		_ = limiter.Shifted(s, 5)
	})
}
