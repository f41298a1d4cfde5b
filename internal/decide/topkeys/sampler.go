package topkeys

import "math/rand/v2"

// Sampler picks requests for a Tracker, one in `every` on average, with unpredictable gaps, so that no
// pattern escapes. The zero Sampler is ready.
type Sampler struct {
	left  int      // requests until the next pick
	every int      // average distance of picks, and the weight of a pick
	gaps  rand.PCG // draws the distances
}

// Skip counts n requests and reports whether none is picked. If one is, pass them to Tracker.Note.
func (s *Sampler) Skip(n int) bool {
	s.left -= n
	return s.left >= 0
}

// begin gives a new sampler of the tracker its first gap, which includes the n requests just counted.
func (s *Sampler) begin(t *Tracker, n int) {
	if s.every == 0 {
		s.gaps.Seed(t.gaps, t.samplers.Add(1))
		s.left = -n - 1
		s.advance(int(t.every.Load()))
	}
}

// next returns the index of the next pick among the last n requests, or n.
func (s *Sampler) next(n int) int {
	return n + min(s.left, 0)
}

// advance picks the request after that of next. The gap is random, from 1 to 2*every-1.
func (s *Sampler) advance(every int) {
	s.every = every
	s.left += 1 + int(s.gaps.Uint64()%uint64(2*every-1))
}
