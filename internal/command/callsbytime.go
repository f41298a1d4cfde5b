package command

import "math/bits"

// callsByTime counts calls by their time, in buckets that end at powers of two of microseconds.
type callsByTime [24]int64 // up to 8.4 seconds, and what is longer in the last

type histogramBucket struct{ mostUs, calls int64 }

func (h *callsByTime) add(ns, calls int64) {
	us := (max(ns, 1) + 999) / 1000 // rounded up, so that each is within its bucket
	h[min(bits.Len64(uint64(us-1)), len(h)-1)] += calls
}

func (h *callsByTime) merge(other *callsByTime) {
	for i, n := range other {
		h[i] += n
	}
}

// cumulative returns the number of calls, and how many took up to so long, where that changes.
func (h *callsByTime) cumulative() (calls int64, buckets []histogramBucket) {
	for i, n := range h {
		if n > 0 {
			calls += n
			buckets = append(buckets, histogramBucket{1 << i, calls})
		}
	}
	return calls, buckets
}
