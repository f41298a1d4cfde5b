package prefilter

import (
	"hash/maphash"
	"sync"

	"cellserver/internal/funnel"
)

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
