package storetest

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Inner is a store in memory for a RemoteStore; its transactions can be released.
type Inner interface {
	store.Store
	store.Transactor
	store.Walker
}

// Lines of the Failures of a RemoteStore.
const (
	LineDown      = "STOREDOWN the machines did not answer in time, and nothing was charged"
	LineCrossSlot = "CROSSSLOT Keys in request don't hash to the same slot"
	LineScan      = "ERR SCAN is for a store of one machine; this one is a cluster"
)

// RemoteStore is a store.Remote on a store in memory, for tests: batches are answered later from another
// goroutine, and other methods can be made to wait, fail or conflict. It records its callers. It is safe for
// concurrent use; a transaction belongs to one goroutine at a time.
type RemoteStore struct {
	*LaterStore
	inner Inner

	mu        sync.Mutex // guards all below
	changed   *sync.Cond // of held
	held      bool
	clustered bool
	failing   map[string]error       // by method; that of "" is of all
	policy    func(q *store.Request) // nil for an error
	conflicts int                    // Commits still to conflict; all if negative
	calls     map[string]int
	forbidden []string // functions that may only call Throttle
	within    []string // methods called by these
}

// NewRemote returns a RemoteStore of one machine.
func NewRemote(inner Inner) *RemoteStore {
	r := &RemoteStore{LaterStore: Later(inner), inner: inner, calls: map[string]int{}, failing: map[string]error{}}
	r.changed = sync.NewCond(&r.mu)
	return r
}

func (r *RemoteStore) locked(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

func (r *RemoteStore) Abilities() store.Abilities { return store.Abilities{} }

// Cluster makes it a cluster: keys are changed together only with equal {tag}s, and Scan is refused.
func (r *RemoteStore) Cluster() { r.locked(func() { r.clustered = true }) }

// Fail makes all calls fail; nil ends that.
func (r *RemoteStore) Fail(err error) { r.FailIn("", err) }

// FailIn makes a method fail; nil ends that.
func (r *RemoteStore) FailIn(method string, err error) { r.locked(func() { r.failing[method] = err }) }

// Policy decides requests of failing transactions; nil lets them fail.
func (r *RemoteStore) Policy(decide func(q *store.Request)) { r.locked(func() { r.policy = decide }) }

func (r *RemoteStore) DecideByPolicy(batch []store.Request, _ error) bool {
	var decide func(q *store.Request)
	if r.locked(func() { decide = r.policy }); decide == nil {
		return false
	}
	for i := range batch {
		decide(&batch[i])
	}
	return true
}

// Conflict makes the next Commits conflict; all if negative.
func (r *RemoteStore) Conflict(commits int) { r.locked(func() { r.conflicts = commits }) }

// Hold blocks batches and callers until Release.
func (r *RemoteStore) Hold() {
	r.LaterStore.Hold()
	r.locked(func() { r.held = true })
}

func (r *RemoteStore) Release() {
	r.LaterStore.Release()
	r.locked(func() { r.held = false })
	r.changed.Broadcast()
}

// Forbid records calls from the functions, given by the ends of their full names.
func (r *RemoteStore) Forbid(functions ...string) { r.locked(func() { r.forbidden = functions }) }

// Within returns the methods called by forbidden functions.
func (r *RemoteStore) Within() (methods []string) {
	r.locked(func() { methods = slices.Clone(r.within) })
	return methods
}

// Calls returns the number of calls by method; Commit is that of transactions.
func (r *RemoteStore) Calls() (calls map[string]int) {
	r.locked(func() { calls = maps.Clone(r.calls) })
	return calls
}

// enter records a call of a waiting method and returns its failure.
func (r *RemoteStore) enter(method string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[method]++
	if isBelow(r.forbidden) {
		r.within = append(r.within, method)
		return store.Failure{Line: "ERR " + method + " was called where nobody may wait"}
	}
	for r.held {
		r.changed.Wait()
	}
	return r.failureLocked(method)
}

func (r *RemoteStore) failureLocked(method string) error {
	return cmp.Or(r.failing[""], r.failing[method])
}

// isBelow reports whether a function is among the callers.
func isBelow(functions []string) bool {
	if len(functions) == 0 {
		return false
	}
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		frame, more := frames.Next()
		if slices.ContainsFunc(functions, func(f string) bool { return strings.HasSuffix(frame.Function, f) }) {
			return true
		}
		if !more {
			return false
		}
	}
}

func (r *RemoteStore) Throttle(nowNs int64, batch []store.Request) store.Pending {
	r.mu.Lock()
	r.calls["Throttle"]++
	err := r.failureLocked("Throttle")
	r.mu.Unlock()
	if err == nil {
		return r.LaterStore.Throttle(nowNs, batch)
	}
	return Later(failingBatches{r.inner, err}).Throttle(nowNs, batch)
}

type failingBatches struct {
	store.Store
	err error
}

func (f failingBatches) Throttle(_ int64, batch []store.Request) store.Pending {
	for i := range batch {
		batch[i].Err = f.err
	}
	return nil
}

func (r *RemoteStore) Apply(nowNs int64, key store.Key, step store.Step) error {
	if err := r.enter("Apply"); err != nil {
		return err
	}
	return r.inner.Apply(nowNs, key, step)
}

func (r *RemoteStore) Entry(nowNs int64, key store.Key) (e store.Entry, ok bool, err error) {
	if err := r.enter("Entry"); err != nil {
		return e, false, err
	}
	return r.inner.Entry(nowNs, key)
}

func (r *RemoteStore) State(nowNs int64, key store.Key) (s limiter.State, ok bool, err error) {
	if err := r.enter("State"); err != nil {
		return s, false, err
	}
	return r.inner.State(nowNs, key)
}

func (r *RemoteStore) Delete(nowNs int64, keys []store.Key) (deleted int, err error) {
	if err := r.enter("Delete"); err != nil {
		return 0, err
	}
	return r.inner.Delete(nowNs, keys)
}

func (r *RemoteStore) Size(ctx context.Context) (keys int, err error) {
	if err := r.enter("Size"); err != nil {
		return 0, err
	}
	counts := make([]store.KeyCount, 1)
	r.inner.Count(ctx, 0, counts)
	return counts[0].Keys, ctx.Err()
}

func (r *RemoteStore) Scan(ctx context.Context, nowNs int64, cursor uint64, count int, visit func(key store.Key, e store.Entry)) (next uint64, err error) {
	if err := r.enter("Scan"); err != nil {
		return 0, err
	}
	if r.isCluster() {
		return 0, store.Failure{Line: LineScan}
	}
	return r.inner.Scan(nowNs, 0, cursor, count, visit), ctx.Err()
}

func (r *RemoteStore) isCluster() (is bool) {
	r.locked(func() { is = r.clustered })
	return is
}

func (r *RemoteStore) OneStep(keys []store.Key) error {
	if r.isCluster() && slices.ContainsFunc(keys, func(k store.Key) bool { return !bytes.Equal(tagOf(k.Name), tagOf(keys[0].Name)) }) {
		return store.Failure{Line: LineCrossSlot}
	}
	return nil
}

func (r *RemoteStore) Begin(ctx context.Context, nowNs int64, keys []store.Key) (store.RemoteTransaction, error) {
	if err := r.enter("Begin"); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, store.Failure{Line: LineDown}
	}
	if err := r.OneStep(keys); err != nil {
		return nil, err
	}
	t := &remoteTransaction{of: r, nowNs: nowNs, keys: keys}
	t.begin()
	return t, nil
}

// tagOf returns the part of a name that determines its slot: the first pair of braces, or all.
func tagOf(name []byte) []byte {
	_, behind, ok := bytes.Cut(name, []byte("{"))
	tag, _, closed := bytes.Cut(behind, []byte("}"))
	if !ok || !closed || len(tag) == 0 {
		return name
	}
	return tag
}

type remoteTransaction struct {
	store.Transaction
	of    *RemoteStore
	nowNs int64
	keys  []store.Key
	ended bool
}

func (t *remoteTransaction) begin() {
	t.Transaction = t.of.inner.Begin(t.nowNs, t.keys)
	t.Release()
}

func (t *remoteTransaction) NowNs() int64 { return t.nowNs }

func (t *remoteTransaction) Commit(ctx context.Context) (done bool, err error) {
	if t.ended {
		return false, nil
	}
	defer func(tx store.Transaction) {
		tx.Rollback()
		if t.ended = done || err != nil; !t.ended {
			t.begin()
		}
	}(t.Transaction)
	if err := t.of.enter("Commit"); err != nil {
		return false, err
	}
	switch {
	case t.of.conflict(): // it may come as the time ends
		return false, nil
	case ctx.Err() != nil:
		return false, store.Failure{Line: LineDown}
	}
	return t.Transaction.Commit(), nil
}

// conflict reports whether this Commit conflicts.
func (r *RemoteStore) conflict() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conflicts > 0 {
		r.conflicts--
		return true
	}
	return r.conflicts < 0
}

var _ store.Remote = (*RemoteStore)(nil)
