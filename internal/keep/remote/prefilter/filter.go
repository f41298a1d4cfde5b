// Package prefilter denies requests of funnels without asking a server, by TATs that were read lately and by
// what the server's clock may show. A Filter and a Timeline are safe for concurrent use.
package prefilter

import (
	"sync/atomic"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// tableBytes bounds the table of TATs, 32 bytes each.
const tableBytes = 4 << 20

// Filter remembers the TATs of denied keys. A nil Filter denies nothing.
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

// Denied returns the number of denied requests.
func (f *Filter) Denied() uint64 {
	if f == nil {
		return 0
	}
	return f.denied.Load()
}

// Decide reports whether it has denied a request. line is the server's clock.
func (f *Filter) Decide(q *store.Request, line *Timeline, localNs int64) bool {
	if f == nil || q.Rule.Kind != limiter.Funnel || q.Rule.Flags != 0 || q.Quantity <= 0 {
		return false
	}
	latestNs, ok := line.Latest(localNs)
	if !ok {
		return false
	}
	earliestNs, _ := line.Earliest(localNs)
	r := &q.Rule
	if q.Result, ok = f.table.denied(q.Key.Name, r.Funnel, r.Unit, q.Quantity, earliestNs, latestNs, localNs); ok {
		f.denied.Add(1)
	}
	return ok
}

// Learn notes what a server has, or may have, done to a key, or what was read of it. It must be called before
// the caller gets the answer. The key has its name on the server. st is the state afterwards, by the server's
// clock, in the reply to a call sent at sentNs local time; nil if unknown.
func (f *Filter) Learn(key string, e limiter.Effect, st *limiter.State, sentNs int64) {
	if f == nil {
		return
	}
	name := []byte(key[len(f.keyPrefix):])
	switch {
	case e != limiter.Raises:
		f.table.forget(name, f.now())
	case st == nil:
	case st.Kind == limiter.Funnel:
		f.table.renew(name, st.ExpiresNs, sentNs)
	case st.Kind == limiter.Reserving: // its TAT becomes less when a reservation expires
		f.table.forget(name, f.now())
	}
}

// Note remembers the TAT of a full key, by the reply to a call sent at sentNs local time.
func (f *Filter) Note(name []byte, tatNs, sentNs int64) {
	if f != nil {
		f.table.note(name, tatNs, sentNs)
	}
}
