package observe

import "math/bits"

// CallsByTime counts calls by duration, in buckets that end at powers of two of microseconds.
type CallsByTime [24]int64 // up to 8.4 seconds, and all longer ones in the last

// Bucket is the number of calls up to a duration.
type Bucket struct{ MostUs, Calls int64 }

func (h *CallsByTime) add(ns, calls int64) {
	us := (max(ns, 1) + 999) / 1000 // rounded up, into the right bucket
	h[min(bits.Len64(uint64(us-1)), len(h)-1)] += calls
}

func (h *CallsByTime) merge(other *CallsByTime) {
	for i, n := range other {
		h[i] += n
	}
}

// Cumulative returns the number of calls, and the cumulative count of each nonempty bucket.
func (h *CallsByTime) Cumulative() (calls int64, buckets []Bucket) {
	for i, n := range h {
		if n > 0 {
			calls += n
			buckets = append(buckets, Bucket{1 << i, calls})
		}
	}
	return calls, buckets
}
