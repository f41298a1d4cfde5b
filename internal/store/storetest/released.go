package storetest

import (
	"cellserver/internal/store"
)

func releasedChecks() []check {
	var all []check
	for _, c := range releasedCases() {
		all = append(all, check{"released transaction: " + c.name, c.run})
	}
	return append(all,
		check{"released transaction: what it takes back is no conflict", checkTakesBack},
		check{"released transaction: in step", checkInStep},
	)
}

// releasedCase is a transaction on a, with 60 s to live, and an absent b. The changes between Release and
// Commit decide about it.
type releasedCase struct {
	name   string
	mean   func(t reporter, s store.Store) // meanwhile
	do     func(t reporter, tx store.Transaction)
	want   bool
	wantNs int64 // of a, after t0
}

func (c releasedCase) run(t reporter, s store.Store) {
	a, b := key(0, "a"), key(0, "b")
	put(t, s, t0, a, 60)
	tx := begin(t, s, t0, a, b)
	defer tx.Rollback()
	tx.Release()
	tx.Release()
	if c.mean != nil {
		c.mean(t, s)
	}
	wantTAT(t, tx, t0, a, t0+60*sec) // as read at the beginning
	wantTAT(t, tx, t0, b, 0)
	c.do(t, tx)
	before := statsOf(s)
	if got := tx.Commit(); got != c.want {
		t.Fatalf("Commit: got %v, want %v", got, c.want)
	}
	if after := statsOf(s); !c.want && after.Allowed != before.Allowed {
		t.Fatalf("a conflict: %d were counted as allowed", after.Allowed-before.Allowed)
	}
	wantTAT(t, s, t0, a, t0+c.wantNs)
}

func releasedCases() []releasedCase {
	a, b, l := key(0, "a"), key(0, "b"), limit(9, 1, 60)
	write := func(t reporter, tx store.Transaction) { throttle(t, tx, t0, a, l, 2) }
	probe := func(t reporter, tx store.Transaction) { throttle(t, tx, t0, a, l, 0) }
	deletion := func(t reporter, s store.Store) { remove(t, s, t0, a) }
	units := func(k store.Key, quantities ...int64) func(t reporter, s store.Store) {
		return func(t reporter, s store.Store) {
			for _, n := range quantities {
				throttle(t, s, t0, k, l, n)
			}
		}
	}
	return []releasedCase{
		{name: "nobody", do: write, want: true, wantNs: 180 * sec},
		{name: "nobody, deleted", do: func(t reporter, tx store.Transaction) { remove(t, tx, t0, a) }, want: true},
		{name: "another key", do: write, mean: units(key(0, "other"), 1), want: true, wantNs: 180 * sec},
		{name: "another database", do: write, mean: units(key(1, "a"), 1), want: true, wantNs: 180 * sec},
		{name: "limited", do: write, want: true, wantNs: 180 * sec, mean: func(t reporter, s store.Store) {
			throttle(t, s, t0, a, limit(0, 1, 1), 1)
		}},
		{name: "the key", do: write, mean: units(a, 1), wantNs: 120 * sec},
		{name: "a key that was only read", do: write, mean: units(b, 1), wantNs: 60 * sec},
		{name: "deleted", do: write, mean: deletion},
		{name: "flushed", do: write, mean: func(t reporter, s store.Store) { need[store.Walker](t, s).FlushAll() }},
		{name: "changed back", do: write, want: true, wantNs: 180 * sec, mean: units(a, 3, -3)},
		{name: "only read", do: probe, mean: deletion, want: true},
		{name: "nothing", do: func(reporter, store.Transaction) {}, mean: deletion, want: true},
	}
}

// checkTakesBack: a transaction that has undone its writes cannot conflict.
func checkTakesBack(t reporter, s store.Store) {
	a, l := key(0, "a"), limit(9, 1, 10)
	for _, takeBack := range []bool{false, true} {
		tx := begin(t, s, t0, a)
		tx.Release()
		undo := tx.Save()
		throttle(t, tx, t0, a, l, 2)
		if takeBack {
			undo()
		}
		throttle(t, s, t0, a, l, 1)
		if committed := tx.Commit(); committed != takeBack {
			t.Fatalf("took back is %v, and committed %v", takeBack, committed)
		}
	}
	wantTAT(t, s, t0, a, t0+20*sec)
}

// checkInStep moves two keys in step by released transactions: no step is lost or repeated, and nobody sees
// one key ahead.
func checkInStep(t reporter, s store.Store) {
	const callers, each = 4, 200
	l, a, b := limit(1<<20, 1, 3600), key(0, "a"), key(0, "b")
	need[store.Transactor](t, s)
	before := statsOf(s)
	together(t, callers, func(t reporter, g int) {
		keys := []store.Key{a, b}
		if g%2 == 0 {
			keys = []store.Key{b, a}
		}
		for n := 0; n < each; {
			tx := begin(t, s, t0, keys...)
			tx.Release()
			wantTAT(t, tx, t0, a, tatOf(t, tx, t0, b))
			throttle(t, tx, t0, a, l, 1)
			throttle(t, tx, t0, b, l, 1)
			if tx.Commit() {
				n++
			}
		}
	})
	wantTAT(t, s, t0, a, t0+callers*each*3600*sec)
	wantTAT(t, s, t0, b, t0+callers*each*3600*sec)
	if n := statsOf(s).Allowed - before.Allowed; n != 2*callers*each {
		t.Fatalf("%d were counted as allowed, want %d", n, 2*callers*each)
	}
}
