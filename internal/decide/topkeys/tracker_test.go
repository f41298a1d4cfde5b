package topkeys

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/test/racetest"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(time.Second)
)

// calls notes n calls of a key.
func calls(t *Tracker, s *Sampler, nowNs int64, n int, name string) {
	for range n {
		call(t, s, nowNs, 0, name, false)
	}
}

func call(t *Tracker, s *Sampler, nowNs int64, db uint16, name string, limited bool) {
	if !s.Skip(1) {
		t.Note(s, nowNs, 1, func(int) Request { return Request{DB: db, Name: []byte(name), Limited: limited} })
	}
}

// newTracker returns a tracker whose samplers draw the same gaps each time.
func newTracker() *Tracker {
	t := New()
	t.gaps = 1
	return t
}

// zipf is a load on n keys in which key i has a share proportional to 1/(i+1).
type zipf struct {
	sums []float64
}

func newZipf(n int) *zipf {
	z := &zipf{sums: make([]float64, n)}
	sum := 0.0
	for i := range z.sums {
		sum += 1 / float64(i+1)
		z.sums[i] = sum
	}
	return z
}

func (z *zipf) draw(r *rand.Rand) int {
	i, _ := slices.BinarySearch(z.sums, r.Float64()*z.sums[len(z.sums)-1])
	return i
}

// TestZipf: at any load the ten hottest keys are among the first twelve entries, with rates within the stated
// error.
func TestZipf(t *testing.T) {
	racetest.SkipAlone(t)
	const keys, seconds = 100_000, 12
	z := newZipf(keys)
	for _, perSecond := range []int{3000, 20_000, 60_000} {
		t.Run(fmt.Sprint(perSecond), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(perSecond)))
			tracker, exact := newTracker(), map[string]int{}
			var samplers [3]Sampler
			now := t0
			batch := make([]string, 0, 128)
			for i := range perSecond * seconds {
				now = t0 + int64(i)*sec/int64(perSecond)
				name := fmt.Sprint("key:", z.draw(r))
				exact[name]++
				if batch = append(batch, name); r.IntN(8) > 0 && len(batch) < cap(batch) {
					continue
				}
				s := &samplers[r.IntN(len(samplers))]
				if !s.Skip(len(batch)) {
					tracker.Note(s, now, len(batch), func(i int) Request { return Request{Name: []byte(batch[i])} })
				}
				batch = batch[:0]
			}
			top := tracker.estimates(Requested, now, 12)
			for i := range 10 {
				name := fmt.Sprint("key:", i)
				at := slices.IndexFunc(top, func(e Entry) bool { return e.Name == name })
				if at < 0 {
					t.Errorf("%s, called %d times, is missing", name, exact[name])
					continue
				}
				// The error is two standard deviations: some of thirty entries may exceed it, none twice
				// that.
				want := float64(exact[name]) / seconds
				if off := math.Abs(top[at].CallsPerSecond - want); off > 2*top[at].Error+0.05*want {
					t.Errorf("%s: got %.1f calls per second, want %.1f with an error of %.1f", name, top[at].CallsPerSecond, want, top[at].Error)
				}
			}
		})
	}
}

// TestExactAtLowLoad: few requests are all counted.
func TestExactAtLowLoad(t *testing.T) {
	tracker, s := newTracker(), &Sampler{}
	for i := range 100 {
		calls(tracker, s, t0+int64(i)*sec/100, 1+i%2, "a")
		call(tracker, s, t0+int64(i)*sec/100, 3, "b", i%4 == 0)
	}
	got := tracker.estimates(Requested, t0+sec-1, 10)
	want := []Entry{{Name: "a", CallsPerSecond: 150, Share: 0.6}, {DB: 3, Name: "b", CallsPerSecond: 100, Share: 0.4}}
	for i := range want {
		if len(got) != 2 || got[i].DB != want[i].DB || got[i].Name != want[i].Name || math.Abs(got[i].CallsPerSecond-want[i].CallsPerSecond) > 1e-6 ||
			got[i].Error != 0 || math.Abs(got[i].Share-want[i].Share) > 1e-9 {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
	limited := tracker.estimates(Limited, t0+sec-1, 10)
	if len(limited) != 1 || limited[0].Name != "b" || math.Abs(limited[0].CallsPerSecond-25) > 1e-6 || limited[0].Share != 1 {
		t.Errorf("limited: got %+v", limited)
	}
}

// TestDecay: a steady key keeps its rate; a silent one loses half of it per half-life, finally all.
func TestDecay(t *testing.T) {
	tracker, s := newTracker(), &Sampler{}
	at := func(second int) int64 { return t0 + int64(second)*sec }
	for second := range 600 {
		for i := range 10 {
			calls(tracker, s, at(second)+int64(i)*sec/10, 10, "steady")
			if second < 300 {
				calls(tracker, s, at(second)+int64(i)*sec/10, 10, "past")
			}
		}
		if second < 60 || second%60 != 0 {
			continue
		}
		want := map[string]float64{"steady": 100, "past": 100}
		if silent := second - 300; silent > 0 { // the window has not reached its full length yet
			whole := 1 - math.Exp2(-float64(second)/60)
			want["past"] = 100 * (math.Exp2(-float64(silent)/60) - math.Exp2(-float64(second)/60)) / whole
		}
		for _, e := range tracker.estimates(Requested, at(second+1)-1, 2) {
			if math.Abs(e.CallsPerSecond-want[e.Name]) > 2+0.02*want[e.Name] {
				t.Errorf("after %d s: %s has %.1f calls per second, want %.1f", second, e.Name, e.CallsPerSecond, want[e.Name])
			}
		}
	}
	for _, after := range []time.Duration{time.Hour, 100_000 * time.Hour} {
		if got := tracker.estimates(Requested, at(600)+int64(after), 10); len(got) != 0 {
			t.Errorf("after %s: got %+v", after, got)
		}
	}
	calls(tracker, s, at(600)+int64(100_001*time.Hour), 1, "new") // after a window of decayed epochs
	if got := tracker.estimates(Requested, at(600)+int64(100_001*time.Hour), 10); len(got) != 1 || got[0].Name != "new" || got[0].Share != 1 {
		t.Errorf("after the long silence: got %+v", got)
	}
}

// TestOnlyWhatIsCertain: uniform traffic has no hot keys; real ones are found in it, within their error. All
// are known if there are fewer keys than counters.
func TestOnlyWhatIsCertain(t *testing.T) {
	racetest.SkipAlone(t)
	for _, tt := range []struct {
		keys, perSecond, hot int // percent of the requests on one key
		want                 int
	}{
		{1_000_000, 500, 0, 0},
		{1_000_000, 5000, 0, 0},
		{1_000_000, 20_000, 0, 0},
		{5000, 5000, 0, 0},
		{20_000, 500, 0, 0},
		{20_000, 5000, 0, 0},
		{1_000_000, 500, 5, 1},
		{1_000_000, 20_000, 5, 1},
		{500, 2000, 0, 500},
	} {
		t.Run(fmt.Sprintf("%+v", tt), func(t *testing.T) {
			r, tracker, s := rand.New(rand.NewPCG(1, 2)), newTracker(), &Sampler{}
			now := t0
			for i := range max(12*tt.perSecond, 60_000) {
				now = t0 + int64(i)*sec/int64(tt.perSecond)
				name := fmt.Sprint("key:", r.IntN(tt.keys))
				if r.IntN(100) < tt.hot {
					name = "hot"
				}
				call(tracker, s, now, 0, name, i%2 == 0)
			}
			for _, ranking := range []Ranking{Requested, Limited} {
				got := tracker.Top(ranking, now, Counters)
				if len(got) != tt.want {
					t.Errorf("%s: %d keys, the first %+v, want %d", ranking, len(got), got[:min(1, len(got))], tt.want)
				}
				if tt.hot > 0 && len(got) > 0 && got[0].Name != "hot" {
					t.Errorf("%s: got %+v", ranking, got[0])
				}
			}
		})
	}
}

// TestAlmostNothing: a rate that prints as 0.00 is not shown; a request is forgotten after ten half-lives.
func TestAlmostNothing(t *testing.T) {
	tracker := newTracker()
	calls(tracker, &Sampler{}, t0, 1, "a")
	for _, tt := range []struct {
		second      int64
		shown, kept int
	}{{1, 1, 1}, {60, 1, 1}, {599, 0, 1}, {600, 0, 1}, {601, 0, 0}} {
		shown, kept := tracker.Top(Requested, t0+tt.second*sec, 9), tracker.estimates(Requested, t0+tt.second*sec, 9)
		if len(shown) != tt.shown || len(kept) != tt.kept {
			t.Errorf("after %d s: %d keys shown, %d kept, want %d and %d", tt.second, len(shown), len(kept), tt.shown, tt.kept)
		}
	}
}

// TestEmptySketchIsKept: an unused sketch is not replaced every epoch.
func TestEmptySketchIsKept(t *testing.T) {
	tracker, s := newTracker(), &Sampler{}
	calls(tracker, s, t0, 1, "a")
	limited := tracker.sketches[Limited]
	calls(tracker, s, t0+2*sec, 1, "a")
	if tracker.sketches[Limited] != limited {
		t.Error("the sketch was replaced")
	}
}

// TestSamplingFollowsLoad: samples an epoch are bounded, and after a quiet time every request is sampled.
func TestSamplingFollowsLoad(t *testing.T) {
	racetest.SkipAlone(t)
	tracker, s := newTracker(), &Sampler{}
	picked := 0
	for second := range 5 {
		for i := range 1_000_000 {
			if !s.Skip(1) {
				picked++
				tracker.Note(s, t0+int64(second)*sec+int64(i)*1000, 1, func(int) Request { return Request{Name: []byte("a")} })
			}
		}
		if maxPicked := 16 * manySamples; picked > maxPicked {
			t.Errorf("second %d: %d of a million requests picked, want at most %d", second, picked, maxPicked)
		}
		picked = 0
	}
	got := tracker.estimates(Requested, t0+5*sec-1, 1)[0]
	if math.Abs(got.CallsPerSecond-1e6) > 2*got.Error || got.Error > 2e4 { // exceeds the error once in 2,000 runs
		t.Errorf("got %+v, want a million a second", got)
	}
	tracker.estimates(Requested, t0+60*sec, 1)
	if every := tracker.every.Load(); every != 1 {
		t.Errorf("in a quiet time: one in %d picked, want 1", every)
	}
}

// TestSamplingSteps: the distance doubles after manySamples, and halves after an epoch with fewer than
// fewSamples.
func TestSamplingSteps(t *testing.T) {
	for _, tt := range []struct {
		every   int32
		samples int
		epochs  int64
		want    int32
	}{
		{every: 1, samples: manySamples - 1, want: 1},
		{every: 1, samples: manySamples, want: 2},
		{every: 1, samples: 2*manySamples - 1, want: 2},
		{every: 1, samples: 2 * manySamples, want: 4},
		{every: maxEvery, samples: manySamples, want: maxEvery},

		{every: 64, samples: fewSamples - 1, epochs: 1, want: 32},
		{every: 64, samples: fewSamples, epochs: 1, want: 64},
		{every: 64, samples: fewSamples, epochs: 2, want: 32}, // the second had none
		{every: 64, epochs: 2, want: 16},
		{every: 64, samples: fewSamples, epochs: 6, want: 2},
		{every: 64, samples: fewSamples, epochs: 9, want: 1},
		{every: maxEvery, epochs: 7_000_000_000, want: 1}, // two hundred years
		// Samples at the former rate do not count.
		{every: 64, samples: manySamples + fewSamples - 1, epochs: 1, want: 64},
		{every: 64, samples: manySamples + fewSamples, epochs: 1, want: 128},
	} {
		tracker := newTracker()
		tracker.estimates(Requested, t0, 1) // begins an epoch
		tracker.every.Store(tt.every)
		for range tt.samples {
			calls(tracker, &Sampler{every: 1}, t0, 1, "a") // picks the next request
		}
		tracker.estimates(Requested, t0+tt.epochs*sec, 1)
		if got := tracker.every.Load(); got != tt.want {
			t.Errorf("%+v: got one in %d", tt, got)
		}
	}
}

// TestPatterns: a key in step with the samples is seen in proportion.
func TestPatterns(t *testing.T) {
	racetest.SkipAlone(t)
	for _, period := range []int{2, 3, 16, 64, 128} {
		tracker, s := newTracker(), &Sampler{}
		tracker.every.Store(64)
		var seen int
		for i := range 64_000 * period {
			if !s.Skip(1) {
				tracker.Note(s, t0, 1, func(int) Request { return Request{Name: []byte("a")} })
				tracker.every.Store(64)
				if i%period == 0 {
					seen++
				}
			}
		}
		if seen < 800 || seen > 1200 { // a thousand, and six standard deviations
			t.Errorf("period %d: %d seen, want about 1000", period, seen)
		}
	}
}

// TestHostileKeys: long, arbitrary and many names take bounded memory and do not collide.
func TestHostileKeys(t *testing.T) {
	racetest.SkipAlone(t)
	tracker, s := newTracker(), &Sampler{}
	long := strings.Repeat("x", 1<<20)
	names := []string{"", "\x00\xff", "<img src=x onerror=alert(1)>", strings.Repeat("y", MaxNameBytes), long + "a", long + "b"}
	for _, name := range names {
		calls(tracker, s, t0, 3, name)
	}
	call(tracker, s, t0, 65535, "", false)
	call(tracker, s, t0, 65535, "", false)
	top := tracker.estimates(Requested, t0, 100)
	if len(top) != len(names)+1 {
		t.Fatalf("%d keys, want %d: %+v", len(top), len(names)+1, top)
	}
	for _, e := range top { // a name may spell a mark
		if strings.HasPrefix(e.Name, "xx") {
			calls(tracker, s, t0, 3, e.Name)
		}
	}
	top = tracker.estimates(Requested, t0, 100)
	if len(top) != len(names)+3 {
		t.Fatalf("%d keys, want %d: %+v", len(top), len(names)+3, top)
	}
	cut, spelled := 0, 0
	for _, e := range top {
		if len(e.Name) > MaxNameBytes {
			t.Errorf("a name of %d bytes", len(e.Name))
		}
		if strings.HasPrefix(e.Name, "xx") {
			if e.Cut {
				cut++
			} else {
				spelled++
			}
			if !strings.Contains(e.Name, "x... (#") || !strings.HasSuffix(e.Name, ", 1048577 bytes)") {
				t.Errorf("the name %q has no mark", e.Name)
			}
		} else if e.Cut || e.DB == 0 && !slices.Contains(names, e.Name) {
			t.Errorf("the name %q", e.Name)
		}
	}
	if last := top[len(top)-1]; cut != 2 || spelled != 2 || last.DB != 65535 || last.Name != "" {
		t.Errorf("%d cut names, %d that spell a mark, the last entry %+v", cut, spelled, last)
	}
	for i := range 100_000 { // any number of keys
		call(tracker, s, t0, 0, fmt.Sprint(i, long[:300]), true)
	}
	for k, sketch := range tracker.sketches {
		if len(sketch.byHash) > Counters || len(sketch.heap) > Counters {
			t.Errorf("%s: %d keys", Ranking(k), len(sketch.byHash))
		}
	}
}

// TestTerms: a key has the terms of its last counted request, not of its counter's former key.
func TestTerms(t *testing.T) {
	tracker, s := newTracker(), &Sampler{}
	note := func(name string, limit int64, limited bool) {
		if !s.Skip(1) {
			tracker.Note(s, t0, 1, func(int) Request {
				return Request{Name: []byte(name), Limited: limited, Terms: limiter.Terms{Kind: limiter.FixedWindow, Numbers: limiter.Numbers{limit}}}
			})
		}
	}
	note("a", 1, false)
	note("a", 2, true)
	note("a", 3, false)
	for ranking, want := range map[Ranking]int64{Requested: 3, Limited: 2} {
		if got := tracker.estimates(ranking, t0, 1)[0].Terms; got.Numbers[0] != want || got.Kind != limiter.FixedWindow {
			t.Errorf("%s: got %+v, want %d", ranking, got, want)
		}
	}
	sketch := NewSketch(1, 1)
	sketch.Add([]byte("a"), 1, limiter.Terms{Numbers: limiter.Numbers{1}})
	sketch.Add([]byte("b"), 1, limiter.Terms{Numbers: limiter.Numbers{2}})
	if got := sketch.Top(1)[0]; got.Key != "b" || got.Terms.Numbers[0] != 2 {
		t.Errorf("%+v", got)
	}
}

// TestNoteDoesNotAllocate for a known key, however long its name.
func TestNoteDoesNotAllocate(t *testing.T) {
	for _, nameBytes := range []int{0, keptKeyBytes, MaxNameBytes, MaxNameBytes + 1, 1 << 20} {
		tracker, s, name := newTracker(), &Sampler{}, bytes.Repeat([]byte("x"), nameBytes)
		n := testing.AllocsPerRun(100, func() {
			*s = Sampler{every: 1, left: -1}
			tracker.Note(s, t0, 1, func(int) Request {
				return Request{DB: 1, Name: name, Limited: true, Terms: limiter.Terms{Numbers: limiter.Numbers{1}}}
			})
		})
		if n != 0 {
			t.Errorf("a name of %d bytes: %v allocations", nameBytes, n)
		}
	}
}

// TestConcurrently runs samplers and readers together; losses affect all keys equally.
func TestConcurrently(t *testing.T) {
	tracker := newTracker()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			var s Sampler
			name := bytes.Repeat([]byte{byte('a' + g)}, 200)
			for i := range 20_000 {
				if !s.Skip(3) {
					tracker.Note(&s, t0+int64(i)*1_000_000, 3, func(i int) Request { return Request{DB: uint16(i), Name: name, Limited: i == 1} })
				}
				if i%1000 == 0 {
					tracker.estimates(Limited, t0+int64(i), 10)
				}
			}
		})
	}
	wg.Wait()
	if got := tracker.estimates(Requested, t0+20*sec, 100); len(got) != 12 {
		t.Errorf("%d keys, want 12", len(got))
	}
}

// BenchmarkNote measures a picked request, for known keys and for keys that take over counters.
func BenchmarkNote(b *testing.B) {
	for _, keys := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			names := make([][]byte, keys)
			for i := range names {
				names[i] = []byte(fmt.Sprint("user:", i))
			}
			tracker, s := newTracker(), Sampler{}
			r := rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			for b.Loop() {
				s.left = -1
				name := names[r.IntN(keys)]
				tracker.Note(&s, t0, 1, func(int) Request { return Request{Name: name} })
			}
		})
	}
}
