package storetest

import (
	"context"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func walkerChecks() []check {
	return []check{
		{"Scan", checkScan},
		{"Scan under changes", checkScanUnderChanges},
		{"Count", checkCount},
		{"Flush and FlushAll", checkFlush},
		{"ends when nobody waits", checkWalkEnds},
		{"MemoryUsage", checkMemoryUsage},
	}
}

// mostCalls bounds the calls of Scan in a walk, generously.
const mostCalls = 1_000_000

// walk scans a database and returns the visited entries. It calls between after each Scan.
func walk(t reporter, w store.Walker, nowNs *int64, db uint16, count int, between func()) map[string]store.Entry {
	t.Helper()
	met := map[string]store.Entry{}
	cursor := uint64(0)
	for range mostCalls {
		cursor = w.Scan(*nowNs, db, cursor, count, func(k store.Key, e store.Entry) {
			if k.DB != db {
				t.Fatalf("Scan of database %d visited a key of database %d", db, k.DB)
			}
			if e.ExpiresNs <= *nowNs {
				t.Fatalf("Scan visited %.40q, which has expired", k.Name)
			}
			met[string(k.Name)] = e
		})
		if cursor == 0 {
			return met
		}
		between()
	}
	t.Fatalf("a walk has not ended after %d calls of Scan", mostCalls)
	return nil
}

// fillDatabases stores n keys in each of three databases, half of them of other kinds, and as many that
// expire after a second.
func fillDatabases(t reporter, ks store.Keys, nowNs int64, n int) (m stateMap) {
	t.Helper()
	m = stateMap{}
	for i := range n {
		for db := range uint16(3) {
			k := key(db*300, strings.Repeat(strconv.Itoa(i)+"-", 1+i%9))
			put(t, ks, nowNs, key(db*300, "expired"+string(k.Name)), 1)
			if kind := limiter.Kind(i / 2 % int(limiter.Kinds)); i%2 > 0 {
				m[idOf(k)] = makeKey(t, ks, nowNs, k, kind)
				continue
			}
			put(t, ks, nowNs, k, int64(2+i))
			m[idOf(k)] = limiter.State{ExpiresNs: nowNs + int64(2+i)*sec}
		}
	}
	return m
}

// wantWalks compares walks of all counts, and Count, with the live keys.
func wantWalks(t reporter, w store.Walker, nowNs int64, m stateMap) {
	t.Helper()
	counts := make([]store.KeyCount, 601)
	for i, s := range m {
		counts[i.db].Keys++
		if s.ExpiresNs != limiter.NeverNs {
			counts[i.db].Expiring++
		}
	}
	wantKeyCounts(t, w, nowNs, counts...)
	for _, count := range []int{-1, 0, 1, 10, 1000, 1 << 30} {
		for _, db := range []uint16{0, 300, 600, 1} {
			met, want := walk(t, w, &nowNs, db, count, func() {}), 0
			for i, s := range m {
				if i.db != db {
					continue
				}
				if want++; met[i.name] != (store.Entry{Kind: s.Kind, ExpiresNs: s.ExpiresNs}) {
					t.Fatalf("database %d, count %d: %.40q: got %+v, want %+v", db, count, i.name, met[i.name], s)
				}
			}
			if len(met) != want {
				t.Fatalf("database %d, count %d: met %d keys, want %d", db, count, len(met), want)
			}
		}
	}
}

func checkScan(t reporter, s store.Store) {
	w := need[store.Walker](t, s)
	nowNs := t0
	m := stateMap{}
	wantWalks(t, w, nowNs, m)
	for _, n := range []int{1, 700} {
		w.FlushAll()
		m = fillDatabases(t, s, nowNs, n)
		nowNs += sec
		wantWalks(t, w, nowNs, m)
	}
	visits := 0
	w.Scan(nowNs, 0, 0, 100, func(k store.Key, _ store.Entry) { // visit may use the store
		wantState(t, s, nowNs, k, m[idOf(k)], true)
		put(t, s, nowNs, key(7, strconv.Itoa(visits)), 60)
		visits++
	})
	if visits == 0 {
		t.Fatalf("a call for 100 of 700 keys visited none")
	}
}

// checkScanUnderChanges changes keys between Scans: a walk visits all lasting ones.
func checkScanUnderChanges(t reporter, s store.Store) {
	w := need[store.Walker](t, s)
	r, nowNs, m := rand.New(rand.NewPCG(3, 1)), t0, stateMap{}
	step := func(most, parts int) {
		for range r.IntN(most) {
			k := key(0, strings.Repeat(strconv.Itoa(r.IntN(5000)), 1+r.IntN(3)))
			if r.IntN(parts) > 0 {
				delete(m, idOf(k))
				remove(t, s, nowNs, k)
				continue
			}
			q := store.Request{Key: k, Rule: limiter.OfFunnel(limit(999, 1, 1+int64(r.IntN(2))*3600)), Quantity: 1}
			m.decide(t, s, nowNs, []store.Request{q})
		}
	}
	for round := range 6 {
		nowNs += sec
		step(2000, 1)
		begun := maps.Clone(m)
		met := walk(t, w, &nowNs, 0, 1+r.IntN(100), func() {
			nowNs += sec / 50
			step(100, 1+round%2*9)
		})
		for i, s := range begun {
			// An unchanged TAT was live throughout.
			if met[i.name].ExpiresNs == 0 && s.ExpiresNs > nowNs && m[i].ExpiresNs == s.ExpiresNs {
				t.Fatalf("round %d: a walk missed %.40q", round, i.name)
			}
		}
	}
}

// wantCounts compares the numbers of keys, all of which expire.
func wantCounts(t reporter, w store.Walker, nowNs int64, want ...int) {
	t.Helper()
	counts := make([]store.KeyCount, len(want))
	for db, n := range want {
		counts[db] = store.KeyCount{Keys: n, Expiring: n}
	}
	wantKeyCounts(t, w, nowNs, counts...)
}

func wantKeyCounts(t reporter, w store.Walker, nowNs int64, want ...store.KeyCount) {
	t.Helper()
	got := make([]store.KeyCount, len(want))
	for i := range got {
		got[i] = store.KeyCount{Keys: 10 * i, Expiring: 7 * i} // Count adds
	}
	w.Count(context.Background(), nowNs, got)
	for db := range got {
		if got[db].Keys, got[db].Expiring = got[db].Keys-10*db, got[db].Expiring-7*db; got[db] != want[db] {
			t.Fatalf("Count: got %+v in database %d, want %+v", got[db], db, want[db])
		}
	}
}

func checkCount(t reporter, s store.Store) {
	w := need[store.Walker](t, s)
	wantCounts(t, w, t0, 0, 0)
	for i, k := range append(numbered(0, "k", 600), numbered(1, "k", 5)...) {
		put(t, s, t0, k, int64(1+i))
	}
	put(t, s, t0, key(65535, "k"), 60)
	wantCounts(t, w, t0, 600, 5, 0)
	wantCounts(t, w, t0)
	wantCounts(t, w, t0+100*sec-1, 501, 5)
	wantCounts(t, w, t0+100*sec, 500)
	wantCounts(t, w, t0+605*sec, 0, 0, 0)
}

func checkFlush(t reporter, s store.Store) {
	w := need[store.Walker](t, s)
	w.FlushAll()
	m, nowNs := fillDatabases(t, s, t0, 100), t0+sec
	w.Flush(context.Background(), 300)
	w.Flush(context.Background(), 7)
	maps.DeleteFunc(m, func(i id, _ limiter.State) bool { return i.db == 300 })
	wantWalks(t, w, nowNs, m)
	put(t, s, nowNs, key(300, "new"), 1)
	wantTAT(t, s, nowNs, key(300, "new"), nowNs+sec)
	w.FlushAll()
	for i := range m {
		wantTAT(t, s, nowNs, key(i.db, i.name), 0)
	}
	wantWalks(t, w, nowNs, stateMap{})
}

func checkWalkEnds(t reporter, s store.Store) {
	w := need[store.Walker](t, s)
	const all = 20_000
	for _, k := range numbered(0, "k", all) {
		put(t, s, t0, k, 60)
	}
	ctx, end := context.WithCancel(context.Background())
	end()
	counts := make([]store.KeyCount, 1)
	if w.Count(ctx, t0, counts); counts[0].Keys >= all {
		t.Fatalf("Count has counted all keys")
	}
	w.Flush(ctx, 0)
	if w.Count(context.Background(), t0, counts); counts[0].Keys == 0 {
		t.Fatalf("Flush has removed all keys")
	}
}

// checkMemoryUsage also checks that the size of all names is known in advance.
func checkMemoryUsage(t reporter, s store.Store) {
	w, size := need[store.Walker](t, s), 0
	for i, name := range anyNames() {
		k, nowNs := key(uint16(i%2), name), t0+int64(i)*sec
		if bytes, ok := w.MemoryUsage(nowNs, k); ok {
			t.Fatalf("%.40q is absent and costs %d bytes", name, bytes)
		}
		put(t, s, nowNs, k, 1)
		size += len(name)
		if st := statsOf(s); st.NameBytes < size || st.Slots < 1+i {
			t.Fatalf("%d slots and %d bytes of names, and there are %d keys of %d bytes", st.Slots, st.NameBytes, 1+i, size)
		}
		if bytes, ok := w.MemoryUsage(nowNs+sec-1, k); !ok || bytes < max(len(name), 1) {
			t.Fatalf("a name of %d bytes costs %d, %v", len(name), bytes, ok)
		}
		if bytes, ok := w.MemoryUsage(nowNs+sec, k); ok {
			t.Fatalf("%.40q has expired and costs %d bytes", name, bytes)
		}
	}
	for kind := range limiter.Kinds {
		for _, name := range kindNames() {
			k := key(uint16(kind), "of a kind "+name)
			made := makeKey(t, s, t0, k, kind)
			if bytes, ok := w.MemoryUsage(t0, k); !ok || bytes < len(k.Name)+len(made.Payload) {
				t.Fatalf("%d bytes of name and %d of payload cost %d, %v", len(k.Name), len(made.Payload), bytes, ok)
			}
		}
	}
}
