package shard

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// between is a context that calls a function between a walk's steps.
type between struct {
	context.Context
	call func()
}

func (b between) Err() error {
	b.call()
	return nil
}

// movers are short keys, half of them plain funnels in the inline table, half with payloads in the other.
// move turns each present key into the other.
type movers struct {
	t     *testing.T
	s     *Store
	names []string
	turn  int
}

// movingKeys take a walk of many steps.
const movingKeys = 24_000

func newMovers(t *testing.T) *movers {
	m := &movers{t: t, s: newStore(1)}
	for i := range movingKeys {
		m.names = append(m.names, fmt.Sprint("m", i))
		m.set(i, store.Always)
	}
	for i := range m.s.shards {
		if sh := &m.s.shards[i]; sh.inline.made < 2*walkSegments || sh.long.made < 2*walkSegments {
			t.Fatalf("%d and %d segments are a walk of too few steps", sh.inline.made, sh.long.made)
		}
	}
	return m
}

func (m *movers) state(i int) limiter.State {
	s := limiter.State{ExpiresNs: t0 + int64(60+m.turn)*sec}
	if (i+m.turn)%2 == 0 {
		s.Kind, s.Payload = limiter.Bucket, []byte{byte(i), byte(m.turn)}
	}
	return s
}

func (m *movers) set(i int, when store.Condition) {
	if _, _, err := store.SetIf(m.s, t0, key(0, m.names[i]), m.state(i), when); err != nil {
		m.t.Fatal(err)
	}
}

func (m *movers) move() {
	m.turn++
	for i := range m.names {
		m.set(i, store.IfFound)
	}
}

// TestWalksMeetWhatMoves: a walk neither misses nor repeats keys that change tables.
func TestWalksMeetWhatMoves(t *testing.T) {
	if racetest.OmitsLong() {
		t.Skip("takes seconds, and has one goroutine")
	}
	t.Run("Count", func(t *testing.T) {
		m, counts := newMovers(t), make([]store.KeyCount, 1)
		if m.s.Count(between{t.Context(), m.move}, t0, counts); counts[0].Keys != movingKeys {
			t.Errorf("counted %d keys, want %d", counts[0].Keys, movingKeys)
		}
	})
	t.Run("Flush", func(t *testing.T) {
		m := newMovers(t)
		m.s.Flush(between{t.Context(), m.move}, 0)
		if n := length(m.s, t0, 0); n != 0 {
			t.Errorf("%d of %d keys are left", n, movingKeys)
		}
	})
	t.Run("Scan", func(t *testing.T) {
		m := newMovers(t)
		met := walk(t, m.s, t0, 0, 1000, m.move)
		for _, name := range m.names {
			if met[name] != 1 {
				t.Fatalf("%s was met %d times", name, met[name])
			}
		}
	})
	t.Run("States", func(t *testing.T) {
		m, reported := newMovers(t), states{}
		m.s.Track(func() {})
		visit := func(c store.Change) {
			c.State.Payload = bytes.Clone(c.State.Payload)
			reported.set(t0, c.Key, c.State)
		}
		store.Round(m.s, t0, func(store.Change) {})
		m.s.States(t.Context(), t0, visit, func() {
			if m.turn++; m.turn%7 == 0 {
				m.move()
			}
		})
		if len(reported) == movingKeys {
			t.Error("the walk has missed none of what moved: is what follows of use?")
		}
		store.Round(m.s, t0, visit)
		for i, name := range m.names {
			want, ok, _ := m.s.State(t0, key(0, name))
			if got := reported[id{0, name}]; !ok || !same(got, want) {
				t.Fatalf("%s (%d) was told to be %+v, want %+v", name, i, got, want)
			}
		}
	})
}
