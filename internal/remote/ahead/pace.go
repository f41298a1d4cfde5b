package ahead

import (
	"time"

	"cellserver/internal/funnel"
)

// pace is how many units a key's leases have. They double while a lease is over, by use or because its slots have begun, before its
// time is; they shrink to what was used while it was not. When the server has room for fewer, or nothing is gained, the
// key is asked for plainly for a while.
type pace struct {
	units        int64 // of the next lease
	plainUntilNs int64 // nothing is asked for ahead

	// Of the present lease:
	begun   bool
	sinceNs int64
	used    int64
	expired bool // some of it was not needed in its time

	cold bool // so little was used that there is to be no other
}

// most is how many units a lease of a limit may have.
func (c *Config) most(l funnel.Limit) int64 { return min(c.MaxUnits, l.Capacity()/capacityShare) }

// slowest is the pace that a key begins with.
func (c *Config) slowest(l funnel.Limit) pace { return pace{units: min(firstUnits, c.most(l))} }

// begin says that a lease has units since a time, if it had none.
func (p *pace) begin(sinceNs int64) {
	if !p.begun {
		p.begun, p.sinceNs, p.used, p.expired = true, sinceNs, 0, false
	}
}

// partial says whether less was granted than asked for.
func (p *pace) partial(c *Config, less bool, askedNs int64) {
	if less {
		p.units = max(p.units/2, 2)
		p.plainUntilNs = askedNs + int64(c.MaxTime)
	}
}

// ended sets the pace by a lease of which nothing is left.
func (e *lease) ended(c *Config, localNs int64) {
	if !e.begun || e.open > 0 {
		return
	}
	e.begun = false
	most := c.most(e.limit)
	switch lived := localNs - e.sinceNs; {
	case e.expired || lived >= int64(c.MaxTime):
		e.units = min(max(e.used+e.used/4, 2), e.units)
		e.cold = e.used < c.fewest(lived)
	case e.units < most:
		e.units = min(2*e.units, most)
	case e.used < 2: // the slots begin sooner than calls come
		e.plainUntilNs = localNs + 10*int64(c.MaxTime)
	}
}

// mayAsk reports whether it is time for another lease. One is under way until its reply comes, or is given up.
func (e *lease) mayAsk(c *Config, localNs int64) bool {
	underWay := e.ask.Units > 0 && localNs-e.askedNs < int64(c.MaxTime)
	return !underWay && !e.cold && localNs >= e.plainUntilNs && len(e.runs) < maxRuns && e.open <= e.units/2
}

// idle reports whether nothing is left of a lease, and nobody has needed it for a while.
func (e *lease) idle(c *Config, localNs int64) bool {
	return e.open == 0 && (e.cold || localNs-e.usedNs >= int64(c.MaxTime))
}

// fewest is how many units have to be used in a time for a key to have more leases: at a quarter of the rate from which on it has
// them.
func (c *Config) fewest(ns int64) int64 {
	return int64(float64(c.StartAbove) / 4 * float64(ns) / float64(time.Second))
}
