package shard

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
	"cellserver/internal/test/randtest"
)

const spentDay = 86_400 * sec

// spentHold is a hold of the model.
type spentHold struct {
	id             int
	beganNs, endNs int64
	units          int64
	charge         bool
	overdue        bool
}

// spending is what was spent, as the model reckons it, and the holds of each key.
type spending struct {
	units map[int64]int64 // by day
	holds map[int][]spentHold
}

func (m *spending) clone() (own spending) {
	own = spending{maps.Clone(m.units), map[int][]spentHold{}}
	for k, of := range m.holds {
		own.holds[k] = slices.Clone(of)
	}
	return own
}

func (m *spending) add(atNs, units int64) { m.units[atNs/spentDay] += units }

func (m *spending) tidy(nowNs int64) {
	for k, of := range m.holds {
		for i := range of {
			if h := &of[i]; !h.overdue && h.endNs <= nowNs {
				if h.overdue = true; !h.charge {
					m.add(h.beganNs, -h.units)
				}
			}
		}
		m.holds[k] = slices.DeleteFunc(of, func(h spentHold) bool { return h.endNs+spentDay <= nowNs })
	}
}

// spentRun is random steps on a store that a disk and a replica follow by rounds.
type spentRun struct {
	*rand.Rand
	t       *testing.T
	limit   *limiter.NamedLimit
	s       *Store
	replica *Store
	disk    []store.Change
	nowNs   int64
	model   spending
	synced  spending // at the last round
	next    int
	done    map[string]int
}

const spentKeys = 6

func newSpentRun(t *testing.T, rng *rand.Rand, done map[string]int) *spentRun {
	t.Helper()
	r := &spentRun{Rand: rng, t: t, limit: budgetLimit(t), nowNs: t0, done: done, s: newStore(2), model: spending{map[int64]int64{}, map[int][]spentHold{}}}
	r.limit.Shadow = true // so that all is charged
	r.s.Track(func() {})
	r.replica = newStore(2)
	r.follow()
	return r
}

// follow makes an empty store, or one that was another's leader, a replica by a full sync.
func (r *spentRun) follow() {
	r.replica.Freeze(0, store.ErrFrozen)
	r.replica.Track(func() {})
	b := r.replica.Beside()
	r.s.States(r.t.Context(), r.nowNs, func(c store.Change) { b.Restore(r.nowNs, 0, 1, []store.Change{c}) }, nil)
	r.replica.Replace(b)
	r.round()
}

func cloned(c store.Change) store.Change {
	c.Key.Name, c.State.Payload = bytes.Clone(c.Key.Name), bytes.Clone(c.State.Payload)
	if c.Spent != nil {
		of := *c.Spent
		c.Spent = &of
	}
	return c
}

// round brings all changes to the disk and to the replica.
func (r *spentRun) round() {
	complete := store.Round(r.s, r.nowNs, func(c store.Change) {
		if c = cloned(c); !c.Flushed && c.Spent == nil && c.State.ExpiresNs <= r.nowNs {
			c.State = limiter.State{}
		}
		r.disk = append(r.disk, c)
		r.replica.Restore(r.nowNs, 0, 1, []store.Change{c})
	})
	if r.synced = r.model.clone(); !complete {
		r.t.Fatal("a round is incomplete")
	}
	store.Round(r.replica, r.nowNs, func(store.Change) {}) // to its own disk
}

func (r *spentRun) save() {
	r.disk = nil
	r.s.States(r.t.Context(), r.nowNs, func(c store.Change) { r.disk = append(r.disk, cloned(c)) }, nil)
	r.round()
}

// loaded returns a store as a start finds it.
func (r *spentRun) loaded() *Store {
	s := newStore(2)
	for part := range 3 {
		s.Restore(r.nowNs, part, 3, r.disk)
	}
	return s
}

func (r *spentRun) key(i int) store.Key { return key(uint16(i%2), fmt.Sprint("team:", i)) }

func (r *spentRun) step() {
	switch n := r.IntN(100); {
	case n < 20:
		r.nowNs += r.Int64N(12 * sec)
	case n < 22: // all that has expired is swept
		r.nowNs += 3 * spentDay
		r.model.tidy(r.nowNs)
		sweepOnce(r.s, r.nowNs)
		sweepOnce(r.replica, r.nowNs)
		r.round()
		r.verify()
	case n < 60:
		r.ask(r.s, &r.model, r.IntN(spentKeys))
	case n < 68:
		r.transact()
	case n < 76:
		r.looks(pick(r.Rand, r.s, r.replica))
	case n < 80:
		sweepOnce(pick(r.Rand, r.s, r.replica), r.nowNs)
	case n < 82:
		r.notice()
		r.model.holds = map[int][]spentHold{}
		if r.IntN(2) == 0 {
			r.s.FlushAll()
		} else if _, err := r.s.Delete(r.nowNs, []store.Key{r.key(0), r.key(1), r.key(2), r.key(3), r.key(4), r.key(5)}); err != nil {
			r.t.Fatal(err)
		}
		r.done["removed"]++
	case n < 88:
		r.round()
	case n < 90:
		r.save()
	case n < 92: // a crash
		r.s, r.model = r.loaded(), r.synced.clone()
		r.s.Track(func() {})
		r.follow()
		r.done["crashed"]++
	case n < 94: // a failover
		r.s, r.replica, r.model = r.replica, newStore(2), r.synced.clone()
		r.s.Freeze(store.Never, nil)
		if r.IntN(2) == 0 { // the old leader comes back
			r.replica.Restore(r.nowNs, 0, 1, r.disk)
			r.done["old leaders"]++
		}
		r.follow()
		r.save()
		r.done["failed over"]++
	default:
		r.verify()
	}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// ask holds, settles, extends, debits or checks.
func (r *spentRun) ask(on store.Keys, m *spending, k int) {
	m.tidy(r.nowNs)
	units := 1 + r.Int64N(9)
	switch n := r.IntN(10); {
	case n < 4:
		r.next++
		ttlNs, charge := 1+r.Int64N(20*sec), r.IntN(3) == 0
		hold := r.limit.Holding(&limiter.Hold{ID: holdID(r.next), TTLNs: ttlNs, Charge: charge})
		r.request(on, k, store.Request{Rule: limiter.OfNamed(hold), Quantity: units})
		m.holds[k] = append(m.holds[k], spentHold{id: r.next, beganNs: r.nowNs, endNs: r.nowNs + ttlNs, units: units, charge: charge})
		m.add(r.nowNs, units)
	case n < 7:
		r.settle(on, m, k, units)
	case n < 8:
		debit := limiter.OfNamed(r.limit)
		debit.Flags = limiter.Debit
		r.request(on, k, store.Request{Rule: debit, Quantity: units})
		m.add(r.nowNs, units)
		r.done["debited"]++
	case n < 9 && len(m.holds[k]) > 0:
		h := &m.holds[k][r.IntN(len(m.holds[k]))]
		extend := limiter.Extend{ID: holdID(h.id), TTLNs: 1 + r.Int64N(30*sec)}
		if err := on.Apply(r.nowNs, r.key(k), &extend); err != nil || extend.Open == h.overdue {
			r.t.Fatalf("extended %+v: %+v, %v", h, extend, err)
		}
		if extend.Open {
			h.endNs = r.nowNs + extend.TTLNs
		}
	default:
		r.request(on, k, store.Request{Rule: limiter.OfNamed(r.limit), Quantity: units})
	}
}

func (r *spentRun) request(on store.Keys, k int, q store.Request) {
	r.t.Helper()
	q.Key = r.key(k)
	batch := []store.Request{q}
	if on.Throttle(r.nowNs, batch); batch[0].Err != nil || batch[0].Result.Limited {
		r.t.Fatalf("key %d: %+v", k, batch[0])
	}
}

func (r *spentRun) settle(on store.Keys, m *spending, k int, used int64) {
	if len(m.holds[k]) == 0 {
		return
	}
	h := m.holds[k][r.IntN(len(m.holds[k]))]
	step := limiter.Settle{Rule: limiter.OfNamed(r.limit), ID: holdID(h.id), Used: used}
	if err := on.Apply(r.nowNs, r.key(k), &step); err != nil || step.State == limiter.NoHold || step.Held != h.units {
		r.t.Fatalf("settled %+v: %+v, %v", h, step, err)
	}
	if h.overdue && !h.charge {
		m.add(h.beganNs, used)
		r.done["late"]++
	} else {
		m.add(h.beganNs, used-h.units)
	}
	m.holds[k] = slices.DeleteFunc(m.holds[k], func(of spentHold) bool { return of.id == h.id })
	r.done["settled"]++
}

// transact asks in a transaction, of which a part may be undone, or all.
func (r *spentRun) transact() {
	m := r.model.clone()
	tx := r.s.Begin(r.nowNs, []store.Key{r.key(0), r.key(1), r.key(2)})
	defer tx.Rollback()
	for range 1 + r.IntN(5) {
		undo, before := tx.Save(), m.clone()
		for range 1 + r.IntN(3) {
			r.ask(tx, &m, r.IntN(3))
		}
		if r.IntN(3) == 0 {
			undo()
			m = before
			r.done["undone"]++
		}
	}
	if r.IntN(4) > 0 && tx.Commit() {
		r.model = m
	}
}

// looks looks at some keys, also where nothing may be changed.
func (r *spentRun) looks(on *Store) {
	for range 3 {
		k := r.IntN(spentKeys)
		r.request(on, k, store.Request{Rule: limiter.OfNamed(r.limit)})
		find := limiter.FindHold{ID: holdID(r.next)}
		if err := on.Apply(r.nowNs, r.key(k), &find); err != nil {
			r.t.Fatal(err)
		}
	}
}

// notice has the time of each hold that is over end it.
func (r *spentRun) notice() {
	r.model.tidy(r.nowNs)
	for k := range spentKeys {
		r.request(r.s, k, store.Request{Rule: limiter.OfNamed(r.limit), Quantity: 1})
	}
}

// verify compares with the model, and what a start and a replica have with the store.
func (r *spentRun) verify() {
	r.t.Helper()
	r.notice()
	r.compare("the store", r.s)
	r.round()
	r.compare("the store after a round", r.s)
	r.compare("the disk", r.loaded())
	r.compare("the replica", r.replica)
}

func (r *spentRun) compare(what string, s *Store) {
	r.t.Helper()
	got, want := map[int64]int64{}, maps.Clone(r.model.units)
	for _, of := range s.Spent("").Sorted() {
		if got[int64(of.Day)] = of.Units; of.Limit != "team" {
			r.t.Fatalf("%s has spent under %q", what, of.Limit)
		}
	}
	none := func(_, units int64) bool { return units == 0 }
	maps.DeleteFunc(got, none)
	maps.DeleteFunc(want, none)
	if !maps.Equal(got, want) {
		r.t.Fatalf("%s: spent %v, want %v", what, got, want)
	}
}

// TestSpentIsExact: what was spent by day is as the model says at any time, whatever is undone, looked at or
// swept, and it is the same on a disk and on a replica with the keys of a round, after crashes, failovers and
// full syncs.
func TestSpentIsExact(t *testing.T) {
	seed, done := randtest.Seed(t, 51), map[string]int{}
	for i := range uint64(60) {
		if !t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := newSpentRun(t, rand.New(rand.NewPCG(seed, i)), done)
			for range 300 {
				r.step()
			}
			r.verify()
		}) {
			break
		}
	}
	t.Log(done)
	for _, what := range []string{"settled", "late", "debited", "undone", "removed", "crashed", "failed over", "old leaders"} {
		if done[what] < 20 {
			t.Errorf("%s: only %d", what, done[what])
		}
	}
}

// TestSpentOfEvictedKeys: holds whose time was over are returned once, also by a start with an older file.
func TestSpentOfEvictedKeys(t *testing.T) {
	n, s := budgetLimit(t), newStore(1)
	s.Track(func() {})
	var disk []store.Change
	const keys = 1000
	for i := range keys {
		holdOn(t, s, n, t0, key(0, fmt.Sprint("team:", i)), 1, false)
	}
	round := func(nowNs int64) { store.Round(s, nowNs, func(c store.Change) { disk = append(disk, cloned(c)) }) }
	round(t0)
	const over = t0 + 11*sec
	s.SetMaxBytes(64<<10, store.VolatileTTL)
	sweepOnce(s, over)
	evicted := statsOf(s).Evicted
	round(over)
	if spent := s.Spent("").Sorted(); evicted == 0 || len(spent) != 1 || spent[0].Units != 5*int64(keys-evicted) {
		t.Fatalf("%d are evicted, spent %v", evicted, spent)
	}
	again := newStore(1)
	again.Restore(over, 0, 1, disk)
	for i := range keys {
		check(t, again, n, over, key(0, fmt.Sprint("team:", i)), 1)
	}
	if spent := again.Spent("").Sorted(); len(spent) != 1 || spent[0].Units != 0 {
		t.Errorf("after a start: spent %v", spent)
	}
}
