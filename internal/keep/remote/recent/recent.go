// Package recent remembers, for a second, until when keys on other machines are in debt: their TATs. A TAT only grows, so what
// it denies by a request's own numbers need not be asked again. Only a refund, a deletion, or a failover that loses writes makes
// a TAT smaller; those of this process are told by Forget, others' are followed after that second. A Table is safe for
// concurrent use. It allocates nothing after New.
package recent

import (
	"hash/maphash"
	"sync"

	"cellserver/internal/funnel"
)

// KeptNs is for how long after it was requested a TAT is believed.
const KeptNs = 1_000_000_000

const (
	ways       = 4                         // entries in a bucket, which are two cache lines
	entryBytes = 32                        // of an entry
	parts      = 64                        // that are locked apart
	leastBytes = parts * ways * entryBytes // of a table
)

// Table is the TATs of the keys that were denied last, as many as fit. A nil Table remembers none.
type Table struct {
	seeds [2]maphash.Seed // secret, so that nobody can construct keys that are taken for each other
	parts []part
}

type part struct {
	mu      sync.Mutex // guards what follows
	buckets []bucket
	_       [64]byte // no two parts' locks share a line
}

type bucket [ways]entry

// entry is a TAT, by the server's clock, or that it is not known. Names are told apart by 128 bits of their hashes.
type entry struct {
	name   [2]uint64
	tatNs  int64
	sentNs int64 // when it was requested, by the local clock; if it is not known, since when it is not
}

// unknown is the TAT of a key that was forgotten. It denies nothing.
const unknown = -1 << 63

// New returns a Table of at most so many bytes, or the few that are the least.
func New(maxBytes int) *Table {
	t := &Table{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, parts: make([]part, parts)}
	each := max(1, maxBytes/leastBytes)
	for i := range t.parts {
		t.parts[i].buckets = make([]bucket, each)
	}
	return t
}

// Note remembers a key's TAT, by the server's clock, from a reply that was requested at a local time. It is worth while where
// the TAT leaves no room for a unit: after a denial, or when the last unit was taken.
func (t *Table) Note(name []byte, tatNs, sentNs int64) {
	t.set(name, entry{tatNs: tatNs, sentNs: sentNs}, true)
}

// Renew is Note for keys that are remembered, so that a client that was told of a later TAT is not denied
// by an earlier one.
func (t *Table) Renew(name []byte, tatNs, sentNs int64) {
	t.set(name, entry{tatNs: tatNs, sentNs: sentNs}, false)
}

// Forget forgets a key, because its TAT has, or may have, become smaller by now: it also leaves out replies that were
// requested before and come in later.
func (t *Table) Forget(name []byte, localNs int64) {
	t.set(name, entry{tatNs: unknown, sentNs: localNs}, true)
}

// Denied returns the answer to a request that is certainly denied, and false for one that has to be sent.
// The server's clock is between the earliest and the latest time at the local time: the request is denied
// by the latest, and its time to retry is counted from the earliest.
func (t *Table) Denied(
	name []byte, l funnel.Limit, unit funnel.Unit, quantity, earliestNs, latestNs, localNs int64,
) (r funnel.Result, ok bool) {
	if t == nil || quantity <= 0 {
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
		if e.tatNs == unknown || localNs-e.sentNs >= KeptNs {
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

// set replaces what is known of a key by e, unless that is newer. A key of which nothing is known takes the
// place of its bucket's oldest entry, if add is true. If a later TAT arrives behind one that was requested
// after it, either may be the key's, and none is known.
func (t *Table) set(name []byte, e entry, add bool) {
	if t == nil {
		return
	}
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

// supersedes reports whether an entry tells more than an older one of the same key. Of what was requested at the same time the
// larger TAT is the later one, and that it is not known counts for most.
func (e *entry) supersedes(old *entry) bool {
	if e.sentNs == old.sentNs {
		return e.tatNs == unknown || old.tatNs != unknown && e.tatNs > old.tatNs
	}
	return e.sentNs > old.sentNs
}

func (t *Table) find(name []byte) (id [2]uint64, p *part, b *bucket) {
	id = [2]uint64{maphash.Bytes(t.seeds[0], name), maphash.Bytes(t.seeds[1], name)}
	p = &t.parts[id[0]%parts]
	return id, p, &p.buckets[id[0]/parts%uint64(len(p.buckets))]
}
