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
		if racetest.IsQuick() && name != "mixed" {
			continue
		}
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
		{5500, (*run).throttle}, {500, (*run).delete}, {1000, (*run).tat}, {300, (*run).watch},
		{300, (*run).scanOn}, {880, func(r *run) { r.sweeper.Step(r.now) }}, {10, (*run).flush}, {10, (*run).count},
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

func (r *run) throttle() {
	k, l, quantity := r.pick(), r.limit(), r.rng.Int64N(8)-2
	before := r.m.tat(r.now, k)
	got, want := one(r.s, r.now, k, l, quantity), r.m.throttle(r.now, k, l, quantity)
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

func (r *run) tat() {
	k := r.pick()
	got, ok := tatOf(r.s, r.now, k)
	if want := r.m.tat(r.now, k); got != want || ok != (want > r.now) {
		r.Fatalf("TAT: got %d, %v, want %d", got, ok, want)
	}
}

func (r *run) flush() {
	db, all := uint16(r.rng.IntN(3)), r.rng.IntN(5) == 0
	for i, tatNs := range r.m {
		if (all || i.db == db) && tatNs > r.now {
			r.changed(key(i.db, i.name))
		}
	}
	if all {
		r.s.FlushAll()
		clear(r.m)
		return
	}
	r.s.Flush(context.Background(), db)
	maps.DeleteFunc(r.m, func(i id, _ int64) bool { return i.db == db })
}

func (r *run) count() {
	counts := make([]store.KeyCount, 3)
	r.s.Count(context.Background(), r.now, counts)
	for db, got := range counts {
		if want := r.m.count(r.now, uint16(db)); got.Keys != want {
			r.Fatalf("Count of %d is %d, want %d", db, got.Keys, want)
		}
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

func (m model) count(now int64, db uint16) (n int) {
	for i, tat := range m {
		if i.db == db && tat > now {
			n++
		}
	}
	return n
}
