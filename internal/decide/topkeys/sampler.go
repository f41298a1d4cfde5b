package topkeys

import "math/rand/v2"

// Sampler picks the requests that a Tracker counts: on average one in every `every`, with random gaps that nobody can
// predict, so that no pattern of requests escapes it. The zero Sampler is ready to use.
type Sampler struct {
	left  int // requests until the next pick
	every int // on average one request in this many is picked, and counts for as many
}

// Skip counts n requests and reports whether none of them is picked. If one is, pass them to Tracker.Note.
func (s *Sampler) Skip(n int) bool {
	s.left -= n
	return s.left >= 0
}

// begin gives a new sampler its first gap, which includes the n requests just counted.
func (s *Sampler) begin(n, every int) {
	if s.every == 0 {
		s.left = -n - 1
		s.advance(every)
	}
}

// next returns the index, among the last n requests, of the next pick, or n if there is none.
func (s *Sampler) next(n int) int {
	return n + min(s.left, 0)
}

// advance picks the request after the one that next returned. The gap is random, from 1 to 2*every-1.
func (s *Sampler) advance(every int) {
	s.every = every
	s.left += 1 + rand.IntN(2*every-1)
}
