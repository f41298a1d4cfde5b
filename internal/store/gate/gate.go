// Package gate refuses changes to a store while there is a reason, and commands while it is loaded. A Gate is
// safe for concurrent use.
package gate

import (
	"sync"
	"sync/atomic"

	"cellserver/internal/store"
)

// Reason is why changes are refused, the most telling first.
type Reason uint8

const (
	Ending  Reason = iota // the server shuts down
	Replica               // another server leads
	TooFew                // too few replicas have what was changed
	Disk                  // changes do not reach the disk
	reasons
)

// Refusal is an error for requests that would change a key: one line with a code.
type Refusal string

func (r Refusal) Error() string { return string(r) }

func (Refusal) Unwrap() error { return store.ErrFrozen }

type closed struct {
	fromNs int64
	err    error
}

// Gate is open for changes until a reason closes it.
type Gate struct {
	store      store.Tracker
	now        func() int64
	loading    atomic.Int32
	interferes atomic.Int32           // reasons to look at the others
	current    atomic.Pointer[closed] // of the earliest reason
	held       atomic.Pointer[hold]   // nil while nothing is held

	mu sync.Mutex // rank 40: guards by, and is held while telling the store
	by [reasons]closed
}

// New returns an open Gate of a store; nil is one that always accepts changes.
func New(s store.Tracker, now func() int64) *Gate {
	g := &Gate{store: s, now: now}
	for i := range g.by {
		g.by[i].fromNs = store.Never
	}
	g.current.Store(&closed{fromNs: store.Never})
	return g
}

// Close refuses changes from a time on, 0 for at once, by an error. It reports whether the reason is new.
func (g *Gate) Close(r Reason, fromNs int64, err error) (isNew bool) {
	return g.set(r, closed{fromNs, err})
}

func (g *Gate) Open(r Reason) { g.set(r, closed{fromNs: store.Never}) }

func (g *Gate) set(r Reason, c closed) (isNew bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	isNew = g.by[r] != c
	g.by[r] = c
	first := g.by[0]
	for _, other := range g.by[1:] {
		if other.fromNs < first.fromNs {
			first = other
		}
	}
	if first == *g.current.Load() {
		return isNew
	}
	g.current.Store(&first)
	if g.store != nil {
		g.store.Freeze(first.fromNs, first.err)
	}
	return isNew
}

func (g *Gate) Refusal() error {
	c := g.current.Load()
	if c.fromNs == store.Never || c.fromNs > g.now() {
		return nil
	}
	return c.err
}

// BeginLoading says that the store is being loaded, until as many calls of EndLoading.
func (g *Gate) BeginLoading() { g.interferes.Add(1); g.loading.Add(1) }

func (g *Gate) EndLoading() { g.loading.Add(-1); g.interferes.Add(-1) }

// Interferes reports whether the store is being loaded or clients are held, by one read for each command.
func (g *Gate) Interferes() bool { return g.interferes.Load() != 0 }

// Loading reports whether the store is being loaded and must not be used.
func (g *Gate) Loading() bool { return g.loading.Load() > 0 }

// hold makes callers wait.
type hold struct {
	mu      sync.Mutex // rank 90: guards all below
	over    bool
	waiting []func()
}

// Hold has clients that would change a key wait until Release. They wait in their sessions; calls that were
// admitted before are decided, or refused by a reason.
func (g *Gate) Hold() {
	if g.held.CompareAndSwap(nil, &hold{}) {
		g.interferes.Add(1)
	}
}

// Release ends Hold.
func (g *Gate) Release() {
	h := g.held.Swap(nil)
	if h == nil {
		return
	}
	g.interferes.Add(-1)
	h.mu.Lock()
	waiting := h.waiting
	h.over, h.waiting = true, nil
	h.mu.Unlock()
	for _, goOn := range waiting {
		goOn()
	}
}

func (g *Gate) Holds() bool { return g.held.Load() != nil }

// Await calls goOn once, from any goroutine, after Release.
func (g *Gate) Await(goOn func()) {
	h := g.held.Load()
	if h == nil {
		goOn()
		return
	}
	h.mu.Lock()
	over := h.over
	if !over {
		h.waiting = append(h.waiting, goOn)
	}
	h.mu.Unlock()
	if over {
		goOn()
	}
}
