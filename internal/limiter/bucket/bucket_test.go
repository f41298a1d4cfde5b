package bucket

import (
	"math"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel"
)

const t0 = int64(1_700_000_000_000_000_000)

func mustLimit(t testing.TB, capacity int64) Limit {
	t.Helper()
	l, err := NewLimit(capacity)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// bucket is a key's state.
type bucket struct {
	payload   []byte
	expiresNs int64
}

func (b *bucket) take(l Limit, quantity int64) (r funnel.Result, changed bool) {
	b.payload, b.expiresNs, r, changed = l.Take(b.payload, b.expiresNs, t0, quantity)
	return r, changed
}

func (b *bucket) add(l Limit, quantity int64) (fitted int64) {
	b.payload, b.expiresNs, fitted = l.Add(b.payload, b.expiresNs, t0, quantity)
	return fitted
}

// TestArticlesSample: RESET 5: 5 allowed, 3 limited, ADD 10 = 5, 5 allowed, 1 limited.
func TestArticlesSample(t *testing.T) {
	l := mustLimit(t, 5)
	var b bucket
	b.payload, b.expiresNs = l.Fill(b.payload, t0)
	ask := func(n int, limited bool) {
		t.Helper()
		for range n {
			if r, _ := b.take(l, 1); r.Limited != limited || r.RetryAfter != -1 || r.ResetAfter != -1 || r.Limit != 5 {
				t.Fatalf("got %+v, want limited %v", r, limited)
			}
		}
	}
	ask(5, false)
	ask(3, true)
	if n := b.add(l, 10); n != 5 {
		t.Fatalf("%d of 10 fitted, want 5", n)
	}
	ask(5, false)
	ask(1, true)
}

func TestTake(t *testing.T) {
	for _, tt := range []struct {
		name            string
		level, capacity int64
		quantity        int64
		limited         bool
		left            int64
	}{
		{"a look", 3, 5, 0, false, 3},
		{"of an empty one", 0, 5, 1, true, 0},
		{"a look at an empty one", 0, 5, 0, false, 0},
		{"all of it", 3, 5, 3, false, 0},
		{"more than it holds", 3, 5, 4, true, 3},
		{"more than the capacity", 9, 5, 6, false, 3}, // another capacity has filled it
		{"a refund", 3, 5, -1, false, 4},
		{"a refund of more than fits", 3, 5, math.MinInt64, false, 5},
		{"a refund to one that is too full", 9, 5, -1, false, 9},
		{"a refund to an absent one", 0, 5, -2, false, 2},
	} {
		var b bucket
		b.add(mustLimit(t, math.MaxInt64), tt.level)
		r, changed := b.take(mustLimit(t, tt.capacity), tt.quantity)
		if want := (funnel.Result{Limited: tt.limited, Limit: tt.capacity, Remaining: tt.left, RetryAfter: -1, ResetAfter: -1}); r != want {
			t.Errorf("%s: got %+v, want %+v", tt.name, r, want)
		}
		if changed != (tt.left != tt.level) || Level(b.payload) != tt.left || (b.expiresNs > t0) != (tt.left > 0) {
			t.Errorf("%s: got %+v and changed %v", tt.name, b, changed)
		}
	}
}

// TestExpiry: a bucket does not expire, but when it was told to, which TAKE and ADD keep, and RESET and emptiness do not.
func TestExpiry(t *testing.T) {
	l, atNs := mustLimit(t, 5), t0+1000
	var b bucket
	if b.add(l, 3); b.expiresNs != NeverNs {
		t.Errorf("a new one expires at %d", b.expiresNs)
	}
	b.expiresNs = atNs
	b.take(l, 1)
	if b.add(l, 1); b.expiresNs != atNs {
		t.Errorf("it expires at %d, want %d", b.expiresNs, atNs)
	}
	if b.payload, b.expiresNs = l.Fill(b.payload, t0); b.expiresNs != NeverNs {
		t.Errorf("one that was filled expires at %d", b.expiresNs)
	}
	if b.expiresNs = atNs; !Valid(b.payload) {
		t.Errorf("%v is not valid", b.payload)
	}
	if b.take(l, 5); b.expiresNs != t0 || len(b.payload) != 0 {
		t.Errorf("an empty one is %+v", b)
	}
	b.add(l, 3)
	b.expiresNs = t0
	if r, _ := b.take(l, 1); !r.Limited {
		t.Errorf("one that has expired gives %+v", r)
	}
}

func TestAgreesWithModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	var b bucket
	level := int64(0)
	for range 10_000 {
		l, n := mustLimit(t, 1+rng.Int64N(20)), rng.Int64N(8)
		switch rng.IntN(4) {
		case 0:
			fits := max(0, min(n, l.capacity-level))
			level += fits
			if got := b.add(l, n); got != fits {
				t.Fatalf("%d fitted, want %d", got, fits)
			}
		default:
			limited := n > level
			if !limited {
				level -= n
			}
			if r, _ := b.take(l, n); r.Limited != limited || r.Remaining != level {
				t.Fatalf("got %+v, want limited %v and %d left", r, limited, level)
			}
		}
	}
}

func TestDamagedIsEmpty(t *testing.T) {
	for _, payload := range [][]byte{nil, {1}, make([]byte, 8), make([]byte, 9), {0, 0, 0, 0, 0, 0, 0, 0x80}} {
		if Valid(payload) || Level(payload) != 0 {
			t.Errorf("%v: level %d", payload, Level(payload))
		}
	}
}

func TestNewLimitErrors(t *testing.T) {
	if _, err := NewLimit(0); err == nil || err.Error() != "capacity must be at least 1, got 0" {
		t.Errorf("got %v", err)
	}
}

func TestShare(t *testing.T) {
	for _, tt := range []struct {
		capacity int64
		share    float64
		want     int64
	}{{10, 1, 10}, {10, 0.5, 5}, {10, 0.25, 2}, {1, 0.1, 1}} {
		if got := mustLimit(t, tt.capacity).Share(tt.share); got.capacity != tt.want {
			t.Errorf("%+v: got %+v", tt, got)
		}
	}
	if l := (Limit{}).Share(0.5); l != (Limit{}) {
		t.Errorf("of nothing: %+v", l)
	}
}
