package clients

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"cellserver/internal/funnel"
	"cellserver/internal/wire/peer"
)

// NewKeys limits the keys that each address may create in a second, which is also the burst. The zero NewKeys
// has no limit. It is safe for concurrent use.
type NewKeys struct {
	limit   atomic.Pointer[funnel.Limit] // nil for none
	refused atomic.Uint64

	mu      sync.Mutex // rank 90: guards all below
	tatsNs  map[netip.Addr]int64
	sweptNs int64 // of the last removal of idle addresses
}

const MaxNewKeys = 1_000_000_000

// maxOrigins bounds the addresses that are told apart. All others share one limit.
const maxOrigins = 1 << 16

// Limit sets the number of new keys an address and second, up to MaxNewKeys, or 0 for no limit, and restarts
// counting.
func (n *NewKeys) Limit(perSec int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tatsNs = nil
	if perSec == 0 {
		n.limit.Store(nil)
		return
	}
	limit, _ := funnel.NewLimit(funnel.Capacity, int64(perSec), int64(perSec), 1) // valid up to MaxNewKeys
	n.limit.Store(&limit)
}

func (n *NewKeys) PerSec() int {
	if limit := n.limit.Load(); limit != nil {
		return int(limit.Capacity())
	}
	return 0
}

func (n *NewKeys) Limited() bool { return n.limit.Load() != nil }

func (n *NewKeys) Refused() uint64 { return n.refused.Load() }

// Take counts a key about to be created, and returns false if its address creates too many. Unix sockets are
// not limited.
func (n *NewKeys) Take(p *peer.Peer, nowNs int64) bool {
	limit := n.limit.Load()
	origin, ok := p.Origin()
	if limit == nil || !ok {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	origin = n.roomLocked(origin, nowNs)
	tatNs, r := limit.Throttle(n.tatsNs[origin], nowNs, 1)
	if r.Limited {
		n.refused.Add(1)
		return false
	}
	n.tatsNs[origin] = tatNs
	return true
}

// roomLocked returns the address to count under: itself, or none beyond maxOrigins. An address without a new
// key for a second is forgotten.
func (n *NewKeys) roomLocked(origin netip.Addr, nowNs int64) netip.Addr {
	if _, ok := n.tatsNs[origin]; ok || len(n.tatsNs) < maxOrigins {
		if n.tatsNs == nil {
			n.tatsNs = map[netip.Addr]int64{}
		}
		return origin
	}
	const sec = 1_000_000_000
	if nowNs-n.sweptNs < sec { // a sweep visits all
		return netip.Addr{}
	}
	n.sweptNs = nowNs
	live := map[netip.Addr]int64{}
	for addr, tatNs := range n.tatsNs {
		if tatNs > nowNs {
			live[addr] = tatNs
		}
	}
	n.tatsNs = live
	if len(live) < maxOrigins {
		return origin
	}
	return netip.Addr{}
}
