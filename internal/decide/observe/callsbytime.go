package observe

import "math/bits"

// CallsByTime counts calls by their time, in buckets that end at powers of two of microseconds.
type CallsByTime [24]int64 // up to 8.4 seconds, and what is longer in the last

// Bucket is how many calls took up to so long.
type Bucket struct{ MostUs, Calls int64 }

func (h *CallsByTime) add(ns, calls int64) {
	us := (max(ns, 1) + 999) / 1000 // rounded up, so that each is within its bucket
	h[min(bits.Len64(uint64(us-1)), len(h)-1)] += calls
}

func (h *CallsByTime) merge(other *CallsByTime) {
	for i, n := range other {
		h[i] += n
	}
}

// Cumulative returns the number of calls, and how many took up to so long, where that changes.
func (h *CallsByTime) Cumulative() (calls int64, buckets []Bucket) {
	for i, n := range h {
		if n > 0 {
			calls += n
			buckets = append(buckets, Bucket{1 << i, calls})
		}
	}
	return calls, buckets
}
