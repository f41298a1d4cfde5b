package load

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// Keys selects the keys of the requests: numbers below Count (for Sequential starting at From), in twelve
// digits.
type Keys struct {
	Dist  string  // Uniform, Zipf, Hot or Sequential
	Count int     // number of different keys
	From  int     // the first key; only for Sequential
	Skew  float64 // Zipf's s, above 1; 0 for DefaultSkew
}

// The distributions of keys.
const (
	Uniform    = "uniform"
	Zipf       = "zipf"
	Hot        = "hot"        // one key
	Sequential = "sequential" // each in turn, to fill a server
)

// DefaultSkew is close to that of cache traces, and just above the minimum of the sample generator.
const DefaultSkew = 1.1

const maxKeys = 1_000_000_000_000 // the largest number of twelve-digit keys

func (k Keys) check() error {
	switch k.Dist {
	case Uniform, Zipf, Hot, Sequential:
	default:
		return fmt.Errorf("load: unknown distribution %q; choose uniform, zipf, hot or sequential", k.Dist)
	}
	if k.Count < 1 || k.From < 0 || k.From+k.Count > maxKeys {
		return fmt.Errorf("load: the number of keys must be from 1 to %d, got %d", maxKeys, k.Count)
	}
	if k.Dist == Zipf && k.Skew != 0 && k.Skew <= 1 {
		return fmt.Errorf("load: zipf's s must be above 1, got %g", k.Skew)
	}
	return nil
}

// sampler returns one key after the other. Each thread has its own.
type sampler interface{ next() uint64 }

// sampler returns the sampler of one of several threads.
func (k Keys) sampler(thread, threads int) sampler {
	pcg := rand.NewPCG(uint64(thread)+1, 0x9e3779b97f4a7c15)
	switch k.Dist {
	case Zipf:
		return newZipf(k, pcg)
	case Hot:
		return hot{}
	case Sequential:
		first := k.Count / threads * thread
		return &sequence{first: uint64(k.From), count: uint64(k.Count), at: uint64(first)}
	default:
		return &uniform{pcg: pcg, count: uint64(k.Count)}
	}
}

type uniform struct {
	pcg   *rand.PCG
	count uint64
}

func (u *uniform) next() uint64 {
	high, _ := bits.Mul64(u.pcg.Uint64(), u.count)
	return high
}

type hot struct{}

func (hot) next() uint64 { return 0 }

type sequence struct{ first, count, at uint64 }

func (s *sequence) next() uint64 {
	key := s.first + s.at
	if s.at++; s.at == s.count {
		s.at = 0
	}
	return key
}

// zipf repeats samples drawn in advance, because drawing one costs more than sending a request.
type zipf struct {
	keys []uint64
	at   int
}

const zipfSamples = 1 << 20

func newZipf(k Keys, source rand.Source) *zipf {
	skew := k.Skew
	if skew == 0 {
		skew = DefaultSkew
	}
	draw := rand.NewZipf(rand.New(source), skew, 1, uint64(k.Count-1))
	z := &zipf{keys: make([]uint64, zipfSamples)}
	for i := range z.keys {
		z.keys[i] = draw.Uint64()
	}
	return z
}

func (z *zipf) next() uint64 {
	key := z.keys[z.at]
	if z.at++; z.at == len(z.keys) {
		z.at = 0
	}
	return key
}
