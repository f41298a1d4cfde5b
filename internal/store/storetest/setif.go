package storetest

import (
	"errors"
	"sync"
	"sync/atomic"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// wantSetIf sets a key and compares the found TAT; none that has passed.
func wantSetIf(t reporter, ks store.Keys, k store.Key, tatNs int64, when store.Condition, wantNs int64) {
	t.Helper()
	before, found, err := store.SetIf(ks, t0, k, limiter.State{ExpiresNs: tatNs}, when)
	if err != nil || found != (wantNs > t0) || found && before.ExpiresNs != wantNs {
		t.Fatalf("SetIf: found %d, %v, %v, want %d", before.ExpiresNs-t0, found, err, wantNs-t0)
	}
}

// checkSetIfAbsent: of many callers, one creates the key.
func checkSetIfAbsent(t reporter, s store.Store) {
	const callers = 8
	for _, k := range numbered(0, "k", 100) {
		var made atomic.Int64
		var wg sync.WaitGroup
		for g := range callers {
			wg.Go(func() {
				switch _, found, err := store.SetIf(s, t0, k, limiter.State{ExpiresNs: t0 + int64(1+g)*sec}, store.IfAbsent); {
				case err != nil:
					t.Errorf("SetIf: %v", err)
				case !found:
					made.Add(1)
				}
			})
		}
		wg.Wait()
		if made.Load() != 1 {
			t.Fatalf("%d of %d callers have made a key", made.Load(), callers)
		}
	}
}

// checkRefusesSetIf: a key without space is not created in any way, and an existing one is set.
func checkRefusesSetIf(t reporter, s store.Store) {
	b, txs := need[store.Bounded](t, s), need[store.Transactor](t, s)
	there := key(0, "there")
	put(t, s, t0, there, 60)
	b.SetMaxBytes(1, store.NoEviction)
	refused := 0
	for i := range 300 {
		full := floodKey(i)
		set := func(ks store.Keys) {
			wantSetIf(t, ks, full, t0+sec, store.IfFound, t0)
			if _, found, err := store.SetIf(ks, t0, full, limiter.State{ExpiresNs: t0 + sec}, store.IfAbsent); errors.Is(err, store.ErrFull) {
				wantTAT(t, ks, t0, full, 0)
				refused++
			} else if found || err != nil {
				t.Fatalf("key %d: found %v, %v", i, found, err)
			}
			wantSetIf(t, ks, there, t0+sec, store.Always, tatOf(t, ks, t0, there))
		}
		switch i % 3 {
		case 0:
			set(s)
		case 1:
			tx := txs.Begin(t0, []store.Key{full, there})
			set(tx)
			tx.Commit()
		default:
			x := txs.BeginAll(t0)
			set(x)
			x.End()
		}
	}
	if st := statsOf(s); refused < 3 || st.Refused != uint64(refused) || st.Keys != 301-refused {
		t.Errorf("%d were refused: %+v", refused, st)
	}
}
