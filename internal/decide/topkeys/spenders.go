package topkeys

import (
	"encoding/binary"
	"hash/maphash"
	"sync"

	"cellserver/internal/limiter"
)

// MaxSpenders is the number of keys counted by Spenders. A key with more than 1/MaxSpenders of all units is
// never missed.
const MaxSpenders = 32

// Spenders finds the keys of a limit that have spent most. Its counts do not decay. It is safe for concurrent
// use; the zero Spenders has counted nothing.
type Spenders struct {
	mu      sync.Mutex // rank 90: guards all below
	seed    maphash.Seed
	sketch  *Sketch // nil before the first units
	sinceNs int64
	key     identity
}

// Spender is a key with its units.
type Spender struct {
	DB    uint16
	Name  string
	Cut   bool  // Name is the beginning of a longer one, and a mark
	Units int64 // spent
	Error int64 // upper bound of Units' excess
}

// Add counts units that a key has spent.
func (s *Spenders) Add(nowNs int64, db uint16, name []byte, units int64) {
	if units <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sketch == nil {
		s.seed, s.sketch, s.sinceNs = maphash.MakeSeed(), NewSketch(MaxSpenders, 0), nowNs
	}
	s.sketch.Add(s.key.of(s.seed, db, name), float64(units), limiter.Terms{})
}

// Top returns those whose units are sufficiently certain, the most first, and since when they are counted.
// With many equal ones there are none.
func (s *Spenders) Top() (all []Spender, sinceNs int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sketch == nil {
		return nil, 0
	}
	for _, c := range s.sketch.Top(MaxSpenders) {
		if c.Count < 4*c.Overcount { // as of a hot key
			continue
		}
		name, cut := nameOf(c.Key)
		all = append(all, Spender{binary.BigEndian.Uint16([]byte(c.Key)), name, cut, int64(c.Count), int64(c.Overcount)})
	}
	return all, s.sinceNs
}
