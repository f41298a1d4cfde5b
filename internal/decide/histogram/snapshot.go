package histogram

import (
	"math"
	"sort"
	"time"
)

// Snapshot is the counts at a time.
type Snapshot struct {
	Count uint64
	SumNs uint64

	scale *Scale
	cells []uint64
}

func (s *Scale) NewSnapshot() Snapshot {
	return Snapshot{scale: s, cells: make([]uint64, len(s.boundNs))}
}

func (s *Snapshot) Add(d *Durations) { s.add(d.cells, d.sumNs) }

func (s *Snapshot) Merge(other Snapshot) { s.add(other.cells, other.SumNs) }

func (s *Snapshot) add(cells []uint64, sumNs uint64) {
	for i, n := range cells {
		s.cells[i] += n
		s.Count += n
	}
	s.SumNs += sumNs
}

// Since returns the difference from an earlier snapshot.
func (s Snapshot) Since(earlier Snapshot) Snapshot {
	d := Snapshot{Count: s.Count - earlier.Count, SumNs: s.SumNs - earlier.SumNs, scale: s.scale, cells: make([]uint64, len(s.cells))}
	for i := range d.cells {
		d.cells[i] = s.cells[i] - earlier.cells[i]
	}
	return d
}

// Quantile returns the q-quantile, or 0 without durations. From 60 ns to 64 s it is at most 9 % too high.
func (s Snapshot) Quantile(q float64) time.Duration {
	if s.Count == 0 {
		return 0
	}
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(s.Count)))
	seen := uint64(0)
	for i, n := range s.cells {
		if seen += n; seen >= max(rank, 1) {
			return time.Duration(min(s.scale.boundNs[i], nativeNs(lastNative+1)))
		}
	}
	return 0
}

// Classic returns the classic buckets' cumulative counts by upper bound in seconds.
func (s Snapshot) Classic() map[float64]uint64 {
	buckets := map[float64]uint64{}
	at, sum := 0, uint64(0)
	for _, bound := range classicNs() {
		end := sort.Search(len(s.scale.boundNs), func(i int) bool { return s.scale.boundNs[i] > bound })
		for ; at < end; at++ {
			sum += s.cells[at]
		}
		buckets[time.Duration(bound).Seconds()] = sum
	}
	return buckets
}

// Native returns the nonempty native buckets by index.
func (s Snapshot) Native() map[int]int64 {
	buckets := map[int]int64{}
	for i, n := range s.cells {
		if n > 0 {
			buckets[s.scale.native[i]] += int64(n)
		}
	}
	return buckets
}
