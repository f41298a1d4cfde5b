package shard

import (
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// roundRun is a store whose changes are told round by round; at one step of a round something is done.
type roundRun struct {
	*testing.T
	s        *Store
	reported states
}

func (r *roundRun) set(ks store.Keys, name string, expiresNs int64) {
	if _, _, err := store.SetIf(ks, t0, key(0, name), limiter.State{ExpiresNs: expiresNs}, store.Always); err != nil {
		r.Fatal(err)
	}
}

// round calls do at a step, and reports whether the round has that many.
func (r *roundRun) round(at int, do func()) (has bool) {
	for step, cursor := 0, 0; cursor != 0 || step == 0; step++ {
		if has = has || step == at; step == at {
			do()
		}
		var complete bool
		cursor, complete = r.s.Changes(t0, cursor, func(c store.Change) { r.reported.set(t0, c.Key, c.State) })
		if !complete {
			r.Fatal("a round is incomplete")
		}
	}
	return has
}

func (r *roundRun) has(name string) int64 { return r.reported[idOf(key(0, name))].ExpiresNs }

// TestRoundsHaveWhatWasBefore: what was changed before a round is in it, or something later, whatever happens
// to its key meanwhile.
func TestRoundsHaveWhatWasBefore(t *testing.T) {
	const old, before = t0 + 5*sec, t0 + 7*sec
	for _, again := range []bool{false, true} {
		for at, more := 0, true; more; at++ {
			r := &roundRun{t, New(), states{}}
			r.s.Track(func() {})
			r.set(r.s, "k", old)
			r.round(-1, nil)
			r.set(r.s, "k", before)
			more = r.round(at, func() {
				_, _ = r.s.Delete(t0, []store.Key{key(0, "k")})
				if again {
					r.set(r.s, "k", t0+9*sec)
				}
			})
			if got := r.has("k"); got == old {
				t.Errorf("removed at step %d, stored again %t: the round has what was before the one before", at, again)
			}
		}
	}
}

// TestRoundsHaveMovedKeys: a key that transactions move there and back is in a round under a name.
func TestRoundsHaveMovedKeys(t *testing.T) {
	for at, more := 0, true; more; at++ {
		r := &roundRun{t, New(), states{}}
		r.s.Track(func() {})
		move := func(from, to string) {
			tx := r.s.Begin(t0, []store.Key{key(0, from), key(0, to)})
			_, _ = tx.Delete(t0, []store.Key{key(0, from)})
			r.set(tx, to, t0+5*sec)
			if !tx.Commit() {
				t.Fatal("not committed")
			}
		}
		r.set(r.s, "a", t0+5*sec)
		r.round(-1, nil)
		move("a", "b")
		more = r.round(at, func() { move("b", "a") })
		if r.has("a") <= t0 && r.has("b") <= t0 {
			t.Errorf("moved back at step %d: it is under no name", at)
		}
	}
}

// TestRoundsHaveWholeHolds: what a transaction holds and settles on several keys is in a round for all of
// them or for none.
func TestRoundsHaveWholeHolds(t *testing.T) {
	l, err := funnel.NewLimit(funnel.Capacity, 100, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	n := limiter.NewNamedLimit([]limiter.NamedRule{limiter.PlainRule(l, 1)}, 0)
	hold := limiter.OfNamed(n.Holding(&limiter.Hold{ID: limiter.HoldID{1}, TTLNs: 5 * sec}))
	keys := []store.Key{key(0, "a"), key(0, "b"), key(0, "c")}
	for at, more := 0, true; more; at++ {
		r := &roundRun{t, New(), states{}}
		r.s.Track(func() {})
		do := func(step func() store.Step) {
			tx := r.s.Begin(t0, keys)
			defer tx.Rollback()
			for _, k := range keys {
				if err := tx.Apply(t0, k, step()); err != nil {
					t.Fatal(err)
				}
			}
			if !tx.Commit() {
				t.Fatal("not committed")
			}
		}
		open := func() (n int) {
			for _, k := range keys {
				s := r.reported[idOf(k)]
				one, _ := limiter.HoldsOf(&s)
				n += one
			}
			return n
		}
		holds := func() { do(func() store.Step { return &store.Request{Rule: hold, Quantity: 1} }) }
		r.round(at, holds)
		if n := open(); n%len(keys) != 0 {
			t.Errorf("held at step %d: the round has it for %d keys", at, n)
		}
		r.round(-1, nil)
		more = r.round(at, func() {
			do(func() store.Step { return &limiter.Settle{Rule: limiter.OfNamed(n), ID: limiter.HoldID{1}} })
		})
		if n := open(); n%len(keys) != 0 {
			t.Errorf("settled at step %d: the round has it for %d keys", at, n)
		}
	}
}
