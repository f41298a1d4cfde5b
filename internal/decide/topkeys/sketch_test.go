package topkeys

import (
	"fmt"
	"testing"

	"cellserver/internal/limiter"
)

// TestSketchBounds: no count is too low or exceeds its Overcount or the paper's bound, and keys without a
// counter are rarer than those with one.
func TestSketchBounds(t *testing.T) {
	const distinct, capacity = 300, 50
	exact, s := map[string]float64{}, NewSketch(capacity, 0)
	sum := 0.0
	for i := range distinct { // key i comes distinct/(i+1) times, in a mixed order
		for round := range distinct {
			if key := fmt.Sprint((i*7 + round*11) % distinct); round%((i*7+round*11)%distinct+1) == 0 {
				exact[key]++
				s.Add([]byte(key), 1, limiter.Terms{})
				sum++
			}
		}
	}
	top := s.Top(capacity + 1)
	if len(top) != capacity {
		t.Fatalf("got %d keys, want %d", len(top), capacity)
	}
	for i, c := range top {
		if i > 0 && c.Count > top[i-1].Count {
			t.Errorf("key %d: count above the previous one", i)
		}
		if n := exact[c.Key]; c.Count < n || c.Count-c.Overcount > n {
			t.Errorf("key %s: got %v with overcount %v, want %v", c.Key, c.Count, c.Overcount, n)
		}
		if c.Overcount > sum/capacity {
			t.Errorf("key %s: overcount %v, want at most %v", c.Key, c.Overcount, sum/capacity)
		}
		delete(exact, c.Key)
	}
	for key, n := range exact {
		if n > top[capacity-1].Count {
			t.Errorf("key %s was added %v times and has no counter", key, n)
		}
	}
}

func TestSketchSteps(t *testing.T) {
	s := NewSketch(2, 1)
	for i, tt := range []struct {
		add   string
		n     float64
		scale float64
		want  []Hitter
	}{
		{want: []Hitter{}},
		{add: "a", n: 1, want: []Hitter{{Key: "a", Count: 1}}},
		{add: "b", n: 1, want: []Hitter{{Key: "a", Count: 1}, {Key: "b", Count: 1}}},
		{add: "b", n: 3, want: []Hitter{{Key: "b", Count: 4}, {Key: "a", Count: 1}}},
		{add: "c", n: 1, want: []Hitter{{Key: "b", Count: 4}, {Key: "c", Count: 2, Overcount: 1}}},
		{scale: 0.5, want: []Hitter{{Key: "b", Count: 2}, {Key: "c", Count: 1, Overcount: 0.5}}},
		{add: "c", n: 2, want: []Hitter{{Key: "c", Count: 3, Overcount: 0.5}, {Key: "b", Count: 2}}},
		{add: "", n: 1, want: []Hitter{{Key: "", Count: 3, Overcount: 2}, {Key: "c", Count: 3, Overcount: 0.5}}},
	} {
		if tt.n > 0 {
			s.Add([]byte(tt.add), tt.n, limiter.Terms{})
		}
		if tt.scale > 0 {
			s.Scale(tt.scale)
		}
		if got := s.Top(9); fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("step %d: got %v, want %v", i, got, tt.want)
		}
	}
}

// FuzzSketch: the heap and the index agree after any input.
func FuzzSketch(f *testing.F) {
	f.Add([]byte("abcabcabdefghia"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		s := NewSketch(4, 0)
		for i, c := range stream {
			if c == 0 {
				s.Scale(0.5)
				continue
			}
			s.Add(stream[i:i+1], float64(c), limiter.Terms{})
			if len(s.byHash) != len(s.heap) || len(s.heap) > 4 {
				t.Fatalf("%d keys for %d counters", len(s.byHash), len(s.heap))
			}
			for at, c := range s.heap {
				if c.index != at || s.byHash[c.hash] != c || at > 0 && s.heap[(at-1)/2].count > c.count {
					t.Fatalf("counter %d is not in its place", at)
				}
			}
		}
	})
}
