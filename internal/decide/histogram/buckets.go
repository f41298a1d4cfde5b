package histogram

import (
	"math"
	"sort"
	"time"
)

// Quantile returns the q-quantile, or 0 without durations. From 60 ns to 64 s it is at most 9 % too high.
func (d Durations) Quantile(q float64) time.Duration {
	if d.Count == 0 {
		return 0
	}
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(d.Count)))
	seen := uint64(0)
	for i, n := range d.cells {
		if seen += n; seen >= max(rank, 1) {
			return time.Duration(min(d.scale.boundNs[i], nativeNs(lastNative+1)))
		}
	}
	return 0
}

// Classic returns the classic buckets' cumulative counts by upper bound in seconds.
func (d Durations) Classic() map[float64]uint64 {
	buckets := map[float64]uint64{}
	at, sum := 0, uint64(0)
	for _, bound := range classicNs() {
		end := sort.Search(len(d.scale.boundNs), func(i int) bool { return d.scale.boundNs[i] > bound })
		for ; at < end; at++ {
			sum += d.cells[at]
		}
		buckets[time.Duration(bound).Seconds()] = sum
	}
	return buckets
}

// Native returns the nonempty native buckets by index.
func (d Durations) Native() map[int]int64 {
	buckets := map[int]int64{}
	for i, n := range d.cells {
		if n > 0 {
			buckets[d.scale.native[i]] += int64(n)
		}
	}
	return buckets
}
