package engine

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"cellserver/internal/keep/remote/prefilter"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/store"
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

type counts struct {
	asked, joined, scripts, pipelines atomic.Uint64

	resent servers.ByReason
}

// decided counts n jobs decided by one call.
func (c *counts) decided(n int) {
	if n > 0 {
		c.asked.Add(uint64(n))
		c.joined.Add(uint64(n - 1))
	}
}

func (e *Engine) Stats() store.RemoteStats {
	c := &e.counts
	st := store.RemoteStats{
		Asked: c.asked.Load(), Joined: c.joined.Load(), Scripts: c.scripts.Load(),
		Pipelines: c.pipelines.Load(), Resent: c.resent.All(),
		Waiting: int(e.waiting.requests.Load()), WaitingBytes: int(e.waiting.bytes.Load()),
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, s := range e.senders {
		st.Servers = append(st.Servers, s.stats())
	}
	slices.SortFunc(st.Servers, func(a, b store.ServerStats) int { return strings.Compare(a.Addr, b.Addr) })
	return st
}

func (s *Sender) stats() store.ServerStats {
	st := store.ServerStats{Addr: s.server.Addr, RoundTripNs: s.roundTripNs.Load()}
	for _, l := range []*lane{&s.small, &s.large} {
		l.mu.Lock()
		st.Queued += l.ready
		st.InFlight += l.flying
		l.mu.Unlock()
	}
	return st
}

// Bounds of waiting requests: beyond them requests are refused.
const (
	MaxWaiting      = 1 << 17
	maxWaitingBytes = 64 << 20 // of names
	// serverPart bounds those of one server of a cluster to a half, so that one that hangs does not use up
	// all.
	serverPart = 2
)

type waiting struct{ requests, bytes atomic.Int64 }

// add reports whether the sum exceeds the bounds divided by part.
func (w *waiting) add(requests int64, name []byte, part int64) (tooMany bool) {
	n, bytes := w.requests.Add(requests), w.bytes.Add(requests*int64(len(name)))
	return n > MaxWaiting/part || bytes > maxWaitingBytes/part
}

// Enter counts a waiting request, also at its sender if that is known. It returns an error text if there are
// too many.
func (e *Engine) Enter(name []byte, s *Sender) (tooMany string) {
	if e.waiting.add(1, name, 1) {
		tooMany = "too many requests wait for the servers"
	}
	if s != nil && s.waiting.add(1, name, serverPart) && e.Pool.Clustered() {
		tooMany = "too many requests wait for " + s.server.Addr
	}
	return tooMany
}

func (e *Engine) Leave(name []byte, s *Sender) {
	e.waiting.add(-1, name, 1)
	if s != nil {
		s.waiting.add(-1, name, serverPart)
	}
}

// working counts goroutines, running and scheduled.
type working struct {
	mu   sync.Mutex // rank 90: guards all below
	n    int
	idle sync.Cond
}

func (w *working) begin() {
	w.mu.Lock()
	w.n++
	w.mu.Unlock()
}

func (w *working) end() {
	w.mu.Lock()
	if w.n--; w.n == 0 {
		w.idle.Broadcast()
	}
	w.mu.Unlock()
}

// WaitIdle returns once no call is under way.
func (e *Engine) WaitIdle() {
	w := &e.working
	w.mu.Lock()
	for w.n > 0 {
		w.idle.Wait()
	}
	w.mu.Unlock()
}
