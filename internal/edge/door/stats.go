package door

import (
	"maps"
	"sync"

	"cellserver/internal/decide/histogram"
)

// Outcome is how a request ended, for counters.
type Outcome string

// Outcomes:
const (
	Allowed Outcome = "allowed" // or anything else that was done
	Limited Outcome = "limited"
	Refused Outcome = "refused" // the request's own fault: arguments, rights, token
	Failed  Outcome = "failed"  // the server's: loading, the disk, the store, memory
)

// Stats counts the requests of a door. It is safe for concurrent use.
type Stats struct {
	mu        sync.Mutex // guards all below
	scale     *histogram.Scale
	durations *histogram.Durations
	outcomes  map[Outcome]uint64
}

// Counts is a copy of Stats.
type Counts struct {
	Outcomes  map[Outcome]uint64
	Durations histogram.Snapshot
}

func newStats() *Stats {
	scale := histogram.NewScale()
	return &Stats{
		scale: scale, durations: scale.NewDurations(),
		outcomes: map[Outcome]uint64{Allowed: 0, Limited: 0, Refused: 0, Failed: 0},
	}
}

// Count counts a request that took ns nanoseconds.
func (s *Stats) Count(o Outcome, ns int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes[o]++
	s.durations.Observe(ns, 1)
}

// Counts returns the counts.
func (s *Stats) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Counts{Outcomes: maps.Clone(s.outcomes), Durations: s.scale.NewSnapshot()}
	c.Durations.Add(s.durations)
	return c
}

// OutcomeOf returns the outcome of an error reply by its code.
func OutcomeOf(code string) Outcome {
	switch code {
	case "LOADING", "READONLY", "STOREDOWN", "MISCONF", "OOM":
		return Failed
	default:
		return Refused
	}
}
