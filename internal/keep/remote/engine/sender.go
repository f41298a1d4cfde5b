package engine

import (
	"context"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"

	"cellserver/internal/keep/remote/prefilter"
	"cellserver/internal/keep/remote/servers"
)

type bounds struct {
	pipelines int // at once
	more      int // waiting keys for each pipeline under way before another begins
	calls     int // of a pipeline
	bytes     int // of names and values in a pipeline, beyond which no call is added
}

// The bounds for small values, and for values that are or may be large:
const (
	MaxPipelines  = 4
	MorePipelines = 128
	MaxCalls      = 512
	maxBytes      = 256 << 10

	maxLargeCalls = 8
	maxLargeBytes = 1 << 20
)

// Sender sends pipelines to a server. Large values have a lane of their own, for which other keys do not
// wait.
type Sender struct {
	engine *Engine
	server *servers.Server

	Timeline prefilter.Timeline // of the server's clock

	waiting      waiting // requests, including those in pipelines
	small, large lane
	roundTripNs  atomic.Int64 // moving average
}

// lane lists the keys that wait for a pipeline to a server.
type lane struct {
	sender *Sender
	bounds bounds

	mu     sync.Mutex // rank 60: guards all below
	turns  turns      // waiting; the lane owns them
	ready  int        // number of them
	flying int        // pipelines, each with a goroutine
}

func (e *Engine) Sender(server *servers.Server) *Sender {
	e.mu.RLock()
	s := e.senders[server]
	e.mu.RUnlock()
	if s != nil {
		return s
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if s = e.senders[server]; s == nil {
		// Senders of servers that come and go would pile up.
		maps.DeleteFunc(e.senders, func(_ *servers.Server, s *Sender) bool { return s.unused() })
		s = &Sender{engine: e, server: server}
		s.small.sender, s.small.bounds = s, bounds{MaxPipelines, MorePipelines, MaxCalls, maxBytes}
		s.large.sender, s.large.bounds = s, bounds{pipelines: 1, calls: maxLargeCalls, bytes: maxLargeBytes}
		e.senders[server] = s
	}
	return s
}

// unused reports whether nothing waits for a forgotten server. A sender may still be used afterwards.
func (s *Sender) unused() bool {
	return !s.small.busy() && !s.large.busy() && s.engine.Pool.Forgotten(s.server)
}

func (l *lane) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flying > 0
}

func (s *Sender) push(k *turn) {
	if k.isLarge() {
		s.large.push(k)
		return
	}
	s.small.push(k)
}

// push turns a key, and begins another pipeline if enough keys wait.
func (l *lane) push(k *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turns.push(k)
	l.ready++
	if l.flying < l.bounds.pipelines && l.ready > l.flying*l.bounds.more {
		l.flying++
		l.sender.engine.working.begin()
		go l.work()
	}
}

// next takes keys for a pipeline. Without any, the caller's pipeline ends.
func (l *lane) next(turns []*turn) []*turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	for bytes := 0; l.ready > 0 && len(turns) < l.bounds.calls && bytes < l.bounds.bytes; l.ready-- {
		k := l.turns.pop()
		bytes += k.bytes()
		turns = append(turns, k)
	}
	if len(turns) == 0 {
		l.flying--
	}
	return turns
}

type pipeline struct {
	*lane
	turns []*turn
	calls []*servers.Call
	wait  int // number of replicas

	localNs          int64 // of its making
	sentNs, answerNs int64
	answered         bool // at least one call
}

// work sends pipelines one after the other, each with the keys that came during the one before.
func (l *lane) work() {
	e := l.sender.engine
	defer e.working.end()
	p := pipeline{lane: l}
	for {
		runtime.Gosched() // lets goroutines with more requests go first
		p.turns = l.next(p.turns[:0])
		if len(p.turns) == 0 {
			return
		}
		if e.fill(&p); len(p.turns) > 0 {
			e.send(&p)
		}
		clear(p.turns)
	}
}

func (p *pipeline) isLarge() bool { return p.lane == &p.sender.large }

// fill makes the calls of a pipeline's keys, and drops keys without one.
func (e *Engine) fill(p *pipeline) {
	kept := p.turns[:0]
	p.calls, p.wait, p.answered, p.localNs = p.calls[:0], 0, false, e.Now()
	for _, k := range p.turns {
		if !e.prepare(p, k) {
			continue
		}
		k.call.Asking, k.call.Large = k.to != nil && k.to.Asking, p.isLarge()
		if k.strategy.writes(k) {
			p.wait = e.Wait
		}
		kept = append(kept, k)
		p.calls = append(p.calls, &k.call)
	}
	p.turns = kept
}

func (e *Engine) send(p *pipeline) {
	e.counts.pipelines.Add(1)
	e.counts.scripts.Add(uint64(len(p.calls)))
	// The policy may answer earlier: a connection need not be lost for that.
	ctx, cancel := context.WithTimeout(context.Background(), e.Timeout)
	defer cancel()
	p.sentNs = e.Now()
	e.Pool.Send(ctx, p.sender.server, p.calls, p.wait)
	p.answerNs = e.Now()
	for _, k := range p.turns {
		e.answered(p, k)
	}
	if p.answered && !p.isLarge() {
		p.sender.took(p.answerNs - p.sentNs)
	}
}

// tells notes the server's time in a reply. A caller's is no server's: then nothing is denied without asking.
func (p *pipeline) tells(serverNs int64) {
	if p.answered = true; !p.sender.engine.CallersTime {
		p.sender.Timeline.Note(p.sentNs, p.answerNs, serverNs)
	}
}

func (s *Sender) took(ns int64) {
	const weight = 8
	was := s.roundTripNs.Load()
	if was == 0 {
		was = ns
	}
	s.roundTripNs.Store(was + (ns-was)/weight) // a concurrent update may be lost
}
