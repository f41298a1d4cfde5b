// Package histogram counts durations in cells from which both native and classic histograms of Prometheus can be computed:
// every bucket consists of whole cells. A Scale never changes and is safe for concurrent use; Durations and Snapshot have no
// locks, and their owner must guard them.
package histogram

import (
	"math"
	"math/bits"
	"slices"
	"sort"
	"time"
)

const (
	// Schema is Prometheus's number for the resolution of the native buckets: each is 2^(1/8) as wide as the one before.
	Schema    = 3
	perOctave = 1 << Schema

	// The indices of the first and last native bucket with cells: 2^-24 s, about 60 ns, and 64 s. Shorter and longer
	// durations are counted in the next bucket beyond them.
	firstNative = -24 * perOctave
	lastNative  = 6 * perOctave
)

// classicNs are the upper bounds of the classic buckets, in nanoseconds.
func classicNs() []int64 {
	const us, ms, sec = 1e3, 1e6, 1e9
	return []int64{
		500, 1 * us, 2500, 5 * us, 10 * us, 25 * us, 50 * us, 100 * us, 250 * us, 500 * us,
		1 * ms, 2.5 * ms, 5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms, 1 * sec, 2.5 * sec,
	}
}

// Scale is the boundaries of the cells.
type Scale struct {
	boundNs []int64 // the longest duration in each cell; the last is unlimited
	native  []int   // the index of each cell's native bucket
	first   []int   // by the leading bits of a duration, the first cell that can contain it
}

// NewScale returns the scale. All scales are equal.
func NewScale() *Scale {
	s := &Scale{boundNs: classicNs()}
	for i := firstNative; i <= lastNative; i++ {
		s.boundNs = append(s.boundNs, nativeNs(i))
	}
	slices.Sort(s.boundNs)
	s.boundNs = append(slices.Compact(s.boundNs), math.MaxInt64)
	index := firstNative
	for _, ns := range s.boundNs {
		for index <= lastNative && nativeNs(index) < ns {
			index++
		}
		s.native = append(s.native, index)
	}
	s.first = make([]int, leading(math.MaxInt64)+1)
	for ns, n := int64(0), 0; n < len(s.first); n++ {
		for leading(ns) < n {
			ns += 1 << max(0, bits.Len64(uint64(ns))-1-leadingBits)
		}
		s.first[n] = sort.Search(len(s.boundNs), func(i int) bool { return s.boundNs[i] >= ns })
	}
	return s
}

// nativeNs returns a native bucket's upper bound, rounded down to whole nanoseconds.
func nativeNs(index int) int64 {
	return int64(math.Floor(math.Exp2(float64(index)/perOctave) * float64(time.Second)))
}

// leadingBits is how many bits after the first one leading uses: with the resolution of native buckets, a duration can be
// in at most three cells.
const leadingBits = Schema

// leading numbers durations by their leading bits, in order and without gaps.
func leading(ns int64) int {
	n := bits.Len64(uint64(ns))
	if n <= leadingBits {
		return int(ns)
	}
	behind := n - 1 - leadingBits
	return behind<<leadingBits + int(ns>>behind)
}

func (s *Scale) cell(ns int64) int {
	ns = max(ns, 0)
	i := s.first[leading(ns)]
	for ns > s.boundNs[i] {
		i++
	}
	return i
}

// Durations counts durations.
type Durations struct {
	scale *Scale
	cells []uint64
	sumNs uint64
}

// NewDurations returns an empty Durations.
func (s *Scale) NewDurations() *Durations {
	return &Durations{scale: s, cells: make([]uint64, len(s.boundNs))}
}

// Observe counts n durations of ns nanoseconds.
func (d *Durations) Observe(ns int64, n int) {
	d.cells[d.scale.cell(ns)] += uint64(n)
	d.sumNs += uint64(max(ns, 0)) * uint64(n)
}
