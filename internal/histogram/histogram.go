// Package histogram counts durations in cells that are fine enough for both of Prometheus's kinds of histogram at once:
// the cells of a classic bucket, and those of a native one, are whole cells. A Scale never changes and is safe for
// concurrent use; Durations and a Snapshot have no locks and belong to whoever guards them.
package histogram

import (
	"math"
	"math/bits"
	"slices"
	"sort"
	"time"
)

const (
	// Schema is the native buckets' resolution by Prometheus's name: each is 2^(1/8) as wide as the one before.
	Schema    = 3
	perOctave = 1 << Schema

	// The native buckets between which cells are made, by their indices: 2^-24 s, about 60 ns, and 64 s. What is
	// shorter or longer is counted as the next one out.
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

// Scale says where the cells are.
type Scale struct {
	boundNs []int64 // the longest duration of each cell; of the last there is no longer one
	native  []int   // the index of the bucket that each cell is in
	first   []int   // by the leading bits of a duration, the first cell that it can be in
}

// NewScale returns the scale; there is but one.
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

// nativeNs is a native bucket's upper bound, in the nanoseconds that a whole number of them can reach.
func nativeNs(index int) int64 {
	return int64(math.Floor(math.Exp2(float64(index)/perOctave) * float64(time.Second)))
}

// leadingBits is how many bits behind a number's first count in leading: with as many as a native bucket takes, a
// duration is in one of three cells at most.
const leadingBits = Schema

// leading numbers durations by their leading bits, without gaps and in their order.
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

// NewDurations returns one that has counted nothing.
func (s *Scale) NewDurations() *Durations {
	return &Durations{scale: s, cells: make([]uint64, len(s.boundNs))}
}

// Observe counts n durations of so many nanoseconds.
func (d *Durations) Observe(ns int64, n int) {
	d.cells[d.scale.cell(ns)] += uint64(n)
	d.sumNs += uint64(max(ns, 0)) * uint64(n)
}
