package remote

import (
	"context"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/keep/remote/timeline"
)

const (
	// maxPipelines is how many are under way to a server at once, at most.
	maxPipelines = 4
	// morePipelines is how many keys wait for a server, for each pipeline that is under way, when another is begun.
	morePipelines = 128
	// maxScripts is how many a pipeline has at most.
	maxScripts = 512
	// maxKeyBytes bounds the names in a pipeline: beyond it no other script is added.
	maxKeyBytes = 256 << 10
)

// node is the keys whose requests wait for a server.
type node struct {
	store  *Store
	server *servers.Server

	mu          sync.Mutex // guards all below
	first, last *group     // that wait for a pipeline; it owns them
	ready       int        // how many these are
	flying      int        // pipelines, each of which has a goroutine

	waiting waiting // requests, those in pipelines and of keys that another script is under way for included

	line        timeline.Timeline
	roundTripNs atomic.Int64 // moving average
}

func (s *Store) node(server *servers.Server) *node {
	s.mu.RLock()
	n := s.nodes[server]
	s.mu.RUnlock()
	if n != nil {
		return n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n = s.nodes[server]; n == nil {
		maps.DeleteFunc(s.nodes, func(_ *servers.Server, n *node) bool { return n.unused() }) // or those of servers that come and go would pile up
		n = &node{store: s, server: server}
		s.nodes[server] = n
	}
	return n
}

// unused reports whether nothing waits for a server that is forgotten. Whoever is about to use the node still may.
func (n *node) unused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.flying == 0 && n.store.Pool.Forgotten(n.server)
}

// push queues a group, and has another pipeline begun if that is worth it.
func (n *node) push(g *group) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last == nil {
		n.first = g
	} else {
		n.last.next = g
	}
	n.last = g
	n.ready++
	if n.flying < maxPipelines && n.ready > n.flying*morePipelines {
		n.flying++
		n.store.working.begin()
		go n.work()
	}
}

// next takes groups for a pipeline. If there are none, the caller's is no longer under way.
func (n *node) next(groups []*group) []*group {
	n.mu.Lock()
	defer n.mu.Unlock()
	for bytes := 0; n.first != nil && len(groups) < maxScripts && bytes < maxKeyBytes; n.ready-- {
		g := n.first
		if n.first, g.next = g.next, nil; n.first == nil {
			n.last = nil
		}
		bytes += len(g.key)
		groups = append(groups, g)
	}
	if len(groups) == 0 {
		n.flying--
	}
	return groups
}

func (n *node) stats() ServerStats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return ServerStats{Addr: n.server.Addr, Queued: n.ready, InFlight: n.flying, RoundTripNs: n.roundTripNs.Load()}
}

// took notes how long a pipeline has taken.
func (n *node) took(ns int64) {
	const weight = 8
	was := n.roundTripNs.Load()
	if was == 0 {
		was = ns
	}
	n.roundTripNs.Store(was + (ns-was)/weight) // of two at once one may be lost
}

// pipeline is groups with the calls that are sent for them.
type pipeline struct {
	groups []*group
	calls  []*servers.Call
}

// work sends what waits as pipelines, one after the other: the size of each is what came while the one before was under way.
func (n *node) work() {
	defer n.store.working.end()
	var p pipeline
	for {
		runtime.Gosched() // who is about to bring more goes first
		p.groups = n.next(p.groups[:0])
		if len(p.groups) == 0 {
			return
		}
		n.fill(&p)
		if len(p.groups) > 0 {
			n.send(&p)
		}
		clear(p.groups)
	}
}

// fill makes calls of a pipeline's groups, and lets go of those that have none, or go another way.
func (n *node) fill(p *pipeline) {
	s, kept := n.store, p.groups[:0]
	localNs := s.Now()
	p.calls = p.calls[:0]
	for _, g := range p.groups {
		switch {
		case !s.take(g, n, localNs):
			s.goOn(g)
		case g.apart:
			s.handOver(g)
		default:
			g.call.Script, g.call.Asking = s.scripts.funnel, g.to != nil && g.to.Asking
			kept = append(kept, g)
			p.calls = append(p.calls, &g.call)
		}
	}
	p.groups = kept
}

func (n *node) send(p *pipeline) {
	s := n.store
	s.counts.pipelines.Add(1)
	s.counts.scripts.Add(uint64(len(p.calls)))
	ctx, cancel := s.timeout(context.Background()) // though the policy may answer earlier: a connection need not be lost for that
	defer cancel()
	sentNs := s.Now()
	s.Pool.Send(ctx, n.server, p.calls, s.Wait)
	receivedNs, one := s.Now(), false
	for _, g := range p.groups {
		a, known := s.answerOf(&g.call)
		one = one || known
		if known && s.knowsAny() {
			n.line.Note(sentNs, receivedNs, a.nowNs)
		}
		s.answered(g, a, sentNs)
	}
	if one { // else it tells of no round trip
		n.took(receivedNs - sentNs)
	}
}
