// Package histogram counts durations in cells that serve Prometheus's native and classic histograms: every
// bucket consists of whole cells. A Scale is immutable; owners must guard Durations.
package histogram

import (
	"math"
	"math/bits"
	"slices"
	"sort"
	"time"
)

const (
	// Schema is Prometheus's resolution of native buckets: each is 2^(1/8) times as wide as the one before.
	Schema    = 3
	perOctave = 1 << Schema

	// Indices of the first and the last native bucket with cells: 2^-24 s, about 60 ns, and 64 s. Durations
	// beyond are counted in the next buckets.
	firstNative = -24 * perOctave
	lastNative  = 6 * perOctave
)

// classicNs returns the classic buckets' upper bounds in nanoseconds.
func classicNs() []int64 {
	const us, ms, sec = 1e3, 1e6, 1e9
	return []int64{
		500, 1 * us, 2500, 5 * us, 10 * us, 25 * us, 50 * us, 100 * us, 250 * us, 500 * us,
		1 * ms, 2.5 * ms, 5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms, 1 * sec, 2.5 * sec,
	}
}

// Scale has the boundaries of cells.
type Scale struct {
	boundNs []int64 // longest duration of each cell; the last is unlimited
	native  []int   // index of each cell's native bucket
	first   []int   // first possible cell by a duration's leading bits
}

// NewScale returns the only scale.
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

// nativeNs returns a native bucket's upper bound in whole nanoseconds, rounded down.
func nativeNs(index int) int64 {
	return int64(math.Floor(math.Exp2(float64(index)/perOctave) * float64(time.Second)))
}

// leadingBits is the number of bits that leading uses after the first one: a duration is in one of at most
// three cells.
const leadingBits = Schema

// leading numbers durations by their leading bits without gaps.
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

// Durations are counted by cell. Copies by assignment share the cells; Add to new Durations copies them.
type Durations struct {
	Count uint64
	SumNs uint64

	scale *Scale
	cells []uint64
}

func (s *Scale) NewDurations() Durations {
	return Durations{scale: s, cells: make([]uint64, len(s.boundNs))}
}

// Observe counts n durations of ns nanoseconds.
func (d *Durations) Observe(ns int64, n int) {
	d.cells[d.scale.cell(ns)] += uint64(n)
	d.Count += uint64(n)
	d.SumNs += uint64(max(ns, 0)) * uint64(n)
}

func (d *Durations) Add(other Durations) {
	for i, n := range other.cells {
		d.cells[i] += n
	}
	d.Count += other.Count
	d.SumNs += other.SumNs
}

// Since returns the difference from earlier counts, which must not share the cells.
func (d Durations) Since(earlier Durations) Durations {
	since := Durations{Count: d.Count - earlier.Count, SumNs: d.SumNs - earlier.SumNs, scale: d.scale, cells: slices.Clone(d.cells)}
	for i, n := range earlier.cells {
		since.cells[i] -= n
	}
	return since
}
