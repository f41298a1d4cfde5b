package shard

import (
	"fmt"
	"sync"
	"testing"

	"cellserver/internal/funnel"
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

// TestSpentSaturates: a state and what was spent stay at the ends of 64 bits.
func TestSpentSaturates(t *testing.T) {
	n, s, k := budgetLimit(t), newStore(2), key(0, "team:a")
	debit := limiter.OfNamed(n)
	debit.Flags = limiter.Debit
	for range 4 {
		batch := []store.Request{{Key: k, Rule: debit, Quantity: funnel.MaxToleranceNs}, {Key: k, Rule: debit, Quantity: 1<<63 - 1}}
		if s.Throttle(t0, batch); batch[0].Err != nil || batch[1].Err != nil {
			t.Fatalf("%+v", batch)
		}
	}
	if spent := s.Spent("").Sorted(); len(spent) != 1 || spent[0].Units != 1<<63-1 {
		t.Errorf("spent %v", spent)
	}
}

// TestSpentWithoutConsequence: nothing is spent by a call that is denied, a constant, or refused.
func TestSpentWithoutConsequence(t *testing.T) {
	n, s, k := budgetLimit(t), newStore(2), key(0, "team:a")
	ask := func(n *limiter.NamedLimit, flags limiter.Flags, units int64) {
		t.Helper()
		rule := limiter.OfNamed(n)
		rule.Flags = flags
		batch := []store.Request{{Key: k, Rule: rule, Quantity: units}}
		s.Throttle(t0, batch)
	}
	for _, constant := range []limiter.Constant{limiter.Deny, limiter.Unlimited} {
		of := *n
		of.Constant = constant
		ask(&of, limiter.Debit, 5)
		ask(of.Holding(&limiter.Hold{ID: holdID(1), TTLNs: sec}), 0, 5)
	}
	ask(n, 0, 7)
	ask(n, 0, -3)
	ask(n, limiter.Debit, 0)
	ask(n, limiter.AtMost, 1)
	ask(n.Holding(&limiter.Hold{ID: holdID(1), TTLNs: sec}), 0, 2_000_000)
	s.Freeze(t0, store.ErrFrozen)
	ask(n, limiter.Debit, 5)
	ask(n.Holding(&limiter.Hold{ID: holdID(1), TTLNs: sec}), 0, 5)
	if spent := s.Spent("").Sorted(); len(spent) > 0 {
		t.Errorf("spent %v", spent)
	}
}
