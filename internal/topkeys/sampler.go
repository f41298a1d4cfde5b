package topkeys

import "math/rand/v2"

// Sampler picks the requests that a Tracker is shown: on average one in every so many, with random gaps that nobody
// can foresee, so that no pattern of requests stays out of sight. The zero Sampler is ready.
type Sampler struct {
	left  int // requests until the next one that is picked
	every int // one in so many is picked, so each stands for so many
}

// Skip counts n requests and reports whether none of them is to be picked. If it does not, they go to Tracker.Note.
func (s *Sampler) Skip(n int) bool {
	s.left -= n
	return s.left >= 0
}

// begin gives a new sampler its first gap, of which the n requests that were counted are a part.
func (s *Sampler) begin(n, every int) {
	if s.every == 0 {
		s.left = -n - 1
		s.goOn(every)
	}
}

// next returns the place among the last n requests of the next one that is picked, or n where there is none.
func (s *Sampler) next(n int) int {
	return n + min(s.left, 0)
}

// goOn picks the request after the one that next has returned. The gap is anything from 1 to 2*every-1.
func (s *Sampler) goOn(every int) {
	s.every = every
	s.left += 1 + rand.IntN(2*every-1)
}
