package shard

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"cellserver/internal/store"
)

func TestExclusiveKeepsOthersOut(t *testing.T) {
	s, l := New(), limit(t, 1<<20, 1, 3600)
	var inside atomic.Bool
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				switch (g + i) % 4 {
				case 0:
					x := s.BeginAll(t0)
					inside.Store(true)
					before, _ := tatOf(x, t0, key(0, "k"))
					one(x, t0, key(0, "k"), l, 1)
					if after, _ := tatOf(x, t0, key(0, "k")); after-before != 3600*sec {
						t.Errorf("others changed the key: %d, then %d", before, after)
					}
					inside.Store(false)
					x.End()
					x.End()
				case 1:
					one(s, t0, key(0, "k"), l, 1)
				default:
					tx := s.Begin(t0, []store.Key{key(0, "k"), key(0, fmt.Sprint(i))})
					if inside.Load() {
						t.Error("a transaction began while the store was another's")
					}
					one(tx, t0, key(0, "k"), l, 1)
					tx.Commit()
				}
			}
		})
	}
	wg.Wait()
	if r := one(s, t0, key(0, "k"), l, 0); r.Limit-r.Remaining != 800 {
		t.Errorf("%d units, want 800", r.Limit-r.Remaining)
	}
}

func TestExclusiveFlushGivesMemoryBack(t *testing.T) {
	s := New()
	fill(t, s, t0, 1000, "k", 60)
	x := s.BeginAll(t0)
	x.Flush(0)
	x.End()
	if segments, directory := segments(s); segments != 0 || directory != 0 {
		t.Errorf("%d segments and %d directory entries are left", segments, directory)
	}
}
