package topkeys

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/test/randtest"
)

// TestSpenders: keys are told apart by database and whole name, with their units, the most first.
func TestSpenders(t *testing.T) {
	var s Spenders
	if all, sinceNs := s.Top(); all != nil || sinceNs != 0 {
		t.Errorf("before the first units: %v since %d", all, sinceNs)
	}
	long := strings.Repeat("x", MaxNameBytes)
	s.Add(t0, 0, []byte("a"), 0)
	s.Add(t0, 0, []byte("a"), -5)
	s.Add(t0+1, 0, []byte("a"), 5)
	s.Add(t0+2, 1, []byte("a"), 7)
	s.Add(t0+3, 0, []byte("b"), 1<<50)
	s.Add(t0+4, 0, []byte("b"), 1)
	s.Add(t0+5, 0, []byte(long+"a"), 3)
	s.Add(t0+6, 0, []byte(long+"b"), 2)
	all, sinceNs := s.Top()
	if sinceNs != t0+1 || len(all) != 5 {
		t.Fatalf("got %+v since %d", all, sinceNs)
	}
	for i, want := range []Spender{{0, "b", false, 1<<50 + 1, 0}, {1, "a", false, 7, 0}, {0, "a", false, 5, 0}} {
		if all[i] != want {
			t.Errorf("%d: got %+v, want %+v", i, all[i], want)
		}
	}
	if !all[3].Cut || all[3].Units != 3 || !all[4].Cut || all[3].Name == all[4].Name || len(all[3].Name) != MaxNameBytes {
		t.Errorf("long names: %+v", all[3:])
	}
}

// TestSpendersBounds: in bounded memory no key with more than 1/MaxSpenders of all units is missed if it is
// certain, and no count is too low, or too high by more than its error.
func TestSpendersBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(randtest.Seed(t, 1), 0))
	var s Spenders
	exact, sum := map[string]int64{}, int64(0)
	for range 20_000 {
		name := fmt.Sprint("few:", r.IntN(8))
		units := 1 + r.Int64N(1000)
		if r.IntN(2) == 0 {
			name, units = fmt.Sprint("many:", r.IntN(5000)), 1+r.Int64N(10)
		}
		s.Add(t0, 0, []byte(name), units)
		exact[name] += units
		sum += units
	}
	all, _ := s.Top()
	if len(all) < 8 || len(all) > MaxSpenders {
		t.Fatalf("%d keys", len(all))
	}
	for i, of := range all {
		if is := exact[of.Name]; of.Units < is || of.Units-of.Error > is || of.Error > sum/MaxSpenders {
			t.Errorf("%s has spent %d: got %+v", of.Name, is, of)
		}
		if few := strings.HasPrefix(of.Name, "few:"); few != (i < 8) {
			t.Errorf("at %d: %+v", i, of)
		}
	}
}

// TestEqualSpenders: with many equal ones chance would choose, so there are none.
func TestEqualSpenders(t *testing.T) {
	var s Spenders
	var all sync.WaitGroup
	for part := range 4 {
		all.Go(func() {
			for i := range 1000 {
				s.Add(t0, 0, fmt.Appendf(nil, "k%d:%d", part, i), 1)
			}
		})
	}
	all.Wait()
	if top, _ := s.Top(); len(top) != 0 {
		t.Errorf("got %+v", top)
	}
}
