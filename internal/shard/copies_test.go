package shard

import (
	"errors"
	"fmt"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestCopiesAreBounded: copies after Saves are bounded while others wait, and unbounded otherwise.
func TestCopiesAreBounded(t *testing.T) {
	const keys, saves, payload = 5, 100, 160 << 10
	s, l := newStore(1), limit(t, 1<<20, 1, 3600)
	var all []store.Key
	for i := range keys {
		k := key(0, fmt.Sprint(i))
		all = append(all, k)
		for id := range uint64(4096) {
			o := limiter.Operation{Verb: limiter.Reserve, Funnel: l, ID: id, Quantity: 1, TTLNs: 3600 * sec}
			if err := s.Apply(t0, k, &o); err != nil {
				t.Fatal(err)
			}
		}
	}
	writes := func(in interface {
		store.Keys
		store.Restorer
	}) (done int) {
		t.Helper()
		for range saves {
			in.Save()
			for _, k := range all {
				batch := []store.Request{{Key: k, Rule: limiter.OfFunnel(l), Quantity: 1}}
				switch in.Throttle(t0, batch); {
				case batch[0].Err == nil:
					done++
				case !errors.Is(batch[0].Err, store.ErrTooLarge):
					t.Fatal(batch[0].Err)
				}
			}
		}
		return done
	}
	most := (txPayloadBytes + txCopyBytes) / payload
	tx := s.Begin(t0, all)
	if n := writes(tx); n > most || n < most/2 {
		t.Errorf("%d were done under locks, want about %d", n, most)
	}
	tx.Rollback()
	tx = s.Begin(t0, all)
	tx.Release()
	if n := writes(tx); n != keys*saves {
		t.Errorf("%d were done without locks, want all", n)
	}
	tx.Rollback()
	x := s.BeginAll(t0)
	defer x.End()
	if n := writes(x); n > most || n < most/2 {
		t.Errorf("%d were done in an exclusive, want about %d", n, most)
	}
	o := limiter.Operation{Verb: limiter.Commit, ID: 7, Quantity: 1}
	x.Save()
	if _, _, err := store.SetIf(x, t0, all[0], limiter.State{}, store.Always); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("SetIf: %v", err)
	}
	if _, err := x.Delete(t0, all[:1]); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("Delete: %v", err)
	}
	if err := x.Apply(t0, all[0], &o); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("Operate: %v", err)
	}
	if _, ok := tatOf(x, t0, all[0]); !ok {
		t.Error("a refused change was made")
	}
}
