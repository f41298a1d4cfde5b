package cellserver

import (
	"fmt"
	"sync"
)

// counting has the units of holds that no server has, until it is told of them. Its zero value is empty.
type counting struct {
	mu    sync.Mutex // guards units
	units map[string]int64
}

func (u Use) name() string { return u.Limit + ":" + u.Key }

// take counts the units of all uses, or of none, at most so many of each key.
func (c *counting) take(most map[string]int64, uses []Use) (results []Result, allowed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	allowed = true
	for _, u := range uses {
		n, ok := most[u.Limit]
		if !ok {
			return nil, false, fmt.Errorf("LocalUnits has no limit %q", u.Limit)
		}
		has, known := c.units[u.name()]
		r := Result{Name: u.Limit, Limit: n, Remaining: max(0, n-has), RetryAfter: -1}
		r.Allowed = u.Units <= r.Remaining && (known || len(c.units) < maxLocalKeys)
		results = append(results, r)
		allowed = allowed && r.Allowed
	}
	if !allowed {
		return results, false, nil
	}
	for i, u := range uses {
		c.addLocked(u.name(), min(u.Units, mostUnits))
		results[i].Remaining -= u.Units
	}
	return results, true, nil
}

// mostUnits of a use count, so that no sum of what waits is too large.
const mostUnits = 1 << 48

// add counts other units in place of those of the same uses.
func (c *counting) add(from, to []Use) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, u := range to {
		c.addLocked(u.name(), min(u.Units, mostUnits)-min(from[i].Units, mostUnits))
	}
}

func (c *counting) addLocked(name string, n int64) {
	if c.units == nil {
		c.units = map[string]int64{}
	}
	if c.units[name] += n; c.units[name] == 0 {
		delete(c.units, name)
	}
}
