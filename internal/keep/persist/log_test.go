package persist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"cellserver/internal/keep/changes"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/store"
)

// states are copied for each change in the log's order.
type states map[string]int64

func (s states) do(nowNs int64, c store.Change) {
	switch {
	case c.Flushed:
		clear(s)
	case c.State.ExpiresNs <= nowNs:
		delete(s, string(c.Key.Name))
	case !isAsChanged(c):
		s[string(c.Key.Name)] = -1 // which no key of the tests is
	default:
		s[string(c.Key.Name)] = c.State.ExpiresNs
	}
}

func (s states) each(visit func(c store.Change)) {
	for name, tatNs := range s {
		visit(change([]byte(name), tatNs))
	}
}

func loadStates(dir disk.Dir) (s states, l loaded, err error) {
	s = states{}
	l, err = load(dir, func(c store.Change) { s.do(0, c) })
	return s, l, err
}

// user changes a log, and knows all states and the synced one.
type user struct {
	rng    *rand.Rand
	now    states
	were   []states // one after each change
	synced int      // of were: the last that is confirmed
	log    *log
}

func (u *user) step(dir disk.Dir) (err error) {
	switch n := u.rng.IntN(20); {
	case n == 0:
		if err := u.sync(); err != nil {
			return err
		}
		return u.log.rotate()
	case n == 1: // as compaction does it
		if err := u.sync(); err != nil {
			return err
		}
		if err := u.log.rotate(); err != nil {
			return err
		}
		number := u.log.number()
		each := func(_ context.Context, visit func(c store.Change)) { u.now.each(visit) }
		bytes, err := writeSnapshot(context.Background(), dir, number, 0, nil, each)
		if err == nil {
			err = u.log.replaceBy(number, bytes)
		}
		if err != nil {
			return err
		}
		return u.log.tidy(nil)
	case n < 8:
		return u.sync()
	}
	_, err = u.log.add(0, nil, encoded(0, func(visit func(c store.Change)) {
		for range 1 + u.rng.IntN(5) {
			c := change(fmt.Appendf(nil, "%0*d", 1+u.rng.IntN(3), u.rng.IntN(9)), u.rng.Int64N(3)*limitertest.LifeNs)
			c.Flushed = u.rng.IntN(30) == 0
			u.now.do(0, c)
			u.were = append(u.were, maps.Clone(u.now))
			visit(c)
		}
	}))
	return err
}

// encoded returns each change as a piece of records of a time.
func encoded(nowNs int64, each func(visit func(c store.Change))) func(visit func(p changes.Piece) error) error {
	return func(visit func(p changes.Piece) error) (err error) {
		each(func(c store.Change) {
			err = cmp.Or(err, visit(changes.Piece{Records: changes.Append(nil, nowNs, &c), Count: 1}))
		})
		return err
	}
}

func (u *user) sync() error {
	err := u.log.w.file.Sync()
	if err == nil {
		u.synced = len(u.were) - 1
	}
	return err
}

// TestCrashes: after any crash or final error, the loaded state is one not before the last sync.
func TestCrashes(t *testing.T) {
	seed := rand.New(rand.NewPCG(1, 2))
	for round := range 150 {
		rng := rand.New(rand.NewPCG(3, uint64(round)))
		dir := disktest.New()
		u := &user{rng: rng, now: states{}, were: []states{{}}}
		for life := range 4 {
			s, l, err := loadStates(dir)
			if err != nil {
				t.Fatalf("round %d, life %d: %v", round, life, err)
			}
			at := -1
			for i := u.synced; i < len(u.were) && at < 0; i++ {
				if maps.Equal(u.were[i], s) {
					at = i
				}
			}
			if at < 0 {
				t.Fatalf("round %d, life %d: loaded %v, was %v when synced", round, life, s, u.were[u.synced])
			}
			u.now, u.were, u.synced = s, []states{maps.Clone(s)}, 0
			ends, failure := 1+seed.IntN(60), errors.New("the end")
			var left *disktest.Dir
			dir.Before = func(disktest.Op, string) error {
				if ends--; ends > 0 {
					return nil
				}
				if left == nil {
					left = dir.Crash(rng)
				}
				return failure
			}
			if u.log, err = begin(dir, l); err == nil {
				for left == nil && err == nil {
					err = u.step(dir)
				}
			}
			if left == nil || !errors.Is(err, failure) {
				t.Fatalf("round %d: %v", round, err)
			}
			dir.Before = nil
			if seed.IntN(2) == 0 {
				left = dir.Crash(rng) // after the error instead of before the operation
			}
			dir = left
		}
	}
}

// load visits a directory's changes in order. An empty directory has none.
func load(dir disk.Dir, visit func(c store.Change)) (loaded, error) {
	l := loader{dir: dir, visit: func(payload []byte) error { return changes.Read(payload, visit) }}
	err := l.load()
	return l.loaded, err
}
