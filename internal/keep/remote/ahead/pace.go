package ahead

import (
	"time"

	"cellserver/internal/funnel"
)

const (
	capacityShare = 8    // one of so many parts of a capacity is the most that is taken at a time
	scarceShare   = 4    // a funnel that is fuller than one of so many parts has no units to lose
	firstUnits    = 8    // that a key's first lease has
	enoughUnits   = 512  // used of a lease: more would spare little,
	manyUnits     = 4096 // and beyond this next to nothing;
	manyShare     = 64   // more than enough have only leases of a capacity of which that is one of so many parts
)

// pace is how many units a key's leases have. They double while a lease is used up before its time is over. If its slots begin
// before they are used, they double as well while the funnel is nearly empty, as nobody misses what is lost then; else
// they shrink to what was used. When the server has room for fewer, or nothing is gained, the key is asked for plainly for a while.
type pace struct {
	units        int64 // of the next lease
	plainUntilNs int64 // nothing is asked for ahead
	cold         bool  // so little was used that there is to be no other

	// Of the present lease:
	sinceNs int64
	taken   int64 // 0 if there is none
	used    int64
	scarce  bool
	expired bool // some of it was not needed in its time
}

// most is how many units a lease of a limit may have.
func (c *Config) most(l funnel.Limit) int64 { return min(c.MaxUnits, l.Capacity()/capacityShare) }

// enough is how many units used of a lease of a limit are so many that the next need not have more.
func enough(l funnel.Limit) int64 { return max(enoughUnits, min(manyUnits, l.Capacity()/manyShare)) }

// slowest is the pace that a key begins with.
func (c *Config) slowest(l funnel.Limit) pace { return pace{units: min(firstUnits, c.most(l))} }

// began says that units were taken.
func (p *pace) began(sinceNs, units int64, scarce bool) {
	if p.taken == 0 {
		p.sinceNs, p.used, p.scarce, p.expired = sinceNs, 0, false, false
	}
	p.taken += units
	p.scarce = p.scarce || scarce
}

// partial says whether less was granted than asked for.
func (p *pace) partial(c *Config, less bool, askedNs int64) {
	if less {
		p.units = max(p.units/2, 2)
		p.plainUntilNs = askedNs + int64(c.MaxTime)
	}
}

// over sets the pace by a lease of which nothing is left.
func (p *pace) over(c *Config, most, enough, localNs int64) {
	lived := localNs - p.sinceNs
	switch {
	case p.expired || lived >= int64(c.MaxTime):
		p.shrink()
		p.cold = p.used < c.fewest(lived)
	case p.scarce && p.used < p.taken*3/4:
		p.shrink()
	case p.used >= enough:
	case p.units < most:
		p.units = min(2*p.units, most)
	case p.used < 2: // the slots begin sooner than calls come
		p.plainUntilNs = localNs + 10*int64(c.MaxTime)
	}
	p.taken = 0
}

// shrink makes the next lease what was used of this one, and a little more.
func (p *pace) shrink() { p.units = min(max(p.used+p.used/4, 2), p.units) }

// fewest is how many units have to be used in a time for a key to have more leases: at a quarter of the rate from which on it has
// them.
func (c *Config) fewest(ns int64) int64 {
	return int64(float64(c.StartAbove) / 4 * float64(ns) / float64(time.Second))
}
