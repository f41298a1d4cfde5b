package shard

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// run is one run of a store and its model.
type run struct {
	*testing.T
	rng     *rand.Rand
	s       *Store
	m       model
	now     int64
	names   []string
	limits  []funnel.Limit
	sweeper *Sweeper
	watches []watchModel
	scan    scanModel
}

// TestAgainstPlainMap runs random operations on keys of every length.
func TestAgainstPlainMap(t *testing.T) {
	racetest.SkipAlone(t)
	for name, nameBytes := range map[string]func(i int) int{
		"short":          func(i int) int { return 5 + i%12 },
		"long":           func(i int) int { return 17 + i%100 },
		"up to a chunk":  func(i int) int { return 900 + i%200 },
		"up to an arena": func(i int) int { return arenaKeyBytes - 5 + i%10 },
		"mixed":          func(i int) int { return 5 + i%13 + []int{0, 0, 0, 7, 20, 50, 1000, 5000}[i/13%8] },
	} {
		t.Run(name, func(t *testing.T) { againstPlainMap(t, nameBytes) })
	}
}

func againstPlainMap(t *testing.T, nameBytes func(i int) int) {
	const operations = 40_000
	s := New()
	r := &run{
		T: t, rng: rand.New(rand.NewPCG(1, 2)), s: s, m: model{}, now: t0, names: make([]string, 2000), sweeper: NewSweeper(s),
		limits: []funnel.Limit{limit(t, 0, 1, 1), limit(t, 15, 30, 60), limit(t, 3, 1000, 1), limit(t, 99, 1, 600)},
	}
	for i := range r.names {
		r.names[i] = fmt.Sprintf("%0*d", nameBytes(i), i)
	}
	steps := []struct {
		weight int
		do     func(*run)
	}{
		{5500, func(r *run) { r.throttle(s, r.pick()) }}, {500, (*run).delete}, {1000, (*run).tat}, {1000, (*run).tx},
		{300, (*run).releasedTx}, {100, (*run).exclusive}, {300, (*run).watch}, {300, (*run).scanOn}, {100, (*run).memory},
		{880, func(r *run) { r.sweeper.Step(r.now) }}, {10, func(r *run) { r.flush(s) }},
		{10, func(r *run) { r.count(s) }},
	}
	sum := 0
	for _, step := range steps {
		sum += step.weight
	}
	for range operations {
		r.now += r.rng.Int64N(sec / 200)
		n := r.rng.IntN(sum)
		for _, step := range steps {
			if n -= step.weight; n < 0 {
				step.do(r)
				break
			}
		}
	}
	checkBudget(t, s)
	for _, w := range r.watches {
		w.w.Close()
	}
	if entries, shards := watchedKeys(s); entries != 0 || shards != 0 {
		t.Errorf("%d keys are watched in %d shards after all were closed", entries, shards)
	}
}

func (r *run) pick() store.Key { return key(uint16(r.rng.IntN(3)), r.names[r.rng.IntN(len(r.names))]) }

func (r *run) limit() funnel.Limit { return r.limits[r.rng.IntN(len(r.limits))] }

// wholeStore is all keys, of a Store or of an exclusive.
type wholeStore interface {
	store.Keys
	store.Walker
}

func (r *run) throttle(ks store.Keys, k store.Key) {
	r.Helper()
	l, quantity := r.limit(), r.rng.Int64N(8)-2
	before := r.m.tat(r.now, k)
	got, want := one(ks, r.now, k, l, quantity), r.m.throttle(r.now, k, l, quantity)
	if got != want {
		r.Fatalf("Throttle: got %+v, want %+v", got, want)
	}
	if r.m.tat(r.now, k) != before {
		r.changed(k)
	}
}

// delete removes several keys in one step, with duplicates.
func (r *run) delete() {
	keys := []store.Key{r.pick(), r.pick(), r.pick(), r.pick()}[:1+r.rng.IntN(4)]
	keys = append(keys, keys[:r.rng.IntN(len(keys))]...)
	want := 0
	for _, k := range keys {
		if r.m.tat(r.now, k) > r.now {
			want++
			delete(r.m, idOf(k))
			r.changed(k)
		}
	}
	if got, err := r.s.Delete(r.now, keys); got != want || err != nil {
		r.Fatalf("Delete of %d keys: got %d, %v, want %d", len(keys), got, err, want)
	}
}

func (r *run) deleteOn(ks store.Keys, k store.Key) {
	r.Helper()
	want := r.m.tat(r.now, k) > r.now
	if got := remove(ks, r.now, k); got != want {
		r.Fatalf("Delete: got %v, want %v", got, want)
	}
	if want {
		delete(r.m, idOf(k))
		r.changed(k)
	}
}

func (r *run) tat() { r.tatOn(r.s, r.pick()) }

func (r *run) tatOn(ks store.Keys, k store.Key) {
	r.Helper()
	got, ok := tatOf(ks, r.now, k)
	if want := r.m.tat(r.now, k); got != want || ok != (want > r.now) {
		r.Fatalf("TAT: got %d, %v, want %d", got, ok, want)
	}
}

// onKeys does something with each of some keys.
func (r *run) onKeys(ks store.Keys, keys []store.Key) {
	r.Helper()
	for _, k := range keys {
		switch r.rng.IntN(3) {
		case 0:
			r.deleteOn(ks, k)
		case 1:
			r.tatOn(ks, k)
		default:
			r.throttle(ks, k)
		}
	}
}

// tx reverts the model when a transaction does not commit, watches included.
func (r *run) tx() {
	keys := []store.Key{r.pick(), r.pick(), r.pick(), r.pick()}
	tx := r.s.Begin(r.now, keys)
	defer tx.Rollback()
	commit := r.rng.IntN(2) == 0
	before, watches := r.m.clone(keys), r.watches
	if !commit {
		r.watches = nil
	}
	r.onKeys(tx, keys)
	if commit != (commit && tx.Commit()) {
		r.Fatal("a transaction that was not released did not commit")
	}
	if !commit {
		maps.Copy(r.m, before)
		r.watches = watches
	}
}

// releasedTx lets others change one of the keys, or another.
func (r *run) releasedTx() {
	keys := []store.Key{r.pick(), r.pick(), r.pick()}
	tx := r.s.begin(r.now, keys)
	defer tx.Rollback()
	tx.Release()
	begun := r.m.clone(keys)
	r.throttle(r.s, append(keys, r.pick())[r.rng.IntN(4)])
	now := r.m.clone(keys)
	same := true
	for i := range now {
		same = same && max(now[i], r.now) == max(begun[i], r.now)
	}
	watches := r.watches
	if !same {
		r.watches = nil
	}
	maps.Copy(r.m, begun)
	r.onKeys(tx, keys)
	wrote := tx.written()
	if got, want := tx.Commit(), same || !wrote; got != want {
		r.Fatalf("Commit: got %v, want %v", got, want)
	}
	if !same {
		maps.Copy(r.m, now)
		r.watches = watches
	}
}

func (r *run) exclusive() {
	x := r.s.BeginAll(r.now)
	defer x.End()
	r.onKeys(x, []store.Key{r.pick(), r.pick(), r.pick(), r.pick()})
	switch r.rng.IntN(20) {
	case 0:
		r.flush(x)
	case 1:
		r.count(x)
	case 2:
		r.wholeWalk(x)
	}
}

func (r *run) flush(ks wholeStore) {
	db, all := uint16(r.rng.IntN(3)), r.rng.IntN(5) == 0
	for i, tatNs := range r.m {
		if (all || i.db == db) && tatNs > r.now {
			r.changed(key(i.db, i.name))
		}
	}
	if all {
		ks.FlushAll()
		clear(r.m)
		return
	}
	ks.Flush(context.Background(), db)
	r.m.flush(db)
}

func (r *run) count(ks wholeStore) {
	r.Helper()
	counts := make([]store.KeyCount, 3)
	ks.Count(context.Background(), r.now, counts)
	for db, got := range counts {
		if want := r.m.count(r.now, uint16(db)); got.Keys != want {
			r.Fatalf("Count of %d is %d, want %d", db, got.Keys, want)
		}
	}
}

func (r *run) memory() {
	k := r.pick()
	bytes, ok := r.s.MemoryUsage(r.now, k)
	if live := r.m.tat(r.now, k) > r.now; ok != live || ok && bytes < segmentBytes/(segmentBuckets*longSlots) {
		r.Fatalf("MemoryUsage: %d, %v, want %v", bytes, ok, live)
	}
}

type watchModel struct {
	w       store.Watch
	live    map[id]int64 // TATs of the keys that were live
	absent  map[id]bool
	changed *bool
}

// watch begins, checks or ends a watch.
func (r *run) watch() {
	if len(r.watches) < 20 {
		w := watchModel{live: map[id]int64{}, absent: map[id]bool{}, changed: new(bool)}
		keys := []store.Key{r.pick(), r.pick(), r.pick()}[:1+r.rng.IntN(3)]
		for _, k := range keys {
			if tatNs := r.m.tat(r.now, k); tatNs > r.now {
				w.live[idOf(k)] = tatNs
			} else {
				w.absent[idOf(k)] = true
			}
		}
		w.w = r.s.Watch(r.now, keys)
		r.watches = append(r.watches, w)
		return
	}
	i := r.rng.IntN(len(r.watches))
	w := r.watches[i]
	want := *w.changed
	for _, tatNs := range w.live {
		want = want || tatNs <= r.now
	}
	if got := w.w.Dirty(r.now); got != want {
		r.Fatalf("Dirty: got %v, want %v", got, want)
	}
	if r.rng.IntN(2) == 0 {
		w.w.Close()
		r.watches = append(r.watches[:i:i], r.watches[i+1:]...)
	}
}

func (r *run) changed(k store.Key) {
	for _, w := range r.watches {
		if _, live := w.live[idOf(k)]; live || w.absent[idOf(k)] {
			*w.changed = true
		}
	}
}

// scanModel is a walk interleaved with everything else.
type scanModel struct {
	db     uint16
	cursor uint64
	begun  map[string]int64 // live keys and their TATs at the beginning
	met    map[string]bool
}

func (r *run) scanOn() {
	c := &r.scan
	if c.cursor == 0 {
		*c = scanModel{db: uint16(r.rng.IntN(3)), begun: map[string]int64{}, met: map[string]bool{}}
		for i, tatNs := range r.m {
			if i.db == c.db && tatNs > r.now {
				c.begun[i.name] = tatNs
			}
		}
	}
	c.cursor = r.s.Scan(r.now, c.db, c.cursor, 1+r.rng.IntN(200), func(k store.Key, e store.Entry) {
		tatNs := e.ExpiresNs
		if c.met[string(k.Name)] {
			r.Fatalf("a walk met %q twice", k.Name)
		}
		c.met[string(k.Name)] = true
		if want := r.m.tat(r.now, k); tatNs != want || tatNs <= r.now {
			r.Fatalf("Scan: TAT %d, want %d", tatNs, want)
		}
	})
	if c.cursor != 0 {
		return
	}
	for name, tatNs := range c.begun {
		// An unchanged key was live throughout.
		if !c.met[name] && tatNs > r.now && r.m.tat(r.now, key(c.db, name)) == tatNs {
			r.Fatalf("a walk missed %q", name)
		}
	}
}

func (r *run) wholeWalk(ks wholeStore) {
	for db := range uint16(3) {
		met := walk(r, ks, r.now, db, 100, nil)
		if want := r.m.count(r.now, db); len(met) != want {
			r.Fatalf("a walk met %d keys, want %d", len(met), want)
		}
	}
}

type id struct {
	db   uint16
	name string
}

func idOf(k store.Key) id { return id{k.DB, string(k.Name)} }

// model is the store as a plain map.
type model map[id]int64

func (m model) tat(now int64, k store.Key) int64 { return max(m[idOf(k)], now) }

func (m model) throttle(now int64, k store.Key, l funnel.Limit, quantity int64) funnel.Result {
	tat, r := l.Throttle(m.tat(now, k), now, quantity)
	m[idOf(k)] = tat
	return r
}

func (m model) clone(keys []store.Key) model {
	c := model{}
	for _, k := range keys {
		c[idOf(k)] = m[idOf(k)]
	}
	return c
}

func (m model) flush(db uint16) {
	for i := range m {
		if i.db == db {
			delete(m, i)
		}
	}
}

func (m model) count(now int64, db uint16) (n int) {
	for i, tat := range m {
		if i.db == db && tat > now {
			n++
		}
	}
	return n
}
