package clients

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"cellserver/internal/funnel"
	"cellserver/internal/wire/peer"
)

// NewKeys limits how many keys each address may make: as many a second, and no more than that at once. The zero NewKeys
// sets no limit. It is safe for concurrent use.
type NewKeys struct {
	limit   atomic.Pointer[newKeysLimit] // nil for none
	refused atomic.Uint64

	mu      sync.Mutex // guards all below
	tatsNs  map[netip.Addr]int64
	sweptNs int64 // when the addresses were last removed that have made none for a second
}

type newKeysLimit struct {
	perSec int
	funnel funnel.Limit
}

// MaxNewKeys is the largest limit.
const MaxNewKeys = 1_000_000_000

// maxOrigins bounds the addresses that are told apart. All above it count as one.
const maxOrigins = 1 << 16

// Limit sets how many keys an address may make a second, up to MaxNewKeys; 0 for no limit. They are counted anew.
func (n *NewKeys) Limit(perSec int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tatsNs = nil
	if perSec == 0 {
		n.limit.Store(nil)
		return
	}
	limit, _ := funnel.NewLimit(funnel.Capacity, int64(perSec), int64(perSec), 1) // no error up to MaxNewKeys
	n.limit.Store(&newKeysLimit{perSec, limit})
}

// PerSec returns the limit; 0 for none.
func (n *NewKeys) PerSec() int {
	if limit := n.limit.Load(); limit != nil {
		return limit.perSec
	}
	return 0
}

// Limited reports whether there is a limit.
func (n *NewKeys) Limited() bool { return n.limit.Load() != nil }

// Refused returns how many keys were not made.
func (n *NewKeys) Refused() uint64 { return n.refused.Load() }

// Take counts a key that a client is about to make, and is false if its address makes too many. Clients over unix
// sockets are not limited.
func (n *NewKeys) Take(p *peer.Peer, nowNs int64) bool {
	limit := n.limit.Load()
	origin, ok := p.Origin()
	if limit == nil || !ok {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	origin = n.roomLocked(origin, nowNs)
	tatNs, r := limit.funnel.Throttle(n.tatsNs[origin], nowNs, 1)
	if r.Limited {
		n.refused.Add(1)
		return false
	}
	n.tatsNs[origin] = tatNs
	return true
}

// roomLocked returns what an address is counted under: itself, or none where there are too many. An address that has
// made no key for a second is as one that never has.
func (n *NewKeys) roomLocked(origin netip.Addr, nowNs int64) netip.Addr {
	if _, ok := n.tatsNs[origin]; ok || len(n.tatsNs) < maxOrigins {
		if n.tatsNs == nil {
			n.tatsNs = map[netip.Addr]int64{}
		}
		return origin
	}
	const sec = 1_000_000_000
	if nowNs-n.sweptNs < sec { // a sweep looks at all of them
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
