// Package topkeys finds the most requested and the most limited keys in bounded memory. A Sketch and
// a Sampler belong to one goroutine at a time; a Tracker is safe for concurrent use.
package topkeys

import (
	"cmp"
	"hash/maphash"
	"slices"

	"cellserver/internal/limiter"
)

// Sketch counts the most frequent keys with a fixed number of counters, exactly up to that many keys. Beyond,
// a new key takes over the lowest counter with its count, so counts may be too high, by at most
// total/counters, and never too low; every key with a true count above total/counters has a counter.
//
// Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k Elements in Data Streams, ICDT
// 2005.
type Sketch struct {
	capacity int
	seed     maphash.Seed // secret, against constructed collisions
	byHash   map[uint64]*counter
	heap     []*counter // min-heap by count
	spare    []counter  // unused ones
	slot     int        // of the current epoch in each counter's recent counts
}

// Hitter is a key's entry in a Sketch.
type Hitter struct {
	Key       string
	Count     float64
	Overcount float64 // upper bound of Count's excess
	Terms     limiter.Terms

	Recent    float64 // count of the last recentEpochs complete ones
	IsCounted bool    // the counter covers all of them
}

type counter struct {
	hash             uint64
	key              []byte
	count, overcount float64
	index            int           // in the heap
	terms            limiter.Terms // of its last request
	recent           [recentEpochs + 1]float32
	epochs           int // begun with this key, up to recentEpochs+1
}

// NewSketch returns a Sketch with capacity counters. Keys of up to keyBytes allocate nothing later.
func NewSketch(capacity, keyBytes int) *Sketch {
	s := &Sketch{
		capacity: capacity,
		seed:     maphash.MakeSeed(),
		byHash:   make(map[uint64]*counter, capacity),
		heap:     make([]*counter, 0, capacity),
		spare:    make([]counter, capacity),
	}
	names := make([]byte, capacity*keyBytes)
	for i := range s.spare {
		s.spare[i].key = names[i*keyBytes : i*keyBytes : (i+1)*keyBytes]
	}
	return s
}

// Add counts a key n times, for positive n. It keeps the last request's terms, and not the key.
func (s *Sketch) Add(key []byte, n float64, terms limiter.Terms) {
	hash := maphash.Bytes(s.seed, key)
	c := s.byHash[hash]
	if c == nil {
		c = s.takeOver()
		c.hash, c.key = hash, append(c.key[:0], key...)
		s.byHash[hash] = c
	}
	c.count += n
	c.recent[s.slot] += float32(n)
	c.terms = terms
	s.down(c)
}

// takeOver returns the counter for a new key: an unused one, or the lowest.
func (s *Sketch) takeOver() *counter {
	if n := len(s.heap); n < s.capacity {
		c := &s.spare[n]
		c.index = n
		s.heap = append(s.heap, c)
		for c.index > 0 { // to the front: it has counted nothing
			s.swap(c, s.heap[(c.index-1)/2])
		}
		return c
	}
	c := s.heap[0]
	delete(s.byHash, c.hash)
	c.overcount = c.count
	clear(c.recent[:])
	c.epochs = 0
	return c
}

// Scale multiplies all counts, which keep their order.
func (s *Sketch) Scale(by float64) {
	for _, c := range s.heap {
		c.count *= by
		c.overcount *= by
	}
}

// recentEpochs is the number of complete epochs kept by a counter.
const recentEpochs = 10

// advance begins a new epoch.
func (s *Sketch) advance(epochs int64) {
	begun := min(epochs, recentEpochs+1)
	for range begun {
		s.slot = (s.slot + 1) % (recentEpochs + 1)
		for _, c := range s.heap {
			c.recent[s.slot] = 0
		}
	}
	for _, c := range s.heap {
		c.epochs = min(c.epochs+int(begun), recentEpochs+1)
	}
}

// recently returns the sum of the complete epochs.
func (s *Sketch) recently(c *counter) (sum float64) {
	for slot, n := range c.recent {
		if slot != s.slot {
			sum += float64(n)
		}
	}
	return sum
}

// Top returns up to n keys by descending count, then by key.
func (s *Sketch) Top(n int) []Hitter {
	all := make([]Hitter, len(s.heap))
	for i, c := range s.heap {
		all[i] = Hitter{string(c.key), c.count, c.overcount, c.terms, s.recently(c), c.epochs > recentEpochs}
	}
	slices.SortFunc(all, func(a, b Hitter) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
	return all[:min(n, len(all))]
}

// down restores the heap below an increased counter; container/heap takes twice as long for its interface
// calls.
func (s *Sketch) down(c *counter) {
	for {
		child := 2*c.index + 1
		if child >= len(s.heap) {
			return
		}
		if right := child + 1; right < len(s.heap) && s.heap[right].count < s.heap[child].count {
			child = right
		}
		if c.count <= s.heap[child].count {
			return
		}
		s.swap(c, s.heap[child])
	}
}

func (s *Sketch) swap(a, b *counter) {
	a.index, b.index = b.index, a.index
	s.heap[a.index], s.heap[b.index] = a, b
}
