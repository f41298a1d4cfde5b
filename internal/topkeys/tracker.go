package topkeys

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Kind chooses between the requests that are counted.
type Kind uint8

// Of the requests there are:
const (
	Asked  Kind = iota // all
	Denied             // those that were denied
	kinds
)

// String returns the kind in lower case.
func (k Kind) String() string { return [kinds]string{"asked", "denied"}[k] }

const (
	// HalfLife is after what time a request counts for half.
	HalfLife = time.Minute

	// Counters is how many keys of each kind are counted. A key with more than this part of all requests is never
	// missed, and the sketch's part of an Entry's error is at most this part of them.
	Counters = 1024

	// MaxNameBytes is up to what length a name is kept whole.
	MaxNameBytes = 128

	keptKeyBytes = 48 // for which memory is there from the start; longer keys get it when they come

	// Counts decay once an epoch. What is left of a single request after ten half-lives is forgotten.
	epoch     = time.Second
	forgotten = 1.0 / (1 << 10)

	// The sampling follows the load: every request while they are few, and one in maxEvery at most, so that between
	// fewSamples and manySamples are taken each epoch: each is some cache misses, and the counters are seldom in a cache.
	maxEvery    = 4096
	fewSamples  = 1 << 9
	manySamples = 1 << 11
)

// Entry is a key and how often it is asked for.
type Entry struct {
	DB   uint16
	Name string
	// CallsPerSecond is an average over the last minutes, in which the recent ones count more.
	CallsPerSecond float64
	// Error is by how much CallsPerSecond may be wrong: by what the sketch may have counted too high, and by twice the
	// standard deviation of the sampling.
	Error float64
	Share float64 // of all requests of the kind, from 0 to 1
	Cut   bool    // the key's name is longer than MaxNameBytes, and Name is its beginning and a mark
}

// Tracker finds the hottest keys. Requests reach it through Samplers.
type Tracker struct {
	every atomic.Int32 // one in so many requests is to be picked
	seed  maphash.Seed

	mu       sync.Mutex // guards all below
	sketches [kinds]*Sketch
	totals   [kinds]float64
	squares  float64 // the variance that the sampling gives a request: its weight, averaged by requests
	began    bool
	epochNs  int64   // when the epoch began
	windowNs float64 // what the epochs before count for together
	samples  int     // taken since every was changed, or in this epoch
	key      [2 + MaxNameBytes + 1]byte
}

// New returns a Tracker that has seen nothing.
func New() *Tracker {
	t := &Tracker{seed: maphash.MakeSeed()}
	t.every.Store(1)
	for k := range t.sketches {
		t.sketches[k] = NewSketch(Counters, keptKeyBytes)
	}
	return t
}

// Note takes the requests that the sampler picks among the n that it has just counted. While another goroutine is at
// it they are dropped: no request ever waits here.
func (t *Tracker) Note(s *Sampler, nowNs int64, n int, request func(i int) (db uint16, name []byte, denied bool)) {
	locked := t.mu.TryLock()
	if locked {
		defer t.mu.Unlock()
		t.goToLocked(nowNs)
	}
	s.begin(n, int(t.every.Load()))
	for i := s.next(n); i < n; i = s.next(n) {
		if locked {
			db, name, denied := request(i)
			t.addLocked(db, name, denied, float64(s.every))
		}
		s.goOn(int(t.every.Load()))
	}
}

// goToLocked ends the epochs that are over.
func (t *Tracker) goToLocked(nowNs int64) {
	if !t.began {
		t.began, t.epochNs = true, nowNs
	}
	over := (nowNs - t.epochNs) / int64(epoch)
	if over <= 0 {
		return
	}
	by := decay(over)
	t.windowNs = t.windowNs*by + float64(epoch)*sumOfDecays(over)
	t.epochNs += over * int64(epoch)
	for k := range t.sketches {
		t.sketches[k].Scale(by)
		if t.totals[k] *= by; t.totals[k] > 0 && t.totals[k] < forgotten {
			t.sketches[k], t.totals[k] = NewSketch(Counters, keptKeyBytes), 0
		}
	}
	t.squares *= by
	quiet := over - 1 // epochs
	if t.samples < fewSamples {
		quiet++
	}
	t.every.Store(max(1, t.every.Load()>>min(quiet, 31)))
	t.samples = 0
}

// decay is what is left of a count after so many epochs.
func decay(epochs int64) float64 {
	return math.Exp2(-float64(epochs) * float64(epoch) / float64(HalfLife))
}

// sumOfDecays is what so many epochs that have just ended count for: each decays with its own end, too.
func sumOfDecays(epochs int64) float64 {
	one := decay(1)
	return one * (1 - decay(epochs)) / (1 - one)
}

func (t *Tracker) addLocked(db uint16, name []byte, denied bool, weight float64) {
	key := t.identifyLocked(db, name)
	t.sketches[Asked].Add(key, weight)
	t.totals[Asked] += weight
	if denied {
		t.sketches[Denied].Add(key, weight)
		t.totals[Denied] += weight
	}
	t.squares += weight * weight
	if t.samples++; t.samples >= manySamples {
		t.samples = 0
		t.every.Store(min(maxEvery, 2*t.every.Load()))
	}
}

// identifyLocked makes one key of a database and a name: its number's two bytes and the name, which is cut if it is
// long. The mark of a cut has a hash of the whole, so that names that begin alike stay apart; and a cut name has a byte
// more than any whole one, so that it is not taken for a name that spells a mark.
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

const markBytes = 64 // more than any mark has

// Top returns up to n keys of a kind, the hottest first.
func (t *Tracker) Top(kind Kind, nowNs int64, n int) []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.goToLocked(nowNs)
	// A rate over less than an epoch would be a guess.
	windowSec := max(t.windowNs+float64(nowNs-t.epochNs), float64(epoch)) / float64(time.Second)
	total := t.totals[kind]
	variance := 0.0 // that the sampling gives a request
	if t.totals[Asked] > 0 {
		variance = t.squares/t.totals[Asked] - 1
	}
	counts := t.sketches[kind].Top(n)
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
		entries = append(entries, Entry{
			DB:             binary.BigEndian.Uint16([]byte(c.Key[:2])),
			Name:           name,
			Cut:            cut,
			CallsPerSecond: c.Count / windowSec,
			Error:          (c.TooHigh + 2*math.Sqrt(max(0, c.Count*variance))) / windowSec,
			Share:          c.Count / total,
		})
	}
	return entries
}
