package histogram

import (
	"math"
	"sort"
	"time"
)

// Snapshot is what was counted up to a time.
type Snapshot struct {
	Count uint64
	SumNs uint64

	scale *Scale
	cells []uint64
}

// NewSnapshot returns one of nothing.
func (s *Scale) NewSnapshot() Snapshot {
	return Snapshot{scale: s, cells: make([]uint64, len(s.boundNs))}
}

// Add adds what d has counted.
func (s *Snapshot) Add(d *Durations) { s.add(d.cells, d.sumNs) }

// Merge adds what another snapshot has of the same scale.
func (s *Snapshot) Merge(other Snapshot) { s.add(other.cells, other.SumNs) }

func (s *Snapshot) add(cells []uint64, sumNs uint64) {
	for i, n := range cells {
		s.cells[i] += n
		s.Count += n
	}
	s.SumNs += sumNs
}

// Since returns what was counted after an earlier snapshot of the same.
func (s Snapshot) Since(earlier Snapshot) Snapshot {
	d := Snapshot{Count: s.Count - earlier.Count, SumNs: s.SumNs - earlier.SumNs, scale: s.scale, cells: make([]uint64, len(s.cells))}
	for i := range d.cells {
		d.cells[i] = s.cells[i] - earlier.cells[i]
	}
	return d
}

// Quantile returns a duration that the given part of those counted did not exceed, at most 9 % above the least such
// from 60 ns to 64 s; 0 if none was counted.
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

// Classic returns, by its upper bound in seconds, how many durations each classic bucket and those below it have.
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

// Native returns how many durations each native bucket has that has some, by its index.
func (s Snapshot) Native() map[int]int64 {
	buckets := map[int]int64{}
	for i, n := range s.cells {
		if n > 0 {
			buckets[s.scale.native[i]] += int64(n)
		}
	}
	return buckets
}
