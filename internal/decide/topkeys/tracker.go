package topkeys

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/limiter"
)

// Ranking selects the requests that count.
type Ranking uint8

const (
	Requested Ranking = iota // all requests
	Limited                  // limited ones
	rankings
)

// String returns the name in metric labels and CL.TOP, which predates the code's terms.
func (r Ranking) String() string { return [rankings]string{"asked", "denied"}[r] }

const (
	// HalfLife is the time in which a request's weight halves.
	HalfLife = time.Minute

	// Counters is the number of keys counted in each ranking. A key with more than 1/Counters of all requests
	// is never missed, and the sketch adds at most 1/Counters of them to an Entry's error.
	Counters = 1024

	// MaxNameBytes is the longest name kept whole.
	MaxNameBytes = 128

	keptKeyBytes = 48 // allocated in advance; longer keys allocate when first counted

	// Counts decay once an epoch. A request is forgotten after ten half-lives.
	epoch     = time.Second
	forgotten = 1.0 / (1 << 10)

	// The sampling rate follows the load, from every request to one in maxEvery, for fewSamples to
	// manySamples an epoch. A sample costs some cache misses, as the counters are rarely cached.
	maxEvery    = 4096
	fewSamples  = 1 << 9
	manySamples = 1 << 11
)

// Entry is a key with its rate.
type Entry struct {
	DB   uint16
	Name string
	// CallsPerSecond is an average over the last minutes, weighted towards recent ones.
	CallsPerSecond float64
	// Error bounds CallsPerSecond's error: the sketch's overcount plus two standard deviations of the
	// sampling.
	Error float64
	// Recent is the calls per second of the last ten seconds, with its bound. IsRecent is false for a key not
	// counted for so long, or with too few samples.
	Recent, RecentError float64
	IsRecent            bool

	Share float64       // of the ranking's requests, from 0 to 1
	Cut   bool          // Name is the beginning of a longer one, and a mark
	Terms limiter.Terms // of the last counted request
}

// Request is a Tracker's view of a request.
type Request struct {
	DB      uint16
	Name    []byte
	Limited bool
	Terms   limiter.Terms
}

// Tracker finds the hottest keys from the picks of Samplers.
type Tracker struct {
	every    atomic.Int32 // average distance of picks
	seed     maphash.Seed
	gaps     uint64        // seeds the samplers' gaps, with
	samplers atomic.Uint64 // the number of samplers begun

	mu       sync.Mutex // rank 90: guards all below
	sketches [rankings]*Sketch
	totals   [rankings]float64
	squares  float64 // variance added by sampling: mean of the weights, per request
	started  bool
	epochNs  int64                  // start of the current one
	windowNs float64                // decayed length of the earlier epochs
	recent   [recentEpochs + 1]sums // by epoch; the sketches know the current slot
	sampled  int                    // since every changed or the epoch began
	key      identity
}

// sums are an epoch's weights and their squares over all requests.
type sums struct{ weights, squares float64 }

func New() *Tracker {
	t := &Tracker{seed: maphash.MakeSeed(), gaps: rand.Uint64()}
	t.every.Store(1)
	for k := range t.sketches {
		t.sketches[k] = NewSketch(Counters, keptKeyBytes)
	}
	return t
}

// Note counts the sampler's picks among the n requests just skipped. It drops them if another goroutine holds
// the tracker: no request waits here.
func (t *Tracker) Note(s *Sampler, nowNs int64, n int, request func(i int) Request) {
	locked := t.mu.TryLock()
	if locked {
		defer t.mu.Unlock()
		t.advanceLocked(nowNs)
	}
	s.begin(t, n)
	for i := s.next(n); i < n; i = s.next(n) {
		if locked {
			r := request(i)
			t.addLocked(&r, float64(s.every))
		}
		s.advance(int(t.every.Load()))
	}
}

// advanceLocked moves to the epoch of nowNs.
func (t *Tracker) advanceLocked(nowNs int64) {
	if !t.started {
		t.started, t.epochNs = true, nowNs
	}
	over := (nowNs - t.epochNs) / int64(epoch)
	if over <= 0 {
		return
	}
	by := decay(over)
	t.windowNs = t.windowNs*by + float64(epoch)*sumOfDecays(over)
	t.epochNs += over * int64(epoch)
	slot := t.sketches[Requested].slot
	for i := range min(over, recentEpochs+1) {
		t.recent[(slot+1+int(i))%(recentEpochs+1)] = sums{}
	}
	for k := range t.sketches {
		t.sketches[k].advance(over)
		t.sketches[k].Scale(by)
		if t.totals[k] *= by; t.totals[k] > 0 && t.totals[k] < forgotten {
			slot := t.sketches[k].slot
			t.sketches[k], t.totals[k] = NewSketch(Counters, keptKeyBytes), 0
			t.sketches[k].slot = slot
		}
	}
	t.squares *= by
	quiet := over - 1 // in epochs
	if t.sampled < fewSamples {
		quiet++
	}
	t.every.Store(max(1, t.every.Load()>>min(quiet, 31)))
	t.sampled = 0
}

// decay returns the factor for a count after some epochs.
func decay(epochs int64) float64 {
	return math.Exp2(-float64(epochs) * float64(epoch) / float64(HalfLife))
}

// sumOfDecays returns the weight, in epochs, of the epochs just ended, each decayed at its own end and after.
func sumOfDecays(epochs int64) float64 {
	one := decay(1)
	return one * (1 - decay(epochs)) / (1 - one)
}

func (t *Tracker) addLocked(r *Request, weight float64) {
	key := t.key.of(t.seed, r.DB, r.Name)
	t.sketches[Requested].Add(key, weight, r.Terms)
	t.totals[Requested] += weight
	if r.Limited {
		t.sketches[Limited].Add(key, weight, r.Terms)
		t.totals[Limited] += weight
	}
	t.squares += weight * weight
	now := &t.recent[t.sketches[Requested].slot]
	now.weights += weight
	now.squares += weight * weight
	if t.sampled++; t.sampled >= manySamples {
		t.sampled = 0
		t.every.Store(min(maxEvery, 2*t.every.Load()))
	}
}

// identity is room for a key as sketches have it.
type identity [2 + MaxNameBytes + 1]byte

// of combines database and name into a key: two bytes, then the name, cut if long. A cut name ends in a mark
// with a hash of the whole, to tell equal beginnings apart, and is a byte longer than any whole one, so it
// cannot equal a name that spells a mark.
func (in *identity) of(seed maphash.Seed, db uint16, name []byte) []byte {
	key := binary.BigEndian.AppendUint16(in[:0], db)
	if len(name) <= MaxNameBytes {
		return append(key, name...)
	}
	var mark [markBytes]byte
	m := append(mark[:0], "... (#"...)
	m = strconv.AppendUint(m, maphash.Bytes(seed, name), 16)
	m = append(m, ", "...)
	m = strconv.AppendInt(m, int64(len(name)), 10)
	m = append(m, " bytes)"...)
	return append(append(append(key, name[:MaxNameBytes-len(m)]...), m...), 0)
}

// nameOf returns the name in a key of an identity, and whether it is cut.
func nameOf(key string) (name string, cut bool) {
	if name = key[2:]; len(name) > MaxNameBytes {
		return name[:MaxNameBytes], true
	}
	return name, false
}

const markBytes = 64 // exceeds any mark

// Top returns up to n keys of a ranking, hottest first, whose rate is sufficiently certain. With equal rates
// there are none.
func (t *Tracker) Top(ranking Ranking, nowNs int64, n int) []Entry {
	certain := slices.DeleteFunc(t.estimates(ranking, nowNs, Counters), func(e Entry) bool { return !e.certain() })
	return certain[:min(n, len(certain))]
}

// minCallsPerSecond is the lowest rate shown as more than 0.00.
const minCallsPerSecond = 0.005

// certain reports whether the error is at most a quarter of the rate. A key that has just taken over a
// counter has almost only error; with a laxer bound, chance would pick some of a million keys.
func (e *Entry) certain() bool {
	return e.CallsPerSecond >= 4*e.Error && e.CallsPerSecond >= minCallsPerSecond
}

// estimates returns up to n keys of a ranking by count.
func (t *Tracker) estimates(ranking Ranking, nowNs int64, n int) []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advanceLocked(nowNs)
	// A rate over less than an epoch would be a guess.
	windowSec := max(t.windowNs+float64(nowNs-t.epochNs), float64(epoch)) / float64(time.Second)
	total := t.totals[ranking]
	variance := 0.0 // added by sampling, per request
	if t.totals[Requested] > 0 {
		variance = t.squares/t.totals[Requested] - 1
	}
	recently := t.recentVarianceLocked()
	counts := t.sketches[ranking].Top(n)
	entries := make([]Entry, 0, len(counts))
	for _, c := range counts {
		if c.Count < forgotten {
			break
		}
		name, cut := nameOf(c.Key)
		const recentSec = recentEpochs * float64(epoch) / float64(time.Second)
		recent, recentError := c.Recent/recentSec, 2*math.Sqrt(c.Recent*recently)/recentSec
		entries = append(entries, Entry{
			DB:             binary.BigEndian.Uint16([]byte(c.Key[:2])),
			Name:           name,
			Cut:            cut,
			CallsPerSecond: c.Count / windowSec,
			Error:          (c.Overcount + 2*math.Sqrt(max(0, c.Count*variance))) / windowSec,
			Recent:         recent,
			RecentError:    recentError,
			IsRecent:       c.IsCounted && recent >= 4*recentError,
			Share:          c.Count / total,
			Terms:          c.Terms,
		})
	}
	return entries
}

// recentVarianceLocked returns the variance that sampling adds per request in the last complete epochs.
func (t *Tracker) recentVarianceLocked() float64 {
	var all sums
	for slot, s := range t.recent {
		if slot != t.sketches[Requested].slot {
			all.weights += s.weights
			all.squares += s.squares
		}
	}
	if all.weights == 0 {
		return 0
	}
	return max(0, all.squares/all.weights-1)
}

// Sampler picks requests for a Tracker, one in `every` on average, with unpredictable gaps, so that no
// pattern escapes. The zero Sampler is ready.
type Sampler struct {
	left  int      // requests until the next pick
	every int      // average distance of picks, and the weight of a pick
	gaps  rand.PCG // draws the distances
}

// Skip counts n requests and reports whether none is picked. If one is, pass them to Tracker.Note.
func (s *Sampler) Skip(n int) bool {
	s.left -= n
	return s.left >= 0
}

// begin gives a new sampler of the tracker its first gap, which includes the n requests just counted.
func (s *Sampler) begin(t *Tracker, n int) {
	if s.every == 0 {
		s.gaps.Seed(t.gaps, t.samplers.Add(1))
		s.left = -n - 1
		s.advance(int(t.every.Load()))
	}
}

// next returns the index of the next pick among the last n requests, or n.
func (s *Sampler) next(n int) int {
	return n + min(s.left, 0)
}

// advance picks the request after that of next. The gap is random, from 1 to 2*every-1.
func (s *Sampler) advance(every int) {
	s.every = every
	s.left += 1 + int(s.gaps.Uint64()%uint64(2*every-1))
}
