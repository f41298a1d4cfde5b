package storetest

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func transactionChecks() []check {
	return []check{
		{"transaction: answers at once", checkAnswersAtOnce},
		{"transaction: a key that is named twice", checkNamedTwice},
		{"transaction: its own time", checkOwnTime},
		{"transaction: its own keys", checkOwnKeys},
		{"transaction: many keys", checkManyKeys},
		{"transaction: ends once", checkEndsOnce},
		{"transaction: counted on Commit", checkCountedOnCommit},
		{"transaction: overlapping keys", checkOverlap},
	}
}

// begin returns a transaction, or skips the check.
func begin(t reporter, s store.Store, nowNs int64, keys ...store.Key) store.Transaction {
	t.Helper()
	return need[store.Transactor](t, s).Begin(nowNs, keys)
}

func checkAnswersAtOnce(t reporter, s store.Store) {
	a := key(0, "a")
	tx := begin(t, s, t0, a)
	defer tx.Rollback()
	if p := tx.Throttle(t0, []store.Request{{Key: a, Rule: limiter.OfFunnel(limit(9, 1, 60)), Quantity: 1}}); p != nil {
		t.Fatalf("it does not answer at once")
	}
}

func checkNamedTwice(t reporter, s store.Store) {
	a := key(0, "a")
	put(t, s, t0, a, 60)
	tx := begin(t, s, t0, a, key(1, "a"), key(0, "a"), key(0, "b"), a)
	defer tx.Rollback()
	wantDeleted(t, tx, t0, []store.Key{a, key(1, "a"), key(0, "a"), key(0, "b")}, 1)
	if !tx.Commit() {
		t.Fatalf("it did not commit")
	}
	wantTAT(t, s, t0, a, 0)
}

// checkOwnTime passes times later than the beginning.
func checkOwnTime(t reporter, s store.Store) {
	a := key(0, "a")
	put(t, s, t0, a, 60)
	tx := begin(t, s, t0, a)
	keepsTime(t, tx, a)
	tx.Rollback()
	x := need[store.Transactor](t, s).BeginAll(t0)
	defer x.End()
	if _, ok := x.MemoryUsage(t0+3600*sec, a); !ok {
		t.Fatalf("a live key costs nothing")
	}
	wantCounts(t, x, t0+3600*sec, 1)
	keepsTime(t, x, a)
}

func keepsTime(t reporter, in store.Keys, a store.Key) {
	t.Helper()
	const later = t0 + 3600*sec
	if tatNs, ok, err := tatIn(in, later, a); tatNs != t0+60*sec || !ok || err != nil {
		t.Fatalf("TAT: got %d, %v, %v", tatNs-t0, ok, err)
	}
	put(t, in, later, a, 60)
	wantTAT(t, in, t0, a, t0+120*sec)
	wantDeleted(t, in, later, []store.Key{a}, 1)
}

// checkOwnKeys: another key panics, and the transaction can be rolled back.
func checkOwnKeys(t reporter, s store.Store) {
	for _, other := range []store.Key{key(0, "another"), key(1, "a"), key(0, "")} {
		tx := begin(t, s, t0, key(0, "a"), key(2, "a"))
		wantPanic(t, func() {
			_ = tx.Throttle(t0, []store.Request{{Key: other, Rule: limiter.OfFunnel(limit(9, 1, 60)), Quantity: 1}})
		})
		wantPanic(t, func() { _, _, _ = tatIn(tx, t0, other) })
		wantPanic(t, func() { _, _ = tx.Delete(t0, []store.Key{other}) })
		wantPanic(t, func() { _, _, _ = store.SetIf(tx, t0, other, limiter.State{ExpiresNs: t0 + sec}, store.IfFound) })
		wantPanic(t, func() { _, _, _ = tx.Entry(t0, other) })
		wantPanic(t, func() { _ = tx.Apply(t0, other, &limiter.Operation{Verb: limiter.Level}) })
		tx.Rollback()
		wantTAT(t, s, t0, other, 0)
		put(t, s, t0, other, 60) // keys are free
	}
}

// checkManyKeys: any number of keys, in reused slices.
func checkManyKeys(t reporter, s store.Store) {
	for _, n := range []int{1, 2, 3, 8, 500} {
		var keys []store.Key
		for i := range n {
			keys = append(keys, key(uint16(i%3), strconv.Itoa(i)), key(uint16(i%3), strings.Repeat(strconv.Itoa(i), 20)))
		}
		tx := begin(t, s, t0, append(keys, keys...)...)
		for i, k := range keys {
			setTAT(t, tx, key(k.DB, string(k.Name)), t0+int64(1+i))
		}
		for i, k := range keys {
			wantTAT(t, tx, t0, k, t0+int64(1+i))
		}
		tx.Rollback()
	}
}

func wantPanic(t reporter, do func()) {
	t.Helper()
	panicked := func() (panicked bool) {
		defer func() { panicked = recover() != nil }()
		do()
		return false
	}()
	if !panicked {
		t.Fatalf("a key that Begin was not given did not panic")
	}
}

// checkEndsOnce: an ended transaction has no effect and holds no keys.
func checkEndsOnce(t reporter, s store.Store) {
	a, want := key(0, "a"), int64(0)
	for i := range 12 {
		tx := begin(t, s, t0, a, key(0, "other"))
		if i%2 == 0 {
			tx.Release()
		}
		put(t, tx, t0, a, 60)
		if i%4 < 2 {
			tx.Rollback()
		} else if want++; !tx.Commit() {
			t.Fatalf("it did not commit")
		}
		tx.Release()
		if tx.Commit() {
			t.Fatalf("it was committed after its end")
		}
		tx.Rollback()
		wantTAT(t, s, t0, a, t0+want*60*sec)
	}
}

func checkCountedOnCommit(t reporter, s store.Store) {
	a, b := key(0, "a"), key(0, "b")
	for i := range 8 {
		release, commit, write := i&1 > 0, i&2 > 0, i&4 > 0
		before := statsOf(s)
		tx := begin(t, s, t0, a, b)
		if release {
			tx.Release()
		}
		throttle(t, tx, t0, b, limit(9, 1, 60), 0)
		throttle(t, tx, t0, b, limit(9, 1, 60), 11)
		var allowed, limited uint64
		if commit {
			allowed, limited = 1, 1
		}
		if write {
			allowed *= 2
			throttle(t, tx, t0, a, limit(99, 1, 60), 2)
		}
		if commit && (!tx.Commit() || tx.Commit()) {
			t.Fatalf("Commit does not say what it did")
		}
		tx.Rollback()
		after := statsOf(s)
		if after.Allowed-before.Allowed != allowed || after.Limited-before.Limited != limited {
			t.Fatalf("released %v, committed %v, written %v: %d allowed, %d limited, want %d, %d", release, commit, write,
				after.Allowed-before.Allowed, after.Limited-before.Limited, allowed, limited)
		}
	}
}

// checkOverlap runs transactions on common keys in any order, beside flushes: no unit is lost, and nobody
// waits forever.
func checkOverlap(t reporter, s store.Store) {
	need[store.Transactor](t, s)
	const callers, each = 4, 200
	keys, l := numbered(0, "k", 50), limit(1<<20, 1, 3600)
	var taken [50]int64
	var mu sync.Mutex // guards taken
	together(t, callers, func(t reporter, g int) {
		r := newSource(uint64(10+g), true)
		for range each {
			first, second := r.IntN(len(keys)), r.IntN(len(keys))
			tx := begin(t, s, t0, append([]store.Key{keys[second], keys[first]}, keys[r.IntN(40):][:10]...)...)
			throttle(t, tx, t0, keys[first], l, 1)
			throttle(t, tx, t0, keys[second], l, 1)
			if !tx.Commit() {
				t.Fatalf("it did not commit")
			}
			mu.Lock()
			taken[first]++
			taken[second]++
			mu.Unlock()
		}
	})
	for i, k := range keys {
		wantTAT(t, s, t0, k, t0+taken[i]*3600*sec)
	}
}

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
	together(t, callers, func(t reporter, g int) {
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
