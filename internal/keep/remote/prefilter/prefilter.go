// Package prefilter denies requests of funnels without asking a server, by TATs that were read lately and by
// what the server's clock may show. A Filter and a Timeline are safe for concurrent use.
package prefilter

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// tableBytes bounds the table of TATs, 32 bytes each.
const tableBytes = 4 << 20

// Filter remembers the TATs of denied keys.
type Filter struct {
	keyPrefix string
	now       func() int64
	table     *table
	denied    atomic.Uint64
}

// New returns a Filter for keys that begin with keyPrefix on the servers; now is the local clock.
func New(keyPrefix string, now func() int64) *Filter {
	return &Filter{keyPrefix: keyPrefix, now: now, table: newTable(tableBytes)}
}

func (f *Filter) Denied() uint64 { return f.denied.Load() }

// Deny returns the answer to a request that it denies: with AtMost, one that is denied a unit. line is the
// server's clock.
func (f *Filter) Deny(q *store.Request, line *Timeline, localNs int64) (r funnel.Result, ok bool) {
	if q.Rule.Kind != limiter.Funnel || q.Rule.Flags&^limiter.AtMost != 0 || q.Quantity <= 0 {
		return r, false
	}
	units := q.Quantity
	if q.Rule.Flags != 0 {
		units = 1
	}
	earliestNs, latestNs, ok := line.Between(localNs)
	if !ok {
		return r, false
	}
	if r, ok = f.table.denied(q.Key.Name, q.Rule.Funnel, q.Rule.Unit, units, earliestNs, latestNs, localNs); ok {
		f.denied.Add(1)
	}
	return r, ok
}

// Learn notes what a server has, or may have, done to a key, or what was read of it. It must be called before
// the caller gets the answer. The key has its name on the server. st is the state afterwards, by the server's
// clock, in the reply to a call sent at sentNs local time; nil if unknown.
func (f *Filter) Learn(key string, e limiter.Effect, st *limiter.State, sentNs int64) {
	name := []byte(key[len(f.keyPrefix):])
	switch {
	case e != limiter.Raises:
		f.table.forget(name, f.now())
	case st == nil:
	case st.Kind == limiter.Funnel:
		f.table.renew(name, st.ExpiresNs, sentNs)
	case st.Kind == limiter.Reserving, st.Kind == limiter.Named: // its TAT becomes less when a reservation, or a hold, expires
		f.table.forget(name, f.now())
	}
}

// Note remembers the TAT of a full key, by the reply to a call sent at sentNs local time.
func (f *Filter) Note(name []byte, tatNs, sentNs int64) { f.table.note(name, tatNs, sentNs) }

// keptNs is a TAT's lifetime in the table, from its request on.
const keptNs = 1_000_000_000

const (
	ways       = 4 // entries in a bucket, which are two cache lines
	entryBytes = 32
	parts      = 64 // each with a lock
	leastBytes = parts * ways * entryBytes
)

// table has the TATs of the keys that were denied last, for a second. A TAT only grows, so a denial by it
// still holds, except after a refund, a deletion, or a failover that loses writes: forget is for those of
// this process; those of others are noticed after that second. It is safe for concurrent use and allocates
// nothing after newTable.
type table struct {
	seeds [2]maphash.Seed // secret, so that clients cannot construct keys with equal hashes
	parts []part
}

type part struct {
	mu      sync.Mutex // rank 90: guards buckets
	buckets []bucket
	_       [64]byte // no two parts' locks share a line
}

type bucket [ways]entry

// entry is a key's TAT by the server's clock, or unknown. 128 bits of hash identify the name.
type entry struct {
	name   [2]uint64
	tatNs  int64
	sentNs int64 // local time of the request for it; of an unknown TAT the time since when it is unknown
}

// unknown is the TAT of a forgotten key. It denies nothing.
const unknown = -1 << 63

// newTable returns a table of at most maxBytes, but at least leastBytes.
func newTable(maxBytes int) *table {
	t := &table{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, parts: make([]part, parts)}
	each := max(1, maxBytes/leastBytes)
	for i := range t.parts {
		t.parts[i].buckets = make([]bucket, each)
	}
	return t
}

// note remembers the TAT of a key that has no unit left, from the reply to a call sent at sentNs local time.
func (t *table) note(name []byte, tatNs, sentNs int64) {
	t.set(name, entry{tatNs: tatNs, sentNs: sentNs}, true)
}

// renew is note for keys in the table only: a client that has seen a later TAT is not denied by an earlier
// one.
func (t *table) renew(name []byte, tatNs, sentNs int64) {
	t.set(name, entry{tatNs: tatNs, sentNs: sentNs}, false)
}

// forget forgets a key whose TAT may have become smaller by now. Late replies to earlier calls are ignored,
// too.
func (t *table) forget(name []byte, localNs int64) {
	t.set(name, entry{tatNs: unknown, sentNs: localNs}, true)
}

// denied returns the answer to a request that is certainly denied, and false for one that must be sent. The
// server's clock is between earliestNs and latestNs at localNs: the latest decides the denial, the earliest
// its time to retry.
func (t *table) denied(
	name []byte, l funnel.Limit, unit funnel.Unit, quantity, earliestNs, latestNs, localNs int64,
) (r funnel.Result, ok bool) {
	if quantity <= 0 {
		return r, false
	}
	id, p, b := t.find(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range b {
		e := &b[i]
		if e.name != id {
			continue
		}
		if e.tatNs == unknown || localNs-e.sentNs >= keptNs {
			return r, false
		}
		if _, r = l.ThrottleIn(unit, e.tatNs, latestNs, quantity); !r.Limited {
			return funnel.Result{}, false
		}
		_, r = l.ThrottleIn(unit, e.tatNs, min(earliestNs, latestNs), quantity)
		return r, true
	}
	return r, false
}

// set replaces a key's entry by a newer one; with add, a new key replaces its bucket's oldest entry. If a
// larger TAT arrives after the reply to a later call, either may be the key's, and it becomes unknown.
func (t *table) set(name []byte, e entry, add bool) {
	id, p, b := t.find(name)
	e.name = id
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := 0
	for i := range b {
		switch {
		case b[i].name == id:
			if e.supersedes(&b[i]) {
				b[i] = e
			} else if e.tatNs > b[i].tatNs {
				b[i].tatNs = unknown
			}
			return
		case b[i].sentNs < b[oldest].sentNs:
			oldest = i
		}
	}
	if add {
		b[oldest] = e
	}
}

// supersedes reports whether an entry replaces another of the same key. Of entries requested at the same
// time, unknown wins, then the larger TAT, which is the later one.
func (e *entry) supersedes(old *entry) bool {
	if e.sentNs == old.sentNs {
		return e.tatNs == unknown || old.tatNs != unknown && e.tatNs > old.tatNs
	}
	return e.sentNs > old.sentNs
}

func (t *table) find(name []byte) (id [2]uint64, p *part, b *bucket) {
	id = [2]uint64{maphash.Bytes(t.seeds[0], name), maphash.Bytes(t.seeds[1], name)}
	p = &t.parts[id[0]%parts]
	return id, p, &p.buckets[id[0]/parts%uint64(len(p.buckets))]
}

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
