package observe

import (
	"slices"
	"sync"
)

// Latencies are LATENCY's records of durations above latency-monitor-threshold. It is safe for concurrent
// use.
type Latencies struct {
	mu     sync.Mutex // rank 90: guards events
	events map[string]*LatencyEvent
}

// latencySamples bounds an event's samples, as in Redis.
const latencySamples = 160

type LatencyEvent struct {
	Samples []LatencySample // oldest first
	WorstMs int64           // ever
}

// LatencySample is the longest duration in a second.
type LatencySample struct{ UnixSec, Ms int64 }

// SweepEvent is the sweep of expired keys, for which no command waits.
const SweepEvent = "sweep"

// add adds a sample and keeps the longest of each second.
func (l *Latencies) add(event string, sample LatencySample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.events[event]
	if v == nil {
		v = &LatencyEvent{}
		if l.events == nil {
			l.events = map[string]*LatencyEvent{}
		}
		l.events[event] = v
	}
	v.WorstMs = max(v.WorstMs, sample.Ms)
	if n := len(v.Samples); n > 0 && v.Samples[n-1].UnixSec == sample.UnixSec {
		v.Samples[n-1].Ms = max(v.Samples[n-1].Ms, sample.Ms)
		return
	}
	if len(v.Samples) == latencySamples {
		v.Samples = slices.Delete(v.Samples, 0, 1)
	}
	v.Samples = append(v.Samples, sample)
}

func (l *Latencies) All() map[string]LatencyEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]LatencyEvent, len(l.events))
	for name, v := range l.events {
		all[name] = LatencyEvent{slices.Clone(v.Samples), v.WorstMs}
	}
	return all
}

// Reset forgets the named events, or all, and returns their number.
func (l *Latencies) Reset(names []string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.events)
	if len(names) == 0 {
		clear(l.events)
	}
	for _, name := range names {
		delete(l.events, name)
	}
	return before - len(l.events)
}
