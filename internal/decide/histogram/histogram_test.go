package histogram

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// nativeIndex is the definition: bucket i covers 2^((i-1)/8) seconds, exclusive, to 2^(i/8) seconds.
func nativeIndex(ns int64) int {
	for i := firstNative; i <= lastNative; i++ {
		if time.Duration(ns).Seconds() <= math.Exp2(float64(i)/perOctave) {
			return i
		}
	}
	return lastNative + 1
}

func TestEveryDurationIsInItsBuckets(t *testing.T) {
	s := NewScale()
	durations := []int64{math.MinInt64, -1, 0, 1, 7, 8, 9, 15, 16, 59, 60, 999, 1000, 1001, 64e9, 64e9 + 1, 1e12, math.MaxInt64}
	for _, bound := range s.boundNs[:len(s.boundNs)-1] {
		durations = append(durations, bound-1, bound, bound+1)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		durations = append(durations, rng.Int64()>>rng.IntN(63))
	}
	for _, ns := range durations {
		d, snapshot := s.NewDurations(), s.NewDurations()
		d.Observe(ns, 3)
		snapshot.Add(d)
		if native := snapshot.Native(); len(native) != 1 || native[nativeIndex(ns)] != 3 {
			t.Errorf("%d ns: native buckets %v, want %d", ns, native, nativeIndex(ns))
		}
		for bound, n := range snapshot.Classic() {
			if in := time.Duration(ns).Seconds() <= bound; in != (n == 3) {
				t.Errorf("%d ns: %d in the classic bucket up to %g s", ns, n, bound)
			}
		}
		if snapshot.Count != 3 || ns < math.MaxInt64/3 && snapshot.SumNs != 3*uint64(max(ns, 0)) {
			t.Errorf("%d ns: count %d, sum %d", ns, snapshot.Count, snapshot.SumNs)
		}
	}
}

// TestCellsAreFoundAtOnce counts the steps of a search.
func TestCellsAreFoundAtOnce(t *testing.T) {
	s := NewScale()
	for i, bound := range s.boundNs {
		shortest := int64(0) // in the cell
		if i > 0 {
			shortest = s.boundNs[i-1] + 1
		}
		for _, ns := range []int64{shortest, bound} {
			if first := s.first[leading(ns)]; first > i || first < i-2 {
				t.Errorf("%d ns: the search starts at cell %d, want %d to %d", ns, first, i-2, i)
			}
		}
	}
}

// TestLeadingHasNoGaps: equal leading bits have one number, and the next ones the next.
func TestLeadingHasNoGaps(t *testing.T) {
	want := 0
	check := func(lowNs, highNs int64) {
		if a, b := leading(lowNs), leading(highNs); a != want || b != want {
			t.Errorf("%d to %d ns: got %d and %d, want %d", lowNs, highNs, a, b, want)
		}
		want++
	}
	for ns := range int64(8) {
		check(ns, ns)
	}
	for shift := range 60 {
		for front := int64(8); front < 16; front++ {
			check(front<<shift, front<<shift|(1<<shift-1))
		}
	}
}

func TestQuantiles(t *testing.T) {
	s := NewScale()
	d, before := s.NewDurations(), s.NewDurations()
	if got := before.Quantile(0.5); got != 0 {
		t.Errorf("of nothing: %s", got)
	}
	d.Observe(int64(time.Hour), 1000)
	before.Add(d)
	rng := rand.New(rand.NewPCG(3, 4))
	var all []int64
	for range 100_000 {
		ns := int64(math.Exp(rng.NormFloat64()+9) * 5)
		all = append(all, ns)
		d.Observe(ns, 1)
	}
	slices.Sort(all)
	now := s.NewDurations()
	now.Add(d)
	since := now.Since(before)
	if since.Count != 100_000 {
		t.Errorf("counted %d since", since.Count)
	}
	for _, q := range []float64{-1, 0, 0.5, 0.9, 0.99, 0.999, 1, 2} {
		want := float64(all[int(max(0, min(q, 1)*100_000-1))])
		if got := float64(since.Quantile(q)); got < want || got > want*1.1 {
			t.Errorf("quantile %g: got %g ns, want %g and at most 10 %% more", q, got, want)
		}
	}
	if got := now.Quantile(1); got < 64*time.Second || got > 80*time.Second {
		t.Errorf("the longest: got %s", got)
	}
}

// TestSince subtracts cell by cell, and the sum.
func TestSince(t *testing.T) {
	s := NewScale()
	d, before, now := s.NewDurations(), s.NewDurations(), s.NewDurations()
	d.Observe(1000, 5)
	d.Observe(2_000_000, 1)
	before.Add(d)
	d.Observe(1000, 2)
	d.Observe(3_000_000_000, 1)
	now.Add(d)
	since := now.Since(before)
	if since.Count != 3 || since.SumNs != 3_000_002_000 {
		t.Errorf("counted %d, in all %d ns", since.Count, since.SumNs)
	}
	want := map[int]int64{nativeIndex(1000): 2, nativeIndex(3_000_000_000): 1}
	if got := since.Native(); !maps.Equal(got, want) {
		t.Errorf("native buckets %v, want %v", got, want)
	}
	for bound, n := range since.Classic() {
		if want := uint64(2); bound >= 1e-6 && n != want || bound < 1e-6 && n != 0 {
			t.Errorf("%d in the classic bucket up to %g s", n, bound)
		}
	}
}

func TestMerge(t *testing.T) {
	s := NewScale()
	d, one, two := s.NewDurations(), s.NewDurations(), s.NewDurations()
	d.Observe(5000, 2)
	one.Add(d)
	two.Add(one)
	two.Add(one)
	if two.Count != 4 || two.SumNs != 20_000 || two.Quantile(1) != 5*time.Microsecond {
		t.Errorf("got %+v", two)
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	d := NewScale().NewDurations()
	if n := testing.AllocsPerRun(100, func() { d.Observe(12345, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	d := NewScale().NewDurations()
	ns := int64(1)
	for b.Loop() {
		d.Observe(ns&0xfffff, 1)
		ns = ns*6364136223846793005 + 1442695040888963407
	}
}
