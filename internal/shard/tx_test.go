package shard

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestTxTakesTheSameKeyOnce(t *testing.T) {
	s := New()
	fill(t, s, t0, 1, "k", 60)
	tx := s.Begin(t0, []Key{key(0, "k0"), key(0, "absent"), key(0, "k0"), key(1, "k0")})
	got := fmt.Sprint(tx.Delete(0), tx.Delete(1), tx.Delete(2), tx.Delete(3))
	tx.Commit()
	if got != "true false false false" || length(s, t0, 0) != 0 {
		t.Errorf("got %s, %d keys left", got, length(s, t0, 0))
	}
}

func TestTxIsAllOrNothing(t *testing.T) {
	s := New()
	wide, narrow := limit(t, 9, 1, 60), limit(t, 0, 1, 60)
	keys := []Key{key(0, "user"), key(0, "address")}
	both := func() bool {
		tx := s.Begin(t0, keys)
		defer tx.Rollback()
		if tx.Throttle(0, wide, 1).Limited || tx.Throttle(1, narrow, 1).Limited {
			return false
		}
		tx.Commit()
		return true
	}
	if first, second := both(), both(); !first || second {
		t.Errorf("got %v, %v, want true, false", first, second)
	}
	if r := one(s, t0, keys[0], wide, 0); r.Remaining != 9 {
		t.Errorf("the rolled back call was charged: %+v", r)
	}
}

// TestTxFinds: a key is found by its content, however many there are, and no other is.
func TestTxFinds(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 8, 500} {
		s := New()
		var keys []Key
		for i := range n {
			keys = append(keys, key(uint16(i%3), fmt.Sprint(i)), key(uint16(i%3), strings.Repeat(fmt.Sprint(i), 20)))
		}
		tx := s.Begin(t0, append(keys, keys...))
		for i, k := range keys {
			if place, ok := tx.Find(key(k.DB, string(k.Name))); place != i || !ok {
				t.Errorf("%d keys: place %d, %v, want %d", n, place, ok, i)
			}
			if _, ok := tx.Find(key(k.DB+1, string(k.Name))); ok {
				t.Errorf("%d keys: found one of another database", n)
			}
		}
		if _, ok := tx.Find(key(0, "another")); ok {
			t.Errorf("%d keys: found one that was not given", n)
		}
		tx.Rollback()
	}
}

func TestTxReadsWhatItWrote(t *testing.T) {
	s, l := New(), limit(t, 0, 1, 60)
	tx := s.Begin(t0, []Key{key(0, "k"), key(0, "other"), key(0, "k")})
	defer tx.Rollback()
	read := func(place int, want int64) {
		t.Helper()
		if got, ok := tx.TAT(place); got != want || ok != (want > t0) {
			t.Errorf("TAT of %d: got %d, %v, want %d", place, got, ok, want)
		}
	}
	read(0, t0)
	tx.Throttle(0, l, 1)
	read(2, t0+60*sec)
	read(1, t0)
	tx.Delete(2)
	read(0, t0)
}

// TestTxReleased: what others do between Release and Commit decides whether it happens.
func TestTxReleased(t *testing.T) {
	a, b, other := key(0, "a"), key(0, "b"), key(0, "other")
	l := limit(t, 9, 1, 60)
	throttleA := func(tx *Tx) { tx.Throttle(0, l, 2) }
	probe := func(tx *Tx) { tx.Throttle(0, l, 0) }
	for _, tt := range []struct {
		name   string
		mean   func(s *Store) // meanwhile
		do     func(tx *Tx)
		want   bool
		wantNs int64 // of a, after t0
	}{
		{name: "nobody", do: throttleA, want: true, wantNs: 180 * sec},
		{name: "nobody, deleted", do: func(tx *Tx) { tx.Delete(0) }, want: true},
		{name: "another key", do: throttleA, mean: func(s *Store) { put(t, s, t0, other, 60) }, want: true, wantNs: 180 * sec},
		{name: "denied", do: throttleA, mean: func(s *Store) { one(s, t0, a, limit(t, 0, 1, 1), 1) }, want: true, wantNs: 180 * sec},
		{name: "the key", do: throttleA, mean: func(s *Store) { one(s, t0, a, l, 1) }, wantNs: 120 * sec},
		{name: "a key that was only read", do: throttleA, mean: func(s *Store) { put(t, s, t0, b, 60) }, wantNs: 60 * sec},
		{name: "deleted", do: throttleA, mean: func(s *Store) { s.Delete(t0, a) }},
		{name: "flushed", do: throttleA, mean: func(s *Store) { s.FlushAll() }},
		{name: "swept", do: throttleA, mean: func(s *Store) { sweepOnce(s, t0+60*sec) }},
		{name: "changed back", do: throttleA, want: true, wantNs: 180 * sec, mean: func(s *Store) {
			one(s, t0, a, l, 3)
			one(s, t0, a, l, -3)
		}},
		{name: "only read", do: probe, mean: func(s *Store) { s.Delete(t0, a) }, want: true},
		{name: "nothing", do: func(*Tx) {}, mean: func(s *Store) { s.Delete(t0, a) }, want: true},
		{name: "written and taken back", mean: func(s *Store) { s.Delete(t0, a) }, do: func(tx *Tx) {
			tx.Throttle(0, l, 1)
			tx.Throttle(0, l, -1)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(4)
			put(t, s, t0, a, 60)
			tx := s.Begin(t0, []Key{a, b})
			tx.Release()
			tx.Release()
			if tt.mean != nil {
				tt.mean(s)
			}
			if r, _ := tx.TAT(0); r != t0+60*sec {
				t.Errorf("it reads %d after Release, want what it read at Begin", r)
			}
			tt.do(tx)
			if got := tx.Commit(); got != tt.want {
				t.Errorf("Commit: got %v, want %v", got, tt.want)
			}
			if got, _ := s.TAT(t0, a); got != t0+tt.wantNs {
				t.Errorf("the key's TAT: got %d, want %d", got-t0, tt.wantNs)
			}
		})
	}
}

func TestTxCountsOnCommit(t *testing.T) {
	l, narrow := limit(t, 9, 1, 60), limit(t, 0, 1, 60)
	for _, tt := range []struct {
		name            string
		release         bool
		do              func(s *Store, tx *Tx)
		allowed, denied uint64
	}{
		{"committed", false, func(_ *Store, tx *Tx) { tx.Commit() }, 2, 1},
		{"committed twice", false, func(_ *Store, tx *Tx) { tx.Commit(); tx.Commit() }, 2, 1},
		{"rolled back", false, func(_ *Store, tx *Tx) { tx.Rollback() }, 0, 0},
		{"released and committed", true, func(_ *Store, tx *Tx) { tx.Commit() }, 2, 1},
		{"released and rolled back", true, func(_ *Store, tx *Tx) { tx.Rollback() }, 0, 0},
		{"found a change", true, func(s *Store, tx *Tx) { put(t, s, t0, key(0, "b"), 60); tx.Commit() }, 1, 0},
	} {
		s := New()
		tx := s.Begin(t0, []Key{key(0, "a"), key(0, "b")})
		if tt.release {
			tx.Release()
		}
		tx.Throttle(0, l, 1)
		tx.Throttle(1, l, 0)
		tx.Throttle(0, narrow, 1)
		tt.do(s, tx)
		var st Stats
		if s.UpdateStats(&st); st.Allowed != tt.allowed || st.Denied != tt.denied {
			t.Errorf("%s: %d allowed, %d denied, want %d, %d", tt.name, st.Allowed, st.Denied, tt.allowed, tt.denied)
		}
	}
	s := New()
	tx := s.Begin(t0, []Key{key(0, "a"), key(0, "b")})
	tx.Release()
	tx.Throttle(0, l, 0)
	tx.Throttle(1, l, 11)
	put(t, s, t0, key(0, "a"), 60)
	tx.Commit()
	var st Stats
	if s.UpdateStats(&st); st.Allowed != 2 || st.Denied != 1 {
		t.Errorf("a Tx that only read: %+v, want its 2 requests and another counted", st)
	}
}

// TestTxAgain begins one Tx again and again, in all states that it can be in.
func TestTxAgain(t *testing.T) {
	s, l := newStore(4), limit(t, 1<<20, 1, 3600)
	var tx Tx
	tx.Rollback()
	if tx.Commit() {
		t.Error("a Tx that has not begun was committed")
	}
	want := 0
	for i := range 600 {
		keys := []Key{key(0, "counter")}
		for j := range i % 7 * 30 {
			keys = append(keys, key(0, fmt.Sprint(j)))
		}
		tx.Begin(s, t0, keys)
		if i%2 == 0 {
			tx.Release()
		}
		tx.Throttle(0, l, 1)
		switch i % 5 {
		case 0:
			tx.Rollback()
		case 1: // left open
		default:
			want++
			if !tx.Commit() || tx.Commit() {
				t.Fatal("Commit did not say whether it did")
			}
		}
	}
	tx.Rollback()
	if r := one(s, t0, key(0, "counter"), l, 0); r.Limit-r.Remaining != int64(want) {
		t.Errorf("%d units, want %d", r.Limit-r.Remaining, want)
	}
	s.FlushAll() // all locks are free
}

func TestTxDoesNotAllocate(t *testing.T) {
	s, l := New(), limit(t, 1<<20, 1, 3600)
	var tx Tx
	for _, n := range []int{1, 2, 8, keepTxKeys} {
		keys := make([]Key, n)
		for i := range keys {
			keys[i] = key(uint16(i%2), fmt.Sprint("key", i))
		}
		for _, release := range []bool{false, true} {
			if allocs := testing.AllocsPerRun(100, func() {
				tx.Begin(s, t0, keys)
				if release {
					tx.Release()
				}
				for i := range keys {
					if place, ok := tx.Find(keys[i]); ok {
						tx.Throttle(place, l, 1)
					}
				}
				tx.Commit()
			}); allocs != 0 {
				t.Errorf("%d keys, released %v: %v allocations, want 0", n, release, allocs)
			}
		}
	}
}

// TestReleasedTxsAreAtomic has callers that move two keys in step by transactions that hold no locks meanwhile: no
// step is lost or made twice, and nobody sees one key before the other.
func TestReleasedTxsAreAtomic(t *testing.T) {
	const callers, each = 4, 300
	s, l := New(), limit(t, 1<<20, 1, 3600)
	a, b := key(0, "a"), key(0, "b")
	var failed atomic.Int64
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			var tx Tx
			keys := []Key{a, b}
			if g%2 == 0 {
				keys = []Key{b, a}
			}
			for n := 0; n < each; {
				tx.Begin(s, t0, keys)
				tx.Release()
				first, _ := tx.TAT(0)
				second, _ := tx.TAT(1)
				if first != second {
					t.Errorf("TATs %d and %d are out of step", first, second)
				}
				tx.Throttle(0, l, 1)
				tx.Throttle(1, l, 1)
				if tx.Commit() {
					n++
				} else {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	for _, k := range []Key{a, b} {
		if r := one(s, t0, k, l, 0); r.Limit-r.Remaining != callers*each {
			t.Errorf("%s: %d units, want %d", k.Name, r.Limit-r.Remaining, callers*each)
		}
	}
	var st Stats
	if s.UpdateStats(&st); st.Allowed != 2*callers*each+2 {
		t.Errorf("%d were allowed, want %d", st.Allowed, 2*callers*each+2)
	}
	t.Logf("%d commits found a change", failed.Load())
}

func BenchmarkTx(b *testing.B) {
	l := limit(b, 1<<20, 1, 3600)
	for _, n := range []int{1, 2, 8} {
		for _, release := range []bool{false, true} {
			b.Run(fmt.Sprintf("keys=%d/release=%v", n, release), func(b *testing.B) {
				s, keys := New(), make([]Key, n)
				for i := range keys {
					keys[i] = key(0, fmt.Sprint("user:", i))
				}
				var tx Tx
				b.ReportAllocs()
				for b.Loop() {
					tx.Begin(s, t0, keys)
					if release {
						tx.Release()
					}
					for i := range keys {
						tx.Throttle(i, l, 1)
					}
					tx.Commit()
				}
			})
		}
	}
}

func TestTransactionsDoNotDeadlock(t *testing.T) {
	s := New()
	keys := make([]Key, 50)
	for i := range keys {
		keys[i] = key(0, fmt.Sprint(i))
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			l := limit(t, 5, 1, 60)
			for i := range 300 {
				list := append([]Key{keys[(i*7+g)%50], keys[(i*3)%50]}, keys[(i+g)%40:(i+g)%40+10]...)
				tx := s.Begin(t0, list)
				tx.Throttle(i%len(list), l, 1)
				tx.Delete((i + 1) % len(list))
				tx.Commit()
				if i%50 == 0 {
					s.FlushAll()
				}
			}
		})
	}
	wg.Wait()
}
