package door

import (
	"sync"
	"time"

	"cellserver/internal/decide/histogram"
)

// Outcome is how a request ended, for counters.
type Outcome uint8

// Outcomes:
const (
	Allowed Outcome = iota // or anything else that was done
	Limited
	Refused // the request's own fault: arguments, rights, token
	Failed  // the server's: loading, the disk, the store, memory
	outcomes
)

func Outcomes() []Outcome { return []Outcome{Allowed, Limited, Refused, Failed} }

func (o Outcome) String() string {
	return [...]string{"allowed", "limited", "refused", "failed"}[o]
}

// Stats counts the requests of a door. It is safe for concurrent use.
type Stats struct {
	scale *histogram.Scale
	since time.Time

	mu        sync.Mutex // rank 90: guards all below
	durations histogram.Durations
	counts    [outcomes]uint64
}

// Counts is a copy of Stats.
type Counts struct {
	counts    [outcomes]uint64
	Durations histogram.Durations
	Since     time.Time
}

// Of returns the number of requests of an outcome.
func (c *Counts) Of(o Outcome) uint64 { return c.counts[o] }

func NewStats() *Stats {
	scale := histogram.NewScale()
	return &Stats{scale: scale, since: time.Now(), durations: scale.NewDurations()}
}

// Count counts a request that took ns nanoseconds.
func (s *Stats) Count(o Outcome, ns int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[o]++
	s.durations.Observe(ns, 1)
}

func (s *Stats) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Counts{counts: s.counts, Durations: s.scale.NewDurations(), Since: s.since}
	c.Durations.Add(s.durations)
	return c
}
