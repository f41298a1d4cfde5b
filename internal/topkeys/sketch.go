// Package topkeys finds the keys that are asked most, and those that are denied most, in bounded memory. A Sketch and
// a Sampler belong to one goroutine at a time; a Tracker is safe for concurrent use.
package topkeys

import (
	"cmp"
	"slices"
)

// Sketch counts the most frequent keys of a stream with a fixed number of counters. It is exact while there are no
// more keys than counters. Beyond, a new key takes over the counter of the key counted least, with its count, so
// that a count may be too high but never too low. It is too high by at most the sum of all that was added, divided by
// the number of counters, and each key with more than that of the sum has a counter.
//
// Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k Elements in Data Streams, ICDT 2005.
type Sketch struct {
	capacity int
	byKey    map[string]*counter
	least    []*counter // a heap by count, the lowest first
}

// Hitter is what a Sketch knows of a key.
type Hitter struct {
	Key     string
	Count   float64
	TooHigh float64 // by how much Count may be
}

type counter struct {
	Hitter
	index int // in the heap
}

// NewSketch returns a Sketch with so many counters.
func NewSketch(capacity int) *Sketch {
	return &Sketch{capacity: capacity, byKey: make(map[string]*counter)}
}

// Add counts a key n times, which must be more than 0. It does not keep the key.
func (s *Sketch) Add(key []byte, n float64) {
	c := s.byKey[string(key)]
	switch {
	case c != nil:
	case len(s.least) < s.capacity:
		c = &counter{Hitter: Hitter{Key: string(key)}, index: len(s.least)}
		s.byKey[c.Key] = c
		s.least = append(s.least, c)
		s.up(c)
	default:
		c = s.least[0]
		delete(s.byKey, c.Key)
		c.Key, c.TooHigh = string(key), c.Count
		s.byKey[c.Key] = c
	}
	c.Count += n
	s.down(c)
}

// Scale multiplies all counts. Their order stays.
func (s *Sketch) Scale(by float64) {
	for _, c := range s.least {
		c.Count *= by
		c.TooHigh *= by
	}
}

// Top returns up to n keys, the highest count first, and those that are equal by key.
func (s *Sketch) Top(n int) []Hitter {
	all := make([]Hitter, len(s.least))
	for i, c := range s.least {
		all[i] = c.Hitter
	}
	slices.SortFunc(all, func(a, b Hitter) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
	return all[:min(n, len(all))]
}

// up and down put a counter into its place in the heap; container/heap takes twice as long, by its interface.
func (s *Sketch) up(c *counter) {
	for c.index > 0 {
		parent := s.least[(c.index-1)/2]
		if parent.Count <= c.Count {
			return
		}
		s.swap(c, parent)
	}
}

func (s *Sketch) down(c *counter) {
	for {
		child := 2*c.index + 1
		if child >= len(s.least) {
			return
		}
		if right := child + 1; right < len(s.least) && s.least[right].Count < s.least[child].Count {
			child = right
		}
		if c.Count <= s.least[child].Count {
			return
		}
		s.swap(c, s.least[child])
	}
}

func (s *Sketch) swap(a, b *counter) {
	a.index, b.index = b.index, a.index
	s.least[a.index], s.least[b.index] = a, b
}
