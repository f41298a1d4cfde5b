package shard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/store"
)

// maxHolds is the maximum of holds of a key.
const maxHolds = 4096

// budgetLimit is a limit of a million units an hour: a fixed window, and a funnel.
func budgetLimit(t *testing.T) *limiter.NamedLimit {
	t.Helper()
	w, err := limitertest.Rule(limiter.FixedWindow, 1_000_000, 0, 3600)
	if err != nil {
		t.Fatal(err)
	}
	return limiter.NewNamedLimit([]limiter.NamedRule{
		limiter.PlainRule(limit(t, 999_999, 1_000_000, 3600), 3600*sec), limiter.OtherRule(w, "window"),
	}, 0)
}

func holdID(n int) (id limiter.HoldID) {
	binary.LittleEndian.PutUint64(id[:], uint64(n))
	return id
}

// holdOn holds units on a key for some seconds.
func holdOn(t *testing.T, on store.Keys, n *limiter.NamedLimit, nowNs int64, k store.Key, id int, charge bool) {
	t.Helper()
	batch := []store.Request{{Key: k, Rule: limiter.OfNamed(n.Holding(&limiter.Hold{ID: holdID(id), TTLNs: 10 * sec, Charge: charge})), Quantity: 5}}
	if on.Throttle(nowNs, batch); batch[0].Err != nil || batch[0].Result.Limited {
		t.Fatalf("hold %d of %s: %+v", id, k.Name, batch[0])
	}
}

func check(t *testing.T, on store.Keys, n *limiter.NamedLimit, nowNs int64, k store.Key, units int64) {
	t.Helper()
	batch := []store.Request{{Key: k, Rule: limiter.OfNamed(n), Quantity: units}}
	if on.Throttle(nowNs, batch); batch[0].Err != nil || batch[0].Result.Limited {
		t.Fatalf("%s: %+v", k.Name, batch[0])
	}
}

// holds is the counts by limit.
type holds = map[string]store.HoldStats

func wantHolds(t *testing.T, s *Store, want holds) {
	t.Helper()
	if got := statsOf(s).Holds; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestEndedHoldsAreCounted once, by limit: by a look, a charge, in a transaction when it commits, and when
// nobody has looked until the key has expired.
func TestEndedHoldsAreCounted(t *testing.T) {
	n := budgetLimit(t)
	s := newStore(2)
	two := func(name string) store.Key {
		k := key(0, name)
		holdOn(t, s, n, t0, k, 1, false)
		holdOn(t, s, n, t0, k, 2, true)
		return k
	}
	looked, charged, moved, undone := two("looked:a"), two("charged:a"), two("tx:a"), two("tx:b")
	for _, name := range []string{"swept:" + strings.Repeat("x", 3000), "overwritten:a", "open:a"} {
		two(name)
	}
	wantHolds(t, s, nil)
	const over = t0 + 11*sec
	want := holds{}
	for range 2 {
		check(t, s, n, over, looked, 0)
		want["looked"] = store.HoldStats{Returned: 1, Charged: 1}
		wantHolds(t, s, want)
	}
	for range 2 {
		check(t, s, n, over, charged, 1)
		want["charged"] = store.HoldStats{Returned: 1, Charged: 1}
		wantHolds(t, s, want)
	}

	tx := s.Begin(over, []store.Key{moved, undone})
	check(t, tx, n, over, moved, 0)
	check(t, tx, n, over, moved, 1)
	undo := tx.Save()
	check(t, tx, n, over, undone, 1)
	undo()
	tx.Commit()
	want["tx"] = store.HoldStats{Returned: 1, Charged: 1}
	wantHolds(t, s, want)
	tx = s.Begin(over, []store.Key{undone})
	check(t, tx, n, over, undone, 1)
	tx.Rollback()
	wantHolds(t, s, want)

	const gone = t0 + 3*86_400*sec
	check(t, s, n, gone, key(0, "overwritten:a"), 1)
	want["overwritten"] = store.HoldStats{Returned: 1, Charged: 1}
	wantHolds(t, s, want)
	for w, i := NewSweeper(s), 0; i < 2*s.segments(); i++ {
		w.Step(gone)
	}
	want["open"], want["tx"] = store.HoldStats{Returned: 1, Charged: 1}, store.HoldStats{Returned: 2, Charged: 2}
	want["swept"] = store.HoldStats{Returned: 1, Charged: 1}
	wantHolds(t, s, want)
}

// TestHoldsOfRefusedChangesAreNotCounted: they are counted by the step whose payload is kept.
func TestHoldsOfRefusedChangesAreNotCounted(t *testing.T) {
	n, s, k := budgetLimit(t), newStore(2), key(0, "team:a")
	holdOn(t, s, n, t0, k, 1, false)
	s.Freeze(t0, store.ErrFrozen)
	batch := []store.Request{{Key: k, Rule: limiter.OfNamed(n), Quantity: 1}}
	for range 2 {
		if s.Throttle(t0+11*sec, batch); !errors.Is(batch[0].Err, store.ErrFrozen) {
			t.Fatalf("got %+v", batch[0])
		}
		check(t, s, n, t0+11*sec, k, 0)
	}
	wantHolds(t, s, nil)
	s.Freeze(store.Never, nil)
	check(t, s, n, t0+11*sec, k, 0)
	wantHolds(t, s, holds{"team": {Returned: 1}})
}

// TestEvictedHoldsAreCounted: each hold that was made is there, or was counted.
func TestEvictedHoldsAreCounted(t *testing.T) {
	const keys, each = 3000, 4
	n, s := budgetLimit(t), newStore(1)
	s.SetMaxBytes(512<<10, store.VolatileTTL)
	for i := range keys {
		for j := range each {
			holdOn(t, s, n, t0+int64(i), key(0, fmt.Sprint("team:", i)), j, j == 0)
		}
	}
	there := 0
	for i := range keys {
		if state, ok, _ := s.State(t0+keys, key(0, fmt.Sprint("team:", i))); ok {
			open, overdue := limiter.HoldsOf(&state)
			there += open + overdue
		}
	}
	// Some keys may have been evicted between their holds, and begun anew.
	if evicted := statsOf(s).Holds["team"].Evicted; evicted == 0 || there+int(evicted) != keys*each {
		t.Errorf("%d holds are there, and %d were evicted, of %d", there, evicted, keys*each)
	}
	checkBudget(t, s)
}

// fullOf fills a key with holds.
func fullOf(t *testing.T, s *Store, n *limiter.NamedLimit, k store.Key) {
	t.Helper()
	for i := range maxHolds {
		holdOn(t, s, n, t0, k, i, false)
	}
}

// TestMemoryOfManyHolds: a key's cost follows its holds up and down.
func TestMemoryOfManyHolds(t *testing.T) {
	n, s, k := budgetLimit(t), newStore(2), key(0, "team:a")
	fullOf(t, s, n, k)
	state, _, _ := s.State(t0, k)
	if cost, _ := s.MemoryUsage(t0, k); cost < len(state.Payload) || cost > len(state.Payload)*3/2+segmentBytes {
		t.Errorf("%d bytes with %d of payload", cost, len(state.Payload))
	}
	if len(state.Payload) > limiter.MaxStateBytes-limiter.MaxPayloadBytes+(4<<10) {
		t.Errorf("%d bytes for %d holds", len(state.Payload), maxHolds)
	}
	one := holdErr(s, n, k, maxHolds)
	if after, _, _ := s.State(t0, k); !errors.Is(one, limiter.ErrTooManyHolds) || !same(after, state) {
		t.Errorf("one more: %v", one)
	}
	for i := range maxHolds {
		settle := limiter.Settle{Rule: limiter.OfNamed(n), ID: holdID(i), Used: 1}
		if err := s.Apply(t0, k, &settle); err != nil || settle.State != limiter.OpenHold {
			t.Fatalf("%+v, %v", settle, err)
		}
	}
	if cost, _ := s.MemoryUsage(t0, k); cost > 2*segmentBytes {
		t.Errorf("%d bytes without holds", cost)
	}
	checkBudget(t, s)
	wantHolds(t, s, nil)
}

func holdErr(on store.Keys, n *limiter.NamedLimit, k store.Key, id int) error {
	batch := []store.Request{{Key: k, Rule: limiter.OfNamed(n.Holding(&limiter.Hold{ID: holdID(id), TTLNs: 10 * sec})), Quantity: 5}}
	on.Throttle(t0, batch)
	return batch[0].Err
}

// TestTransactionsOverFullKeys: a transaction of more keys full of holds than it has room for is refused and
// changes nothing; one with as many as fit changes them all.
func TestTransactionsOverFullKeys(t *testing.T) {
	const pairs = 32
	n, s := budgetLimit(t), newStore(2)
	first := key(0, "team:0")
	fullOf(t, s, n, first)
	full, _, _ := s.State(t0, first)
	keys := []store.Key{first}
	for i := 1; i < pairs; i++ {
		keys = append(keys, key(0, fmt.Sprint("team:", i)))
		if _, _, err := store.SetIf(s, t0, keys[i], full, store.Always); err != nil {
			t.Fatal(err)
		}
	}
	settleAll := func(of []store.Key) (done int, err error) {
		tx := s.Begin(t0, of)
		defer tx.Rollback()
		for _, k := range of {
			settle := limiter.Settle{Rule: limiter.OfNamed(n), ID: holdID(7), Used: 1}
			if err = tx.Apply(t0, k, &settle); err != nil {
				return done, err
			}
			done++
		}
		tx.Commit()
		return done, nil
	}
	done, err := settleAll(keys)
	if !errors.Is(err, store.ErrTooLarge) || done < txPayloadBytes/(limiter.MaxStateBytes-limiter.MaxPayloadBytes)-1 {
		t.Errorf("%d of %d full keys, then %v", done, pairs, err)
	}
	for _, k := range keys {
		if state, _, _ := s.State(t0, k); !same(state, full) {
			t.Fatalf("%s has changed", k.Name)
		}
	}
	if done, err := settleAll(keys[:done]); err != nil {
		t.Errorf("%d full keys, then %v", done, err)
	}
}
