// Package timeline estimates what time it is by a server's clock, from what the server has said in replies: not one number,
// but bounds that the server's time is within. A Timeline is safe for concurrent use.
//
// A reply that was requested at one local time and received at another names a time that the server's clock has shown in
// between. From then on both clocks go on, though not quite equally fast. So each reply bounds by how much the server's clock
// is ahead of ours, the more narrowly the quicker it was, and the bounds of several replies hold together.
package timeline

import (
	"sync"
	"sync/atomic"

	"cellserver/internal/funnel"
)

const (
	// tickNs is what a server's clock counts in: the time that it tells may be earlier than its own by less than that.
	tickNs = 1_000

	// driftPart is how much two clocks drift apart: a thousandth, which is twice what kernels let NTP slew.
	driftPart = 1_000

	// periodNs is for how long replies are gathered. What they say holds for the period behind that, too, and is then
	// forgotten: so a clock's step that is too small to contradict it is followed after two periods at most.
	periodNs = 1_000_000_000
)

// Timeline is what is known of a server's clock. The zero Timeline knows nothing.
type Timeline struct {
	mu    sync.Mutex            // of those who replace known
	known atomic.Pointer[known] // nil before the first reply; what it points to never changes
}

// known is the replies of a period and of the one before.
type known struct {
	startedNs   int64 // when the period has begun
	newestNs    int64 // when the newest of all replies was requested
	now, before bounds
}

// bounds is between what the server's clock is ahead of ours. Each bound was found at a time of its own.
type bounds struct {
	ok          bool
	least, most bound
}

type bound struct{ aheadNs, foundNs int64 }

// Note takes down a reply: when it was requested, when it was received, and the time that the server's clock has told in
// between. Replies may be noted in any order. Where they contradict each other, because a clock was set, the newest is right.
func (t *Timeline) Note(sentNs, receivedNs, serverNs int64) {
	if receivedNs < sentNs {
		return
	}
	n := bounds{ok: true, least: bound{serverNs - receivedNs, receivedNs}, most: bound{serverNs + tickNs - 1 - sentNs, sentNs}}
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.known.Load()
	if old == nil {
		t.known.Store(&known{startedNs: sentNs, newestNs: sentNs, now: n})
		return
	}
	if k := old.with(n, sentNs); k != *old {
		next := k // so that only what is kept is allocated
		t.known.Store(&next)
	}
}

// with is what is known with another reply.
func (k known) with(n bounds, sentNs int64) known {
	if n.contradict(k.now) || n.contradict(k.before) {
		if sentNs < k.newestNs {
			return k
		}
		return known{startedNs: sentNs, newestNs: sentNs, now: n}
	}
	switch age := sentNs - k.startedNs; {
	case age >= 2*periodNs:
		k.startedNs, k.now, k.before = sentNs, n, bounds{}
	case age >= periodNs:
		k.startedNs, k.now, k.before = sentNs, n, k.now
	default:
		k.now = k.now.and(n)
	}
	if k.now == n || sentNs-k.newestNs >= periodNs/16 { // not with every reply, as that is an allocation
		k.newestNs = max(k.newestNs, sentNs)
	}
	return k
}

// After returns the earliest time that a server's clock may show when so much of ours has passed since it
// showed another.
func After(serverNs, passedNs int64) int64 {
	return funnel.Shift(serverNs, max(0, passedNs-driftNs(0, passedNs)))
}

// Earliest returns the earliest time that the server's clock may show at a local time, and false if nothing
// is known.
func (t *Timeline) Earliest(localNs int64) (serverNs int64, ok bool) {
	k := t.known.Load()
	if k == nil {
		return 0, false
	}
	aheadNs := k.now.least.earliest(localNs)
	if k.before.ok {
		aheadNs = max(aheadNs, k.before.least.earliest(localNs))
	}
	return funnel.Shift(localNs, aheadNs), true
}

// Latest returns the latest time that the server's clock may show at a local time, and false if nothing is known.
func (t *Timeline) Latest(localNs int64) (serverNs int64, ok bool) {
	k := t.known.Load()
	if k == nil {
		return 0, false
	}
	aheadNs := k.now.most.latest(localNs)
	if k.before.ok {
		aheadNs = min(aheadNs, k.before.most.latest(localNs))
	}
	return funnel.Shift(localNs, aheadNs), true
}

// and returns the narrower of the bounds.
func (b bounds) and(n bounds) bounds {
	atNs := max(b.most.foundNs, n.most.foundNs)
	if n.most.latest(atNs) < b.most.latest(atNs) {
		b.most = n.most
	}
	atNs = max(b.least.foundNs, n.least.foundNs)
	if n.least.earliest(atNs) > b.least.earliest(atNs) {
		b.least = n.least
	}
	return b
}

// contradict reports whether the bounds cannot both be right.
func (b bounds) contradict(n bounds) bool {
	if !b.ok || !n.ok {
		return false
	}
	atNs := max(b.least.foundNs, n.least.foundNs)
	return b.least.earliest(atNs) > n.most.latest(atNs) || n.least.earliest(atNs) > b.most.latest(atNs)
}

func (b bound) latest(atNs int64) int64   { return b.aheadNs + driftNs(b.foundNs, atNs) }
func (b bound) earliest(atNs int64) int64 { return b.aheadNs - driftNs(b.foundNs, atNs) }

// driftNs is how far two clocks may have drifted apart between two times.
func driftNs(fromNs, toNs int64) int64 {
	apartNs := max(fromNs, toNs) - min(fromNs, toNs)
	return apartNs/driftPart + 1
}
