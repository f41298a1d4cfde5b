package command

import (
	"maps"
	"slices"
	"sync"
)

// latencies is LATENCY's record: of each event the times that reached latency-monitor-threshold. It is safe for
// concurrent use.
type latencies struct {
	mu     sync.Mutex // guards events
	events map[string]*latencyEvent
}

// latencySamples is how many of an event are kept, as in Redis.
const latencySamples = 160

type latencyEvent struct {
	samples []latencySample // the oldest first
	worstMs int64           // ever
}

type latencySample struct{ unixSec, ms int64 }

// SweepEvent is the sweep of expired keys, which no command waits for.
const SweepEvent = "sweep"

// NoteLatency tells LATENCY how long something took that is no command.
func (e *Engine) NoteLatency(event string, ns int64) { e.noteLatency(event, e.config.Now(), ns) }

func (e *Engine) noteLatency(event string, nowNs, ns int64) {
	if from := e.slow.latencyFromMs.Load(); from > 0 && ns/1_000_000 >= from {
		e.latencies.add(event, latencySample{unixSec: nowNs / 1e9, ms: ns / 1_000_000})
	}
}

// add keeps a sample; of a second it keeps the worst.
func (l *latencies) add(event string, sample latencySample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.events[event]
	if v == nil {
		v = &latencyEvent{}
		if l.events == nil {
			l.events = map[string]*latencyEvent{}
		}
		l.events[event] = v
	}
	v.worstMs = max(v.worstMs, sample.ms)
	if n := len(v.samples); n > 0 && v.samples[n-1].unixSec == sample.unixSec {
		v.samples[n-1].ms = max(v.samples[n-1].ms, sample.ms)
		return
	}
	if len(v.samples) == latencySamples {
		v.samples = slices.Delete(v.samples, 0, 1)
	}
	v.samples = append(v.samples, sample)
}

// all returns a copy of what is known, by event.
func (l *latencies) all() map[string]latencyEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]latencyEvent, len(l.events))
	for name, v := range l.events {
		all[name] = latencyEvent{slices.Clone(v.samples), v.worstMs}
	}
	return all
}

// reset forgets events, or all of them, and counts them.
func (l *latencies) reset(names []string) (n int) {
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

func latencyHistory(s *Session, args [][]byte) error {
	samples := s.engine.latencies.all()[string(args[2])].samples
	s.w.Array(len(samples))
	for _, sample := range samples {
		s.w.Array(2)
		s.w.Int(sample.unixSec)
		s.w.Int(sample.ms)
	}
	return nil
}

func latencyLatest(s *Session, _ [][]byte) error {
	all := s.engine.latencies.all()
	s.w.Array(len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := all[name]
		last := v.samples[len(v.samples)-1]
		s.w.Array(4)
		s.w.BulkString(name)
		s.w.Int(last.unixSec)
		s.w.Int(last.ms)
		s.w.Int(v.worstMs)
	}
	return nil
}

func latencyReset(s *Session, args [][]byte) error {
	var names []string
	for _, arg := range args[2:] {
		names = append(names, string(arg))
	}
	s.w.Int(int64(s.engine.latencies.reset(names)))
	return nil
}

// latencyHistogram is LATENCY HISTOGRAM [command ...]: of each command that was called, how many calls took up to
// how many microseconds.
func latencyHistogram(s *Session, args [][]byte) error {
	t, byTime := &s.engine.table, s.engine.byTime()
	var found []*row
	keep := func(r *row) {
		if calls, _ := byTime[r.id].cumulative(); calls > 0 && !slices.Contains(found, r) {
			found = append(found, r)
		}
	}
	if len(args) == 2 {
		t.each(keep)
	}
	for _, name := range args[2:] {
		if r := t.lookupShown(name); r != nil {
			keep(r)
			for _, sub := range r.subs {
				keep(sub)
			}
		}
	}
	s.w.Map(len(found))
	for _, r := range found {
		calls, buckets := byTime[r.id].cumulative()
		s.w.BulkString(r.fullName())
		s.w.Map(2)
		s.w.BulkString("calls")
		s.w.Int(calls)
		s.w.BulkString("histogram_usec")
		s.w.Map(len(buckets))
		for _, b := range buckets {
			s.w.Int(b.mostUs)
			s.w.Int(b.calls)
		}
	}
	return nil
}
