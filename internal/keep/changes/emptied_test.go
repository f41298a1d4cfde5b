package changes

import (
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// TestEmptiedDuringARound: a key that is emptied after the time of a round is told as a removed one, because
// such a state cannot be read back.
func TestEmptiedDuringARound(t *testing.T) {
	for _, kind := range []limiter.Kind{limiter.SlidingWindow, limiter.ApproxWindow, limiter.Bucket} {
		spec := limiter.Spec{Kind: kind, Numbers: limiter.Numbers{10, 1000}}
		var rule limiter.Rule
		if err := spec.Build(&rule); err != nil {
			t.Fatal(err)
		}
		s, atNs := shard.New(), nowNs
		feed := New(s, func() int64 { return atNs }).NewFeed(func() {}, ample)
		call := func(quantity int64) {
			s.Throttle(atNs, []store.Request{{Key: store.Key{Name: []byte("key")}, Rule: rule, Quantity: quantity}})
		}
		first, second := int64(1), int64(-1) // of a bucket, which is filled by what others give back
		if kind == limiter.Bucket {
			first, second = second, first
		}
		feed.gatherer.now = func() int64 { // the calls come between each reading and the gathering
			before := atNs
			call(first)
			atNs++
			call(second)
			return before
		}
		complete, err := feed.Round(func(p Piece) error {
			return Read(p.Records, func(c store.Change) {
				if c.State.ExpiresNs > atNs {
					t.Errorf("kind %d: %+v", kind, c)
				}
			})
		})
		if !complete || err != nil {
			t.Errorf("kind %d: complete %t, %v", kind, complete, err)
		}
	}
}
