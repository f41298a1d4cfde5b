package replay

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
)

// spaceSaving counts the most frequent keys of a stream with a fixed number of counters. It is exact while there
// are no more keys than counters. Beyond, a new key takes over the counter of the key counted least, with its
// count, so that a count may be too high but never too low.
//
// Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k Elements in Data Streams, ICDT 2005.
type spaceSaving struct {
	capacity int
	byKey    map[string]*counter
	least    counterHeap
}

type counter struct {
	key     string
	count   int64
	tooHigh int64 // by how much count may be
	index   int   // in the heap
}

func newSpaceSaving(capacity int) *spaceSaving {
	return &spaceSaving{capacity: capacity, byKey: make(map[string]*counter)}
}

func (s *spaceSaving) add(key string) {
	c := s.byKey[key]
	switch {
	case c != nil:
	case len(s.least) < s.capacity:
		c = &counter{key: strings.Clone(key)} // the key may be a part of a much longer text
		s.byKey[c.key] = c
		heap.Push(&s.least, c)
	default:
		c = s.least[0]
		delete(s.byKey, c.key)
		c.key, c.tooHigh = strings.Clone(key), c.count
		s.byKey[c.key] = c
	}
	c.count++
	heap.Fix(&s.least, c.index)
}

// top returns up to n counters, the highest first, and those of one count by key.
func (s *spaceSaving) top(n int) []*counter {
	all := slices.SortedFunc(slices.Values(s.least), func(a, b *counter) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.key, b.key))
	})
	return all[:min(n, len(all))]
}

// counterHeap is a container/heap by count, the lowest first.
type counterHeap []*counter

func (h counterHeap) Len() int           { return len(h) }
func (h counterHeap) Less(i, j int) bool { return h[i].count < h[j].count }

func (h counterHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *counterHeap) Push(c any) {
	c.(*counter).index = len(*h)
	*h = append(*h, c.(*counter))
}

// Pop is here for heap.Interface: a counter is taken over, but never taken out.
func (h *counterHeap) Pop() any { panic("replay: a counter is never taken out") }
