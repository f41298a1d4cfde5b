package store

import (
	"bytes"
	"sync"

	"cellserver/internal/limiter"
)

// HoldStats counts holds that nobody has settled.
type HoldStats struct {
	Returned uint64 // as their time was over
	Charged  uint64 // their units stayed charged when their time was over
	Dropped  uint64 // overdue ones beyond those that a key remembers
	Evicted  uint64 // with their keys, open or overdue
}

const (
	// mostHoldNames bounds the limits with counts of their own, mostHoldNameBytes their names: both exceed
	// those of defined limits. The others, as of restored keys, count under the empty name.
	mostHoldNames     = 2048
	mostHoldNameBytes = 64
)

// HoldCounts counts holds by limit, which is the part of a key's name before its first colon. It is safe for
// concurrent use; stores ask it only where holds have ended, so they share it between their parts.
type HoldCounts struct {
	mu sync.Mutex // rank 90: guards all below
	of map[string]*HoldStats
}

// Ended adds the holds of a key whose time was over.
func (c *HoldCounts) Ended(name []byte, e *limiter.Ended) {
	if *e != (limiter.Ended{}) {
		c.add(name, HoldStats{Returned: e.Returned, Charged: e.Charged, Dropped: e.Dropped})
	}
}

// Evicted adds the holds of an evicted key.
func (c *HoldCounts) Evicted(name []byte, holds int) {
	if holds > 0 {
		c.add(name, HoldStats{Evicted: uint64(holds)})
	}
}

func (c *HoldCounts) add(name []byte, more HoldStats) {
	name, _, _ = bytes.Cut(name, []byte{':'})
	if len(name) > mostHoldNameBytes {
		name = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of[string(name)]
	if of == nil && len(c.of) >= mostHoldNames {
		name = nil
		of = c.of[""]
	}
	if of == nil {
		if c.of == nil {
			c.of = map[string]*HoldStats{}
		}
		of = &HoldStats{}
		c.of[string(name)] = of
	}
	of.add(&more)
}

func (h *HoldStats) add(more *HoldStats) {
	h.Returned += more.Returned
	h.Charged += more.Charged
	h.Dropped += more.Dropped
	h.Evicted += more.Evicted
}

// AddTo adds the counts to a store's figures.
func (c *HoldCounts) AddTo(st *Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, of := range c.of {
		if st.Holds == nil {
			st.Holds = map[string]HoldStats{}
		}
		sum := st.Holds[name]
		sum.add(of)
		st.Holds[name] = sum
	}
}
