package topkeys

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/limiter"
)

// Ranking is which requests of a key count.
type Ranking uint8

// The rankings:
const (
	Requested Ranking = iota // all requests
	Limited                  // only those that were limited
	rankings
)

// String returns the ranking's name in metric labels and in CL.TOP, which predates the terms used in the code.
func (r Ranking) String() string { return [rankings]string{"asked", "denied"}[r] }

const (
	// HalfLife is the time after which a request counts half.
	HalfLife = time.Minute

	// Counters is how many keys each ranking counts. A key with more than 1/Counters of all requests is never missed,
	// and the sketch contributes at most 1/Counters of them to an Entry's error.
	Counters = 1024

	// MaxNameBytes is the longest name that is kept whole.
	MaxNameBytes = 128

	keptKeyBytes = 48 // allocated per key in advance; longer keys allocate when first counted

	// Counts decay once an epoch. A request is forgotten after ten half-lives.
	epoch     = time.Second
	forgotten = 1.0 / (1 << 10)

	// The sampling rate follows the load: every request while there are few, and down to one in maxEvery, so that each
	// epoch takes between fewSamples and manySamples. Each sample costs some cache misses: the counters are rarely cached.
	maxEvery    = 4096
	fewSamples  = 1 << 9
	manySamples = 1 << 11
)

// Entry is a key and how often it is requested.
type Entry struct {
	DB   uint16
	Name string
	// CallsPerSecond is an average over the last minutes, weighted towards the recent ones.
	CallsPerSecond float64
	// Error bounds the error of CallsPerSecond: the sketch's overcount plus two standard deviations of the sampling.
	Error float64
	// Recent is the calls per second of the last ten seconds, with the same kind of bound. IsRecent is
	// false for a key that has not been counted for so long, or of which too few calls were sampled.
	Recent, RecentError float64
	IsRecent            bool

	Share float64       // of all requests in the ranking, from 0 to 1
	Cut   bool          // the key is longer than MaxNameBytes: Name is its beginning and a mark
	Terms limiter.Terms // of the last request for it that was counted
}

// Request is what a Tracker counts of a request.
type Request struct {
	DB      uint16
	Name    []byte
	Limited bool
	Terms   limiter.Terms
}

// Tracker finds the hottest keys. Requests come to it through Samplers.
type Tracker struct {
	every atomic.Int32 // on average one request in this many is picked
	seed  maphash.Seed

	mu       sync.Mutex // guards all below
	sketches [rankings]*Sketch
	totals   [rankings]float64
	squares  float64 // the variance that sampling adds per request: the weights, averaged over requests
	started  bool
	epochNs  int64                  // start of the current epoch
	windowNs float64                // decayed length of all earlier epochs
	recent   [recentEpochs + 1]sums // of the epochs; the sketches know which slot is the current one's
	sampled  int                    // samples taken since every last changed or the epoch started
	key      [2 + MaxNameBytes + 1]byte
}

// sums are an epoch's weights, and their squares, of all requests.
type sums struct{ weights, squares float64 }

// New returns an empty Tracker.
func New() *Tracker {
	t := &Tracker{seed: maphash.MakeSeed()}
	t.every.Store(1)
	for k := range t.sketches {
		t.sketches[k] = NewSketch(Counters, keptKeyBytes)
	}
	return t
}

// Note counts the requests that the sampler picks among the n it has just skipped over. If another goroutine holds the
// tracker they are dropped: no request ever waits here.
func (t *Tracker) Note(s *Sampler, nowNs int64, n int, request func(i int) Request) {
	locked := t.mu.TryLock()
	if locked {
		defer t.mu.Unlock()
		t.advanceLocked(nowNs)
	}
	s.begin(n, int(t.every.Load()))
	for i := s.next(n); i < n; i = s.next(n) {
		if locked {
			r := request(i)
			t.addLocked(&r, float64(s.every))
		}
		s.advance(int(t.every.Load()))
	}
}

// advanceLocked moves to the epoch that nowNs is in.
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
	quiet := over - 1 // epochs
	if t.sampled < fewSamples {
		quiet++
	}
	t.every.Store(max(1, t.every.Load()>>min(quiet, 31)))
	t.sampled = 0
}

// decay is the factor by which a count shrinks in the given number of epochs.
func decay(epochs int64) float64 {
	return math.Exp2(-float64(epochs) * float64(epoch) / float64(HalfLife))
}

// sumOfDecays is the weight, in epochs, of the given number of epochs that have just ended: each has decayed at its own
// end and at those after it.
func sumOfDecays(epochs int64) float64 {
	one := decay(1)
	return one * (1 - decay(epochs)) / (1 - one)
}

func (t *Tracker) addLocked(r *Request, weight float64) {
	key := t.identifyLocked(r.DB, r.Name)
	t.sketches[Requested].addBy(key, weight, r.Terms)
	t.totals[Requested] += weight
	if r.Limited {
		t.sketches[Limited].addBy(key, weight, r.Terms)
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

// identifyLocked combines a database and a name into one key: the number in two bytes, then the name, cut if it is long.
// The mark of a cut name contains a hash of the whole, which keeps names with the same beginning apart. A cut name is one
// byte longer than any whole one, so it cannot collide with a name that happens to spell a mark.
func (t *Tracker) identifyLocked(db uint16, name []byte) []byte {
	key := binary.BigEndian.AppendUint16(t.key[:0], db)
	if len(name) <= MaxNameBytes {
		return append(key, name...)
	}
	var mark [markBytes]byte
	m := append(mark[:0], "... (#"...)
	m = strconv.AppendUint(m, maphash.Bytes(t.seed, name), 16)
	m = append(m, ", "...)
	m = strconv.AppendInt(m, int64(len(name)), 10)
	m = append(m, " bytes)"...)
	return append(append(append(key, name[:MaxNameBytes-len(m)]...), m...), 0)
}

const markBytes = 64 // longer than any mark

// Top returns up to n keys of a ranking, hottest first: those whose rate is known well enough to be told. If all keys are
// requested alike, none is.
func (t *Tracker) Top(ranking Ranking, nowNs int64, n int) []Entry {
	certain := slices.DeleteFunc(t.estimates(ranking, nowNs, Counters), func(e Entry) bool { return !e.certain() })
	return certain[:min(n, len(certain))]
}

// leastCallsPerSecond is what is shown as more than 0.00.
const leastCallsPerSecond = 0.005

// certain reports whether the error is at most a quarter of the rate. That of a key that took over a counter a moment ago
// is almost all of it; with less than a quarter, chance would still pick some of a million keys.
func (e *Entry) certain() bool {
	return e.CallsPerSecond >= 4*e.Error && e.CallsPerSecond >= leastCallsPerSecond
}

// estimates returns up to n keys of a ranking, by what was counted for them.
func (t *Tracker) estimates(ranking Ranking, nowNs int64, n int) []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advanceLocked(nowNs)
	// A rate over less than an epoch would be a guess.
	windowSec := max(t.windowNs+float64(nowNs-t.epochNs), float64(epoch)) / float64(time.Second)
	total := t.totals[ranking]
	variance := 0.0 // that sampling adds per request
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
		name := c.Key[2:]
		cut := len(name) > MaxNameBytes
		if cut {
			name = name[:MaxNameBytes]
		}
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

// recentVarianceLocked returns the variance that sampling adds per request to what is counted of the last
// complete epochs.
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
