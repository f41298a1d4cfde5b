package storetest

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func exclusiveChecks() []check {
	return []check{
		{"exclusive: is a Walker", checkExclusiveWalker},
		{"exclusive: keeps others out", checkKeepsOut},
	}
}

func checkExclusiveWalker(t reporter, s store.Store) {
	transactor := need[store.Transactor](t, s)
	m, nowNs := fillDatabases(t, s, t0, 300), t0+sec
	before := statsOf(s)
	x := transactor.BeginAll(nowNs)
	defer x.End()
	wantWalks(t, x, nowNs, m)
	x.Scan(nowNs, 0, 0, 100, func(k store.Key, _ store.Entry) { wantState(t, x, nowNs, k, m[idOf(k)], true) }) // visit may use it
	var st store.Stats
	if x.UpdateStats(&st); st.Allowed != before.Allowed {
		t.Fatalf("statistics: %d were allowed, want %d", st.Allowed, before.Allowed)
	}
	x.Flush(context.Background(), 300)
	maps.DeleteFunc(m, func(i id, _ limiter.State) bool { return i.db == 300 })
	wantWalks(t, x, nowNs, m)
	x.FlushAll()
	wantWalks(t, x, nowNs, stateMap{})
	put(t, x, nowNs, key(0, "after"), 60)
	x.End()
	x.End()
	wantTAT(t, s, nowNs, key(0, "after"), nowNs+60*sec)
}

// checkKeepsOut runs transactions and exclusives together: the latter meet nobody.
func checkKeepsOut(t reporter, s store.Store) {
	transactor := need[store.Transactor](t, s)
	const callers, each = 4, 200
	k, l := key(0, "k"), limit(1<<20, 1, 3600)
	var inside atomic.Bool
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			t := concurrent{t}
			for i := range each {
				switch (g + i) % 4 {
				case 0:
					exclusively(t, transactor, &inside, k)
				case 1:
					throttle(t, s, t0, k, l, 1)
				default:
					tx := transactor.Begin(t0, []store.Key{k, key(0, strconv.Itoa(i))})
					if inside.Load() {
						t.Errorf("a transaction began while the store was another's")
					}
					throttle(t, tx, t0, k, l, 1)
					tx.Commit()
				}
			}
		})
	}
	wg.Wait()
	wantTAT(t, s, t0, k, t0+callers*each*3600*sec)
}

// exclusively takes a unit between two looks.
func exclusively(t reporter, transactor store.Transactor, inside *atomic.Bool, k store.Key) {
	x := transactor.BeginAll(t0)
	defer x.End()
	inside.Store(true)
	defer inside.Store(false)
	beforeNs := tatOf(t, x, t0, k)
	throttle(t, x, t0, k, limit(1<<20, 1, 3600), 1)
	wantTAT(t, x, t0, k, beforeNs+3600*sec)
}
