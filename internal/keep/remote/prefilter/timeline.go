package prefilter

import (
	"sync"
	"sync/atomic"

	"cellserver/internal/funnel"
)

const (
	// tickNs is the resolution of a server's clock: it tells a time earlier by less than that.
	tickNs = 1_000

	// driftPart is the drift of two clocks: a thousandth, twice what kernels let NTP slew.
	driftPart = 1_000

	// periodNs is the time for which bounds are gathered. They also hold for the next period and are then
	// forgotten: so a step of a clock that is too small to contradict them is followed after two periods.
	periodNs = 1_000_000_000
)

// Timeline has the bounds of a server's clock, by the times in its replies. The zero Timeline has none. It is
// safe for concurrent use.
//
// The server's clock has shown the time in a reply between its request and its receipt. Afterwards both
// clocks run almost equally fast. So each reply bounds the lead of the server's clock over ours, and the
// bounds of several replies hold together.
type Timeline struct {
	mu    sync.Mutex            // rank 90: for replacing known
	known atomic.Pointer[known] // immutable; nil before the first reply
}

// known has the bounds of a period and of the one before.
type known struct {
	startedNs   int64 // of the period
	newestNs    int64 // request of the newest reply
	now, before bounds
}

// bounds limits the lead of the server's clock. Each bound has its own time.
type bounds struct {
	ok          bool
	least, most bound
}

type bound struct{ aheadNs, foundNs int64 }

// Note adds a reply: the times of its request and receipt, and the server's time in it. Replies may come in
// any order. If they contradict each other because a clock was set, the newest is right.
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
		next := k // allocates only if kept
		t.known.Store(&next)
	}
}

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
	if k.now == n || sentNs-k.newestNs >= periodNs/16 { // not every time, as it allocates
		k.newestNs = max(k.newestNs, sentNs)
	}
	return k
}

// After returns the earliest time that a server's clock may show passedNs of ours after serverNs.
func After(serverNs, passedNs int64) int64 {
	return funnel.Shift(serverNs, max(0, passedNs-driftNs(0, passedNs)))
}

// Between returns the times between which the server's clock is at a local time, and false if unknown.
func (t *Timeline) Between(localNs int64) (earliestNs, latestNs int64, ok bool) {
	k := t.known.Load()
	if k == nil {
		return 0, 0, false
	}
	leastNs, mostNs := k.now.least.earliest(localNs), k.now.most.latest(localNs)
	if k.before.ok {
		leastNs, mostNs = max(leastNs, k.before.least.earliest(localNs)), min(mostNs, k.before.most.latest(localNs))
	}
	return funnel.Shift(localNs, leastNs), funnel.Shift(localNs, mostNs), true
}

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

func (b bounds) contradict(n bounds) bool {
	if !b.ok || !n.ok {
		return false
	}
	atNs := max(b.least.foundNs, n.least.foundNs)
	return b.least.earliest(atNs) > n.most.latest(atNs) || n.least.earliest(atNs) > b.most.latest(atNs)
}

func (b bound) latest(atNs int64) int64   { return b.aheadNs + driftNs(b.foundNs, atNs) }
func (b bound) earliest(atNs int64) int64 { return b.aheadNs - driftNs(b.foundNs, atNs) }

// driftNs bounds the drift of two clocks between two times.
func driftNs(fromNs, toNs int64) int64 {
	apartNs := max(fromNs, toNs) - min(fromNs, toNs)
	return apartNs/driftPart + 1
}
