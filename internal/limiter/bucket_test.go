package limiter

import (
	"math"
	"testing"

	"cellserver/internal/funnel"
)

// bucket is the state of a bucket's key.
type bucket struct{ State }

func (b *bucket) take(t *testing.T, capacity, quantity int64) (r funnel.Result, changed bool) {
	t.Helper()
	rule := Rule{Kind: Bucket, Packed: Packed{capacity}}
	r, changed, err := rule.Decide(&b.State, t0, quantity)
	if err != nil {
		t.Fatal(err)
	}
	return r, changed
}

func (b *bucket) add(t *testing.T, capacity, quantity int64) (fitted int64) {
	t.Helper()
	o := Operation{Verb: Add, Max: capacity, Quantity: quantity}
	mustDo(t, &b.State, t0, &o)
	return o.Count
}

func (b *bucket) fill(t *testing.T, capacity int64) {
	t.Helper()
	mustDo(t, &b.State, t0, &Operation{Verb: Fill, Max: capacity})
}

// TestArticlesBucket: RESET 5: 5 allowed, 3 limited, ADD 10 = 5, 5 allowed, 1 limited.
func TestArticlesBucket(t *testing.T) {
	var b bucket
	b.fill(t, 5)
	ask := func(n int, limited bool) {
		t.Helper()
		for range n {
			if r, _ := b.take(t, 5, 1); r.Limited != limited || r.RetryAfter != -1 || r.ResetAfter != -1 || r.Limit != 5 {
				t.Fatalf("got %+v, want limited %v", r, limited)
			}
		}
	}
	ask(5, false)
	ask(3, true)
	if n := b.add(t, 5, 10); n != 5 {
		t.Fatalf("%d of 10 fitted, want 5", n)
	}
	ask(5, false)
	ask(1, true)
}

func TestTakeFromBuckets(t *testing.T) {
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
		{"more than the capacity", 9, 5, 6, false, 3}, // filled by a larger capacity
		{"a refund", 3, 5, -1, false, 4},
		{"a refund of more than fits", 3, 5, math.MinInt64, false, 5},
		{"a refund beyond the capacity", 9, 5, -1, false, 9},
		{"a refund to an absent one", 0, 5, -2, false, 2},
	} {
		var b bucket
		b.add(t, math.MaxInt64, tt.level)
		r, changed := b.take(t, tt.capacity, tt.quantity)
		if want := (funnel.Result{Limited: tt.limited, Limit: tt.capacity, Remaining: tt.left, RetryAfter: -1, ResetAfter: -1}); r != want {
			t.Errorf("%s: got %+v, want %+v", tt.name, r, want)
		}
		if changed != (tt.left != tt.level) || b.Left() != tt.left || (b.ExpiresNs > t0) != (tt.left > 0) {
			t.Errorf("%s: got %+v and changed %v", tt.name, b, changed)
		}
	}
}

// TestExpiryOfBuckets: a bucket expires on demand only; TAKE and ADD keep its expiry, RESET and emptiness do
// not.
func TestExpiryOfBuckets(t *testing.T) {
	const atNs = t0 + 1000
	var b bucket
	if b.add(t, 5, 3); b.ExpiresNs != NeverNs {
		t.Errorf("a new one expires at %d", b.ExpiresNs)
	}
	b.ExpiresNs = atNs
	b.take(t, 5, 1)
	if b.add(t, 5, 1); b.ExpiresNs != atNs {
		t.Errorf("it expires at %d, want %d", b.ExpiresNs, atNs)
	}
	if b.fill(t, 5); b.ExpiresNs != NeverNs {
		t.Errorf("one that was filled expires at %d", b.ExpiresNs)
	}
	if b.ExpiresNs = atNs; Valid(&b.State) != nil {
		t.Errorf("%v is not valid", b.Payload)
	}
	if b.take(t, 5, 5); b.ExpiresNs != t0 || len(b.Payload) != 0 {
		t.Errorf("an empty one is %+v", b)
	}
	b.add(t, 5, 3)
	b.ExpiresNs = t0
	if r, _ := b.take(t, 5, 1); !r.Limited {
		t.Errorf("one that has expired gives %+v", r)
	}
}

func TestDamagedBucketIsEmpty(t *testing.T) {
	for _, payload := range [][]byte{nil, {1}, make([]byte, 8), make([]byte, 9), {0, 0, 0, 0, 0, 0, 0, 0x80}} {
		s := State{Kind: Bucket, ExpiresNs: NeverNs, Payload: payload}
		if Valid(&s) == nil || s.Left() != 0 {
			t.Errorf("%v: level %d", payload, s.Left())
		}
	}
}

func TestCheckCapacity(t *testing.T) {
	if err := CheckCapacity(0); err == nil || err.Error() != "capacity must be at least 1, got 0" {
		t.Errorf("got %v", err)
	}
}

func TestShareOfUnits(t *testing.T) {
	for _, tt := range []struct {
		capacity int64
		share    float64
		want     int64
	}{{10, 1, 10}, {10, 0.5, 5}, {10, 0.25, 2}, {1, 0.1, 1}, {0, 0.5, 0}} {
		for _, kind := range []Kind{Bucket, FixedWindow, SlidingWindow, ApproxWindow, Quota} {
			got := Rule{Kind: kind, Packed: Packed{tt.capacity, 60}}
			if got.Share(tt.share); got.Packed != (Packed{tt.want, 60}) {
				t.Errorf("%s, %+v: got %+v", kind, tt, got)
			}
		}
	}
}
