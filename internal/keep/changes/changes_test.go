package changes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

const (
	nowNs = int64(1_700_000_000_000_000_000)
	ample = 1 << 30
)

func now() int64 { return nowNs }

// follower is a plain map that replays the pieces of a feed.
type follower struct {
	t     *testing.T
	feed  *Feed
	has   map[string]int64
	ended bool // a round, by its last piece
}

func follow(t *testing.T, g *Gatherer, mostBytes int) *follower {
	return &follower{t, g.NewFeed(func() {}, mostBytes), map[string]int64{}, true}
}

// replay replays a piece.
func (f *follower) replay(p Piece) error {
	count := 0
	err := Read(p.Records, func(c store.Change) {
		count++
		switch {
		case c.Flushed:
			clear(f.has)
		case c.State.ExpiresNs <= nowNs:
			delete(f.has, string(c.Key.Name))
		default:
			f.has[string(c.Key.Name)] = c.State.ExpiresNs
		}
	})
	if count != p.Count || err != nil {
		f.t.Errorf("a piece has %d records, and says %d: %v", count, p.Count, err)
	}
	f.ended = p.End
	return nil
}

// round replays a round, at the end of which it must be, unless changes were lost, also the round's end.
func (f *follower) round() (complete bool) {
	f.t.Helper()
	complete, err := f.feed.Round(f.replay)
	if !complete {
		f.ended = true
	}
	if err != nil || !f.ended {
		f.t.Errorf("a round is over: %t, %v", f.ended, err)
	}
	return complete
}

// check replays a round and compares with the store.
func (f *follower) check(s *shard.Store) {
	f.t.Helper()
	if !f.round() {
		f.t.Error("changes were lost")
	}
	if want := states(s); !maps.Equal(f.has, want) {
		f.t.Errorf("it has %d keys, want %d", len(f.has), len(want))
	}
}

func states(s *shard.Store) map[string]int64 {
	all := map[string]int64{}
	s.States(context.Background(), nowNs, func(c store.Change) { all[string(c.Key.Name)] = c.State.ExpiresNs }, nil)
	return all
}

func charge(s store.Keys, name string) {
	l, _ := funnel.NewLimit(funnel.Capacity, 1000, 1, 3600)
	s.Throttle(nowNs, []store.Request{{Key: store.Key{Name: []byte(name)}, Rule: limiter.OfFunnel(l), Quantity: 1}})
}

func remove(s store.Keys, name string) { _, _ = s.Delete(nowNs, []store.Key{{Name: []byte(name)}}) }

func long(i int) string { return fmt.Sprintf("%0200d", i) }

// TestTwoFeeds see the same, at whatever times they look.
func TestTwoFeeds(t *testing.T) {
	s := shard.New()
	g := New(s, now)
	first, second := follow(t, g, ample), follow(t, g, ample)
	for i := range 5000 {
		charge(s, long(i%3000))
		if i%7 == 0 {
			remove(s, long(i%2000))
		}
		if i%500 == 0 {
			first.check(s)
		}
		if i%1700 == 0 {
			second.check(s)
		}
	}
	s.FlushAll()
	charge(s, "after")
	first.check(s)
	second.check(s)
	first.feed.Close()
	charge(s, "later")
	second.check(s)
	third := follow(t, g, ample)
	charge(s, "latest")
	third.round()
	if len(third.has) != 1 || third.has["latest"] == 0 {
		t.Errorf("a later feed has %v", third.has)
	}
}

// TestSlowFeedLosesAll and says so once; the other one loses nothing.
func TestSlowFeedLosesAll(t *testing.T) {
	s := shard.New()
	g := New(s, now)
	fast, slow := follow(t, g, ample), follow(t, g, 100_000)
	for round := range 10 {
		for i := range 300 {
			charge(s, long(1000*round+i))
		}
		fast.check(s)
	}
	if slow.feed.bytes > 100_000 {
		t.Errorf("%d bytes wait for it", slow.feed.bytes)
	}
	if slow.round() {
		t.Error("it says that it has all")
	}
	charge(s, "later")
	if slow.has = states(s); !slow.round() {
		t.Error("it says again that changes were lost")
	}
	slow.check(s)
	fast.check(s)
}

// TestRoundOfAnother: a round that one feed begins is finished by the other, and is whole for both.
func TestRoundOfAnother(t *testing.T) {
	s := shard.New()
	g := New(s, now)
	first, second := follow(t, g, ample), follow(t, g, ample)
	stop := errors.New("no more")
	for round := range 20 {
		for i := range 2000 {
			charge(s, long(i))
		}
		remove(s, long(round))
		pieces := 0
		_, err := first.feed.Round(func(p Piece) error { // leaves the round in the middle
			if pieces++; pieces > 1+round%3 {
				first.ended = p.End
				return stop
			}
			return first.replay(p)
		})
		if err != nil && !errors.Is(err, stop) {
			t.Fatal(err)
		}
		if err == nil {
			t.Fatal("the round has one piece")
		}
		second.check(s)
		first.has = maps.Clone(second.has) // the piece that it refused is lost
		first.check(s)
	}
}

// TestRoundsAreWhole: whatever two feeds do at once, a round that is over ends with a piece that says so.
func TestRoundsAreWhole(t *testing.T) {
	s := shard.New()
	g := New(s, now)
	all := []*follower{follow(t, g, ample), follow(t, g, ample), follow(t, g, 300_000)}
	var wg, readers sync.WaitGroup
	done := make(chan struct{})
	for w := range 2 {
		wg.Go(func() {
			for i := range 15_000 {
				charge(s, long(i%4000+4000*w))
				if i%5 == 0 {
					remove(s, long((i*7)%4000+4000*w))
				}
			}
		})
	}
	lost := make([]bool, len(all))
	for i, f := range all {
		readers.Go(func() {
			for {
				lost[i] = !f.round() || lost[i]
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	wg.Wait()
	close(done)
	readers.Wait()
	for i, f := range all[:2] {
		if lost[i] {
			t.Errorf("feed %d has lost changes", i)
		}
		f.check(s)
	}
	slow := all[2] // which may have lost some, also since its last round
	if !slow.round() || lost[2] {
		slow.has = states(s)
	}
	slow.check(s)
}

// TestHungFollower: one that hangs in a piece holds up neither the other nor the store.
func TestHungFollower(t *testing.T) {
	s := shard.New()
	g := New(s, now)
	first, second := follow(t, g, ample), follow(t, g, ample)
	charge(s, "a")
	hangs, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	go func() {
		defer close(ended)
		_, _ = first.feed.Round(func(p Piece) error {
			once.Do(func() { close(hangs) })
			<-goOn
			return first.replay(p)
		})
	}()
	<-hangs
	for i := range 100 {
		charge(s, long(i))
		second.check(s)
	}
	close(goOn)
	<-ended
	first.check(s)
}

// TestTooManyGone: what the store has not noted is lost for all feeds.
func TestTooManyGone(t *testing.T) {
	s := shard.New()
	g := New(s, now)
	hurried := 0
	first, second := follow(t, g, ample), &follower{t, g.NewFeed(func() { hurried++ }, ample), map[string]int64{}, true}
	const n = 20_000
	for i := range n {
		charge(s, strings.Repeat("x", 2000)+long(i))
	}
	first.round()
	second.round()
	for i := range n {
		remove(s, strings.Repeat("x", 2000)+long(i))
	}
	if hurried == 0 {
		t.Error("nobody hurries")
	}
	if first.round() || second.round() {
		t.Error("all is said to be there")
	}
	first.has, second.has = states(s), states(s)
	charge(s, "later")
	first.check(s)
	second.check(s)
}

// TestReset drops what waits, also in the middle of a round, and nothing later.
func TestReset(t *testing.T) {
	s := shard.New()
	g := New(s, now)
	first, second := follow(t, g, ample), follow(t, g, ample)
	for i := range 3000 {
		charge(s, long(i))
	}
	_, _ = first.feed.Round(func(Piece) error { return errors.New("in the middle") })
	second.feed.Reset()
	charge(s, "later")
	if second.round(); len(second.has) != 1 {
		t.Errorf("after a reset there are %d keys", len(second.has))
	}
	first.feed.Reset()
	if _, err := first.feed.Round(func(p Piece) error { return fmt.Errorf("there are %d changes", p.Count) }); err != nil {
		t.Error(err)
	}
}
