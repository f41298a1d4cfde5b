package shard

import (
	"fmt"
	"sync"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestSpentBesideRounds: what is spent under a limit is neither missed nor counted twice while rounds
// move it, and other limits are apart.
func TestSpentBesideRounds(t *testing.T) {
	const debits, units = 2000, 3
	s, n := New(), budgetLimit(t)
	s.Track(func() {})
	debit := func(limit string, i int) {
		q := store.Request{Key: store.Key{Name: fmt.Appendf(nil, "%s:%d", limit, i%97)}, Rule: limiter.OfNamed(n), Quantity: units}
		q.Rule.Flags = limiter.Debit
		batch := []store.Request{q}
		if s.Throttle(t0, batch); batch[0].Err != nil {
			t.Error(batch[0].Err)
		}
	}
	var writer, rounds sync.WaitGroup
	writer.Go(func() {
		for i := range debits {
			debit("a", i)
			debit("b", i)
		}
	})
	done := make(chan struct{})
	rounds.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				store.Round(s, t0, func(store.Change) {})
			}
		}
	})
	sum := func(limit string) (sum int64) {
		for at, units := range s.Spent(limit) {
			if at.Limit != limit {
				t.Errorf("of %s: %+v", limit, at)
			}
			sum += units
		}
		return sum
	}
	for last := int64(0); last < debits*units; {
		now := sum("a")
		if now < last || now%units != 0 || now > debits*units {
			t.Fatalf("%d after %d", now, last)
		}
		last = now
	}
	writer.Wait()
	close(done)
	rounds.Wait()
	if a, b, none := sum("a"), sum("b"), sum("c"); a != debits*units || b != debits*units || none != 0 {
		t.Errorf("%d, %d and %d are spent, want %d of the first two", a, b, none, debits*units)
	}
}
