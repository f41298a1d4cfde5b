package shard

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cellserver/internal/store"
)

func TestTxTakesTheSameKeyOnce(t *testing.T) {
	s := New()
	fill(t, s, t0, 1, "k", 60)
	keys := []store.Key{key(0, "k0"), key(0, "absent"), key(0, "k0"), key(1, "k0")}
	tx := s.Begin(t0, keys)
	var got []bool
	for _, k := range keys {
		got = append(got, remove(tx, t0, k))
	}
	tx.Commit()
	if want := []bool{true, false, false, false}; !slices.Equal(got, want) || length(s, t0, 0) != 0 {
		t.Errorf("got %v, %d keys left", got, length(s, t0, 0))
	}
}

func TestTxIsAllOrNothing(t *testing.T) {
	s := New()
	wide, narrow := limit(t, 9, 1, 60), limit(t, 0, 1, 60)
	keys := []store.Key{key(0, "user"), key(0, "address")}
	both := func() bool {
		tx := s.Begin(t0, keys)
		defer tx.Rollback()
		if one(tx, t0, keys[0], wide, 1).Limited || one(tx, t0, keys[1], narrow, 1).Limited {
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

// TestTxKnowsItsKeys: a key is known by its content, however many there are, and no other is.
func TestTxKnowsItsKeys(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 500} {
		s := New()
		var keys []store.Key
		for i := range n {
			keys = append(keys, key(uint16(i%3), fmt.Sprint(i)), key(uint16(i%3), strings.Repeat(fmt.Sprint(i), 20)))
		}
		tx := s.Begin(t0, append(keys, keys...))
		for i, k := range keys {
			tx.SetTAT(key(k.DB, string(k.Name)), t0+int64(i)+1)
		}
		for i, k := range keys {
			if got, ok := tatOf(tx, t0, k); got != t0+int64(i)+1 || !ok {
				t.Errorf("%d keys: TAT %d, %v, want %d", n, got-t0, ok, i+1)
			}
		}
		tx.Rollback()
	}
}

// TestTxKnowsNoOtherKeys: neither by its name alone, nor when it has ended. A panic leaves it to be rolled back.
func TestTxKnowsNoOtherKeys(t *testing.T) {
	for _, tt := range []struct {
		name  string
		given []store.Key
		end   func(tx store.Transaction)
		key   store.Key
	}{
		{"none was given", nil, nil, key(0, "k")},
		{"another name", []store.Key{key(0, "k"), key(0, "")}, nil, key(0, "another")},
		{"another database", []store.Key{key(0, "k"), key(2, "k")}, nil, key(1, "k")},
		{"committed", []store.Key{key(0, "k")}, func(tx store.Transaction) { tx.Commit() }, key(0, "k")},
		{"rolled back", []store.Key{key(0, "k")}, store.Transaction.Rollback, key(0, "k")},
	} {
		s := New()
		tx := s.Begin(t0, tt.given)
		if tt.end != nil {
			tt.end(tx)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: it did not panic", tt.name)
				}
			}()
			remove(tx, t0, tt.key)
		}()
		tx.Rollback()
		s.BeginAll(t0).End() // all locks are free
	}
}

// TestTxEndsOnce: what has ended, in whichever way, stays as it is, and holds no locks.
func TestTxEndsOnce(t *testing.T) {
	s, k, l := newStore(4), key(0, "k"), limit(t, 99, 1, 60)
	want := int64(0)
	for i := range 20 {
		tx := s.Begin(t0, []store.Key{k, key(0, "other"), k})
		if i%2 == 0 {
			tx.Release()
		}
		one(tx, t0, k, l, 1)
		if i%4 < 2 {
			tx.Rollback()
		} else if want++; !tx.Commit() {
			t.Fatal("it did not commit")
		}
		tx.Release()
		if tx.Commit() {
			t.Fatal("it was committed after its end")
		}
		tx.Rollback()
	}
	if r := one(s, t0, k, l, 0); r.Limit-r.Remaining != want {
		t.Errorf("%d units, want %d", r.Limit-r.Remaining, want)
	}
	s.FlushAll() // all locks are free
}

func TestTxReadsWhatItWrote(t *testing.T) {
	s, l := New(), limit(t, 0, 1, 60)
	k, other := key(0, "k"), key(0, "other")
	tx := s.Begin(t0, []store.Key{k, other, k})
	defer tx.Rollback()
	read := func(k store.Key, want int64) {
		t.Helper()
		if got, ok := tatOf(tx, t0, k); got != want || ok != (want > t0) {
			t.Errorf("TAT of %s: got %d, %v, want %d", k.Name, got, ok, want)
		}
	}
	read(k, t0)
	one(tx, t0, k, l, 1)
	read(k, t0+60*sec)
	read(other, t0)
	remove(tx, t0, k)
	read(k, t0)
}

// TestTxReleased: what others do between Release and Commit decides whether it happens.
func TestTxReleased(t *testing.T) {
	a, b, other := key(0, "a"), key(0, "b"), key(0, "other")
	l := limit(t, 9, 1, 60)
	throttleA := func(tx store.Transaction) { one(tx, t0, a, l, 2) }
	probe := func(tx store.Transaction) { one(tx, t0, a, l, 0) }
	for _, tt := range []struct {
		name   string
		mean   func(s *Store) // meanwhile
		do     func(tx store.Transaction)
		want   bool
		wantNs int64 // of a, after t0
	}{
		{name: "nobody", do: throttleA, want: true, wantNs: 180 * sec},
		{name: "nobody, deleted", do: func(tx store.Transaction) { remove(tx, t0, a) }, want: true},
		{name: "another key", do: throttleA, mean: func(s *Store) { put(t, s, t0, other, 60) }, want: true, wantNs: 180 * sec},
		{name: "limited", do: throttleA, mean: func(s *Store) { one(s, t0, a, limit(t, 0, 1, 1), 1) }, want: true, wantNs: 180 * sec},
		{name: "the key", do: throttleA, mean: func(s *Store) { one(s, t0, a, l, 1) }, wantNs: 120 * sec},
		{name: "a key that was only read", do: throttleA, mean: func(s *Store) { put(t, s, t0, b, 60) }, wantNs: 60 * sec},
		{name: "deleted", do: throttleA, mean: func(s *Store) { remove(s, t0, a) }},
		{name: "flushed", do: throttleA, mean: func(s *Store) { s.FlushAll() }},
		{name: "swept", do: throttleA, mean: func(s *Store) { sweepOnce(s, t0+60*sec) }},
		{name: "changed back", do: throttleA, want: true, wantNs: 180 * sec, mean: func(s *Store) {
			one(s, t0, a, l, 3)
			one(s, t0, a, l, -3)
		}},
		{name: "only read", do: probe, mean: func(s *Store) { remove(s, t0, a) }, want: true},
		{name: "nothing", do: func(store.Transaction) {}, mean: func(s *Store) { remove(s, t0, a) }, want: true},
		{name: "written and taken back", mean: func(s *Store) { remove(s, t0, a) }, do: func(tx store.Transaction) {
			one(tx, t0, a, l, 1)
			one(tx, t0, a, l, -1)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(4)
			put(t, s, t0, a, 60)
			tx := s.Begin(t0, []store.Key{a, b})
			tx.Release()
			tx.Release()
			if tt.mean != nil {
				tt.mean(s)
			}
			if r, _ := tatOf(tx, t0, a); r != t0+60*sec {
				t.Errorf("it reads %d after Release, want what it read at Begin", r)
			}
			tt.do(tx)
			if got := tx.Commit(); got != tt.want {
				t.Errorf("Commit: got %v, want %v", got, tt.want)
			}
			if got, _ := tatOf(s, t0, a); got != t0+tt.wantNs {
				t.Errorf("the key's TAT: got %d, want %d", got-t0, tt.wantNs)
			}
		})
	}
}

func TestTxCountsOnCommit(t *testing.T) {
	l, narrow := limit(t, 9, 1, 60), limit(t, 0, 1, 60)
	for _, tt := range []struct {
		name             string
		release          bool
		do               func(s *Store, tx store.Transaction)
		allowed, limited uint64
	}{
		{"committed", false, func(_ *Store, tx store.Transaction) { tx.Commit() }, 2, 1},
		{"committed twice", false, func(_ *Store, tx store.Transaction) { tx.Commit(); tx.Commit() }, 2, 1},
		{"rolled back", false, func(_ *Store, tx store.Transaction) { tx.Rollback() }, 0, 0},
		{"released and committed", true, func(_ *Store, tx store.Transaction) { tx.Commit() }, 2, 1},
		{"released and rolled back", true, func(_ *Store, tx store.Transaction) { tx.Rollback() }, 0, 0},
		{"found a change", true, func(s *Store, tx store.Transaction) { put(t, s, t0, key(0, "b"), 60); tx.Commit() }, 1, 0},
	} {
		s := New()
		tx := s.Begin(t0, []store.Key{key(0, "a"), key(0, "b")})
		if tt.release {
			tx.Release()
		}
		one(tx, t0, key(0, "a"), l, 1)
		one(tx, t0, key(0, "b"), l, 0)
		one(tx, t0, key(0, "a"), narrow, 1)
		tt.do(s, tx)
		var st store.Stats
		if s.UpdateStats(&st); st.Allowed != tt.allowed || st.Limited != tt.limited {
			t.Errorf("%s: %d allowed, %d limited, want %d, %d", tt.name, st.Allowed, st.Limited, tt.allowed, tt.limited)
		}
	}
	s := New()
	tx := s.Begin(t0, []store.Key{key(0, "a"), key(0, "b")})
	tx.Release()
	one(tx, t0, key(0, "a"), l, 0)
	one(tx, t0, key(0, "b"), l, 11)
	put(t, s, t0, key(0, "a"), 60)
	tx.Commit()
	var st store.Stats
	if s.UpdateStats(&st); st.Allowed != 2 || st.Limited != 1 {
		t.Errorf("a transaction that only read: %+v, want its 2 requests and another counted", st)
	}
}

// TestSetTAT, by a transaction and with all of the store: what it leaves, and who is told.
func TestSetTAT(t *testing.T) {
	const absent = int64(0)
	for _, tt := range []struct {
		name         string
		before       int64 // of the key, in seconds from now; absent for none
		set          []int64
		want         int64
		dirty, whole bool // whether a watch notices, by a transaction and with all of the store
	}{
		{"a new key", absent, []int64{30}, 30, true, true},
		{"longer", 10, []int64{30}, 30, true, true},
		{"shorter", 30, []int64{10}, 10, true, true},
		{"none", 30, []int64{0}, absent, true, true},
		{"long ago", 30, []int64{-99}, absent, true, true},
		{"none again", absent, []int64{0}, absent, false, true},
		{"as it was", 30, []int64{30}, 30, false, true},
		{"there and back", 30, []int64{10, 30}, 30, false, true},
		{"new and gone", absent, []int64{10, 0}, absent, false, true},
		{"twice", 30, []int64{10, 20}, 20, true, true},
	} {
		for _, whole := range []bool{false, true} {
			s, k := New(), key(3, "k")
			if tt.before != absent {
				put(t, s, t0, k, tt.before)
			}
			w := s.Watch(t0, []store.Key{k})
			var in interface {
				store.Keys
				store.Restorer
			}
			var end func()
			if whole {
				x := s.BeginAll(t0)
				in, end = x, x.End
			} else {
				tx := s.Begin(t0, []store.Key{k, key(3, "other")})
				in, end = tx, func() { tx.Commit() }
			}
			for _, atSec := range tt.set {
				in.SetTAT(k, t0+atSec*sec)
				if tatNs, ok := tatOf(in, t0, k); ok != (atSec > 0) || ok && tatNs != t0+atSec*sec {
					t.Errorf("%s: reads %d, %t after %d", tt.name, tatNs-t0, ok, atSec)
				}
			}
			end()
			tatNs, ok := tatOf(s, t0, k)
			if ok != (tt.want != absent) || ok && tatNs != t0+tt.want*sec {
				t.Errorf("%s, whole %t: left %d s, %t; want %d", tt.name, whole, (tatNs-t0)/sec, ok, tt.want)
			}
			if got, want := w.Dirty(t0), !whole && tt.dirty || whole && tt.whole; got != want {
				t.Errorf("%s, whole %t: dirty is %t", tt.name, whole, got)
			}
			w.Close()
		}
	}
}

// TestSetTATAndConflicts: a released transaction that has taken back what it wrote has nothing to lose to others.
func TestSetTATAndConflicts(t *testing.T) {
	s, k, l := New(), key(0, "k"), limit(t, 9, 1, 10)
	for _, takeBack := range []bool{false, true} {
		tx := s.Begin(t0, []store.Key{k})
		tx.Release()
		found, _ := tatOf(tx, t0, k)
		one(tx, t0, k, l, 2)
		if takeBack {
			tx.SetTAT(k, found)
		}
		one(s, t0, k, l, 1)
		if committed := tx.Commit(); committed != takeBack {
			t.Errorf("took back is %t, and committed %t", takeBack, committed)
		}
	}
	if r := one(s, t0, k, l, 0); r.Remaining != 8 {
		t.Errorf("%d remain, want 8", r.Remaining)
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
			keys := []store.Key{a, b}
			if g%2 == 0 {
				keys = []store.Key{b, a}
			}
			for n := 0; n < each; {
				tx := s.Begin(t0, keys)
				tx.Release()
				first, _ := tatOf(tx, t0, a)
				second, _ := tatOf(tx, t0, b)
				if first != second {
					t.Errorf("TATs %d and %d are out of step", first, second)
				}
				one(tx, t0, a, l, 1)
				one(tx, t0, b, l, 1)
				if tx.Commit() {
					n++
				} else {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	for _, k := range []store.Key{a, b} {
		if r := one(s, t0, k, l, 0); r.Limit-r.Remaining != callers*each {
			t.Errorf("%s: %d units, want %d", k.Name, r.Limit-r.Remaining, callers*each)
		}
	}
	var st store.Stats
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
				s, keys := New(), make([]store.Key, n)
				for i := range keys {
					keys[i] = key(0, fmt.Sprint("user:", i))
				}
				batch := make([]store.Request, n)
				for i := range batch {
					batch[i] = store.Request{Key: keys[i], Limit: l, Quantity: 1}
				}
				b.ReportAllocs()
				for b.Loop() {
					tx := s.Begin(t0, keys)
					if release {
						tx.Release()
					}
					tx.Throttle(t0, batch)
					tx.Commit()
				}
			})
		}
	}
}

func TestTransactionsDoNotDeadlock(t *testing.T) {
	s := New()
	keys := make([]store.Key, 50)
	for i := range keys {
		keys[i] = key(0, fmt.Sprint(i))
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			l := limit(t, 5, 1, 60)
			for i := range 300 {
				list := append([]store.Key{keys[(i*7+g)%50], keys[(i*3)%50]}, keys[(i+g)%40:(i+g)%40+10]...)
				tx := s.Begin(t0, list)
				one(tx, t0, list[i%len(list)], l, 1)
				remove(tx, t0, list[(i+1)%len(list)])
				tx.Commit()
				if i%50 == 0 {
					s.FlushAll()
				}
			}
		})
	}
	wg.Wait()
}
