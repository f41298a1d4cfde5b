package ahead

import "cellserver/internal/funnel"

// maxRuns is in how many pieces a lease's slots may lie.
const maxRuns = 4

// run is slots one behind the other that nobody has used.
type run struct {
	fromNs  int64 // where the first begins, by the server's clock
	units   int64
	untilNs int64 // they are leased, by the local clock
}

// lease is what is taken ahead of a key, and how much to take next. Its part's lock guards it.
type lease struct {
	name  string
	limit funnel.Limit

	runs  []run // in the order of their slots; none is empty
	open  int64 // units in them
	endNs int64 // of the last slot: where the TAT was when it was taken
	back  run   // slots up to endNs whose time is over

	ask     Ask // the one under way, if it has units
	askedNs int64

	pace
	usedNs int64 // when a call of its limit was last seen
}

// drop loses the slots that have begun, and those whose time is over.
func (e *lease) drop(p *part, latestServerNs, localNs int64) {
	intervalNs := e.limit.IntervalNs()
	for len(e.runs) > 0 && e.runs[0].fromNs < latestServerNs {
		r := &e.runs[0]
		begun := min((funnel.Since(r.fromNs, latestServerNs)-1)/intervalNs+1, uint64(r.units))
		e.cutFront(int64(begun))
		p.stats.Lost += begun
	}
	e.expire(p, localNs)
}

// use takes the units whose slots begin first.
func (e *lease) use(quantity int64) {
	e.used += quantity
	for quantity > 0 {
		n := min(quantity, e.runs[0].units)
		e.cutFront(n)
		quantity -= n
	}
}

// cutFront takes units off the first run.
func (e *lease) cutFront(units int64) {
	r := &e.runs[0]
	r.units -= units
	r.fromNs = funnel.After(r.fromNs, e.limit.DebitNs(units))
	e.open -= units
	if r.units == 0 {
		e.runs = append(e.runs[:0], e.runs[1:]...)
	}
}

// expire takes the slots whose time is over out of use.
func (e *lease) expire(p *part, localNs int64) {
	for len(e.runs) > 0 && e.runs[0].untilNs <= localNs {
		e.expireFirst(p)
	}
}

func (e *lease) expireAll(p *part) {
	for len(e.runs) > 0 {
		e.expireFirst(p)
	}
}

// expireFirst keeps the last run to be given back. Behind any other there are units that were used.
func (e *lease) expireFirst(p *part) {
	r := e.runs[0]
	if len(e.runs) == 1 {
		e.back = r
	} else {
		p.stats.Lost += uint64(r.units)
	}
	e.runs = append(e.runs[:0], e.runs[1:]...)
	e.open -= r.units
	e.expired = true
}

// cut returns what can be given back.
func (e *lease) cut() (c Cut, ok bool) {
	if e.back.units == 0 {
		return c, false
	}
	c = Cut{Name: e.name, EndNs: e.endNs, ToNs: e.back.fromNs}
	e.endNs, e.back = e.back.fromNs, run{}
	return c, true
}

// granted adds the slots from a time on.
func (e *lease) granted(p *part, c *Config, serverNs, fromNs, units int64) {
	e.partial(c, units < e.ask.Units, e.askedNs)
	e.ask = Ask{}
	if units <= 0 {
		return
	}
	e.trim(p, fromNs)
	p.stats.Lost += uint64(e.back.units) // the TAT has gone on, so they cannot be given back
	e.back = run{}
	e.runs = append(e.runs, run{fromNs, units, e.askedNs + int64(c.MaxTime)})
	e.open += units
	e.endNs = funnel.After(fromNs, e.limit.DebitNs(units))
	e.began(e.askedNs, units, funnel.Since(serverNs, e.endNs) > e.limit.ToleranceNs()/scarceShare)
}

// trim drops the slots that end after the TAT was seen there: it was lowered, and others may have the same slots.
func (e *lease) trim(p *part, tatNs int64) {
	for len(e.runs) > 0 && e.endNs > tatNs {
		last := &e.runs[len(e.runs)-1]
		e.endNs = funnel.After(last.fromNs, e.limit.DebitNs(last.units))
		over := int64((funnel.Since(tatNs, e.endNs) + e.limit.IntervalNs() - 1) / e.limit.IntervalNs())
		over = min(over, last.units)
		last.units -= over
		e.open -= over
		p.stats.Lost += uint64(over)
		e.endNs -= int64(e.limit.DebitNs(over))
		if last.units > 0 {
			return
		}
		e.runs = e.runs[:len(e.runs)-1]
	}
}

// levelTAT is the TAT as if what is not used had not been taken.
func (e *lease) levelTAT() int64 { return funnel.Shift(e.endNs, -int64(e.limit.DebitNs(e.open))) }

// become makes the lease one of another limit, if its own is not used any more.
func (e *lease) become(l funnel.Limit, c *Config, localNs int64) bool {
	if e.open > 0 || e.ask.Units > 0 || localNs-e.usedNs < int64(c.MaxTime) {
		return false
	}
	*e = lease{name: e.name, limit: l, runs: e.runs, pace: c.slowest(l)}
	return true
}

// ended sets the pace for the next lease if nothing is left of this one.
func (e *lease) ended(c *Config, localNs int64) {
	if e.taken > 0 && e.open == 0 {
		e.over(c, c.most(e.limit), enough(e.limit), localNs)
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
