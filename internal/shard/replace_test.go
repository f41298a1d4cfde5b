package shard

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/store"
)

// restored returns a store beside s with keys by a prefix.
func restored(s *Store, prefix string, keys int) *Store {
	b := s.Beside()
	for i := range keys {
		c := store.Change{Key: key(0, fmt.Sprint(prefix, i))}
		c.State.ExpiresNs = t0 + int64(1+i)*sec
		b.Restore(t0, 0, 1, []store.Change{c})
	}
	return b
}

// TestReplace: the states of the other store are there, and no others; the budget counts them.
func TestReplace(t *testing.T) {
	for _, length := range []int{1, 60} {
		old, next := strings.Repeat("o", length), strings.Repeat("n", length)
		s := newStore(4)
		fill(t, s, t0, 5000, old, 60)
		for round, keys := range []int{3000, 0, 20_000, 10} {
			s.Replace(restored(s, next, keys))
			checkBudget(t, s)
			if got := length0(s); got != keys {
				t.Fatalf("round %d: %d keys, want %d", round, got, keys)
			}
			for i := range keys {
				if tatNs, ok := tatOf(s, t0, key(0, fmt.Sprint(next, i))); !ok || tatNs != t0+int64(1+i)*sec {
					t.Fatalf("round %d: key %d: %d, %t", round, i, tatNs-t0, ok)
				}
			}
			put(t, s, t0, key(0, "after"), 60)
			sweepOnce(s, t0+5*sec)
			checkBudget(t, s)
		}
	}
}

func length0(s *Store) int { return length(s, t0, 0) }

// TestBesideKeepsTheBound: what is built beside a store is bounded as it is, and so is the store afterwards.
func TestBesideKeepsTheBound(t *testing.T) {
	const most = 256 << 10
	s := newStore(4)
	s.SetMaxBytes(most, store.VolatileTTL)
	b := restored(s, "n", 50_000)
	if n := statsOf(b).Bytes; n > most {
		t.Errorf("%d bytes are beside", n)
	}
	keys := length0(b)
	s.Replace(b)
	checkBudget(t, s)
	if n := statsOf(s).Bytes; n > most || length0(s) != keys || keys == 0 {
		t.Errorf("%d bytes, and %d keys of %d", n, length0(s), keys)
	}
	fill(t, s, t0, 20_000, "more", 60)
	checkBudget(t, s)
	if n := statsOf(s).Bytes; n > most {
		t.Errorf("%d bytes later", n)
	}
}

// TestReplaceIsSeen: watches are dirty, a tracker's round is incomplete and the next one complete, and
// transactions that have released their keys do not commit.
func TestReplaceIsSeen(t *testing.T) {
	s, r, l := newStore(4), replica{}, limit(t, 9, 1, 60)
	s.Track(func() {})
	fill(t, s, t0, 1000, "o", 60)
	r.check(t, s, t0)
	watched, other := key(0, "o1"), key(0, "absent")
	w := s.Watch(t0, []store.Key{watched, other})
	defer w.Close()
	tx := s.Begin(t0, []store.Key{watched})
	one(tx, t0, watched, l, 1)
	tx.Release()
	if w.Dirty(t0) {
		t.Fatal("dirty before")
	}
	s.Replace(restored(s, "n", 1000))
	if !w.Dirty(t0) {
		t.Error("a watch does not see it")
	}
	if tx.Commit() {
		t.Error("a transaction of before commits")
	}
	if r.follow(s, t0) {
		t.Error("the round is complete")
	}
	clear(r)
	for i := range 1000 { // as after States
		k := key(0, fmt.Sprint("n", i))
		r[idOf(k)], _ = tatOf(s, t0, k)
	}
	put(t, s, t0, key(0, "later"), 60)
	remove(s, t0, key(0, "n7"))
	if !r.follow(s, t0) {
		t.Error("the next round is incomplete")
	}
	r.check(t, s, t0)
}

// TestReplaceWhileFrozen: a frozen store takes states, and refuses changes as before.
func TestReplaceWhileFrozen(t *testing.T) {
	s := newStore(2)
	s.Freeze(0, store.ErrFrozen)
	s.Replace(restored(s, "n", 100))
	if length0(s) != 100 {
		t.Errorf("%d keys", length0(s))
	}
	if _, err := s.Delete(t0, []store.Key{key(0, "n1")}); !errors.Is(err, store.ErrFrozen) {
		t.Errorf("Delete: %v", err)
	}
	s.Freeze(store.Never, nil)
	if !remove(s, t0, key(0, "n1")) {
		t.Error("it still refuses")
	}
}

// TestFrozenFrom: changes are refused from a time on, what changes nothing is answered, and others' states
// are taken.
func TestFrozenFrom(t *testing.T) {
	s, l, there, absent := newStore(2), limit(t, 9, 1, 60), key(0, "there"), key(0, "absent")
	put(t, s, t0, there, 60)
	cause := fmt.Errorf("no: %w", store.ErrFrozen)
	s.Freeze(t0+5, cause)
	for _, tt := range []struct {
		atNs    int64
		refuses bool
	}{{t0, false}, {t0 + 4, false}, {t0 + 5, true}, {t0 + 6, true}} {
		if _, err := s.Delete(tt.atNs, []store.Key{absent}); err != nil {
			t.Errorf("at %d: nothing is deleted: %v", tt.atNs-t0, err)
		}
		deleted, err := s.Delete(tt.atNs, []store.Key{there})
		if errors.Is(err, cause) != tt.refuses || deleted == 1 == tt.refuses {
			t.Errorf("at %d: deleted %d, %v", tt.atNs-t0, deleted, err)
		}
		s.Freeze(store.Never, nil)
		put(t, s, t0, there, 60)
		s.Freeze(t0+5, cause)
		tx := s.Begin(tt.atNs, []store.Key{there})
		if deleted, err := tx.Delete(tt.atNs, []store.Key{there}); errors.Is(err, cause) != tt.refuses || deleted == 1 == tt.refuses {
			t.Errorf("at %d, in a transaction: deleted %d, %v", tt.atNs-t0, deleted, err)
		}
		tx.Rollback()
		if r := one(s, tt.atNs, there, l, 0); r.Limited || r.Limit != 10 {
			t.Errorf("at %d: a look: %+v", tt.atNs-t0, r)
		}
	}
	c := store.Change{Key: there}
	c.State.ExpiresNs = t0 + 9*sec
	s.Restore(t0+6, 0, 1, []store.Change{c})
	if tatNs, _ := tatOf(s, t0, there); tatNs != t0+9*sec {
		t.Errorf("a restored state is %d", tatNs-t0)
	}
}

// TestReleasedAndFrozen: a transaction that has released its keys does not commit changes after a freeze, and
// one without changes does.
func TestReleasedAndFrozen(t *testing.T) {
	l, k := limit(t, 9, 1, 60), key(0, "k")
	for _, tt := range []struct {
		fromNs  int64
		changes bool
		want    bool
	}{{0, true, false}, {t0, true, false}, {t0 + 1, true, true}, {0, false, true}, {store.Never, true, true}} {
		s := newStore(2)
		put(t, s, t0, k, 60)
		tx := s.Begin(t0, []store.Key{k, key(0, "other")})
		tx.Release()
		quantity := int64(0)
		if tt.changes {
			quantity = 1
		}
		one(tx, t0, k, l, quantity)
		s.Freeze(tt.fromNs, store.ErrFrozen)
		before, _ := tatOf(s, t0, k)
		if got := tx.Commit(); got != tt.want {
			t.Errorf("from %d, changes: %t: Commit: %t", tt.fromNs, tt.changes, got)
		}
		if after, _ := tatOf(s, t0, k); after != before && !tt.want {
			t.Errorf("from %d: it has changed", tt.fromNs)
		}
	}
}
