package transact

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// Remote is a store on other machines, where keys cannot be held.
type Remote struct {
	Store   store.Remote
	policy  PolicyDecider // nil if the store has no policy
	timeout time.Duration
	now     func() int64
	line    *line
}

// DefaultStoreTimeout is the time for conflicting attempts of a transaction.
const DefaultStoreTimeout = 50 * time.Millisecond

// NewRemote returns a Remote by the caller's clock. A timeout of 0 is DefaultStoreTimeout.
func NewRemote(s store.Remote, timeout time.Duration, now func() int64) *Remote {
	r := &Remote{Store: s, timeout: timeout, now: now, line: newLine()}
	r.policy, _ = s.(PolicyDecider)
	if r.timeout <= 0 {
		r.timeout = DefaultStoreTimeout
	}
	return r
}

// Transact carries out a caller's part of a transaction, and repeats it until it has no conflict or the
// caller's time is over: the timeout from its turn on, and twice that in all. On an error nothing has
// changed, unless it is a store.Failure that says otherwise.
//
// This server's callers on the same keys come one after the other, as concurrent attempts would mostly
// conflict; who waits meanwhile shares the next transaction.
func (r *Remote) Transact(ctx context.Context, p Part) error {
	if err := r.Store.OneStep(p.Keys); err != nil { // those that share it have the same slot
		return err
	}
	m := newMember(p)
	r.begin(r.line.enter(m))
	defer func() { r.begin(r.line.leave(m)) }()
	timer := time.NewTimer(r.timeout)
	defer timer.Stop()
	for over, gone := timer.C, ctx.Done(); ; {
		select {
		case in := <-m.turn:
			m.decide(in)
			continue
		case err := <-m.outcome:
			if b, is := err.(broken); is { //nolint:errorlint // it is never wrapped
				panic(b.Error())
			}
			return err
		case <-over:
			if left := r.line.left(m, r.timeout); left > 0 {
				timer.Reset(left)
				continue
			}
		case <-gone:
		}
		if over, gone = nil, nil; !r.line.endLast(m) {
			r.begin(r.line.leave(m))
			return r.gaveUp(ctx, m)
		}
	}
}

// gaveUp returns the error for a member whose time is over.
func (r *Remote) gaveUp(ctx context.Context, m *member) error {
	unanswered := func(charged string) error {
		return store.Failure{Line: "STOREDOWN no answer within " + r.timeout.String() + "; " + charged}
	}
	switch {
	case m.stage == decided:
		return unanswered("it may have been charged")
	case ctx.Err() != nil:
		return reply.ErrEnded
	case m.stage == lost:
		return reply.ErrContended
	default:
		return unanswered("nothing was charged")
	}
}

func (r *Remote) begin(joints []*joint) {
	for _, j := range joints {
		go r.run(j)
	}
}

// run carries out a joint transaction.
func (r *Remote) run(j *joint) {
	defer func() {
		j.recovered(recover())
		r.begin(r.line.end(j))
	}()
	err := r.attempt(j)
	if len(j.members) > 1 && errors.Is(err, store.ErrTooLarge) {
		j.again, j.members = append(j.again, j.members...), nil
	}
	if j.finish(err); j.ctx.Err() != nil { // nobody has time left
		j.members, j.again = j.again, nil
		j.finish(reply.ErrContended)
	}
}

func (r *Remote) attempt(j *joint) error {
	tx, err := r.Store.Begin(j.ctx, r.now(), j.keys)
	if err != nil {
		return err
	}
	for j.decide(&Space{Keys: tx, NowNs: tx.NowNs()}) {
		if done, err := tx.Commit(j.ctx); done || err != nil {
			return err
		}
		if j.lose(); !pause(j.ctx) {
			return reply.ErrContended
		}
	}
	return nil
}

// conflictPause bounds the pause after a conflict, which separates those who have lost. It is shorter than a
// round trip to another machine, so that they write before the winner's next read and write, and does not
// grow: the longer the pause, the more likely is another change meanwhile.
const conflictPause = 200 * time.Microsecond

// pause waits for a random time. It returns false if ctx ends first.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(rand.N(conflictPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// PolicyDecider is a store.Remote that decides by a policy while its machines do not answer. Throttle applies
// the policy itself; this is for requests of a transaction.
type PolicyDecider interface {
	// DecideByPolicy answers requests that failed. It returns false, without effect, if the policy is to
	// reply the failure, or without requests.
	DecideByPolicy(batch []store.Request, failure error) bool
}

// PolicyDecides reports whether the policy decides after this error: the machines do not answer, and the
// requests are valid.
func (r *Remote) PolicyDecides(err error) bool {
	var failure store.Failure
	return r.policy != nil && errors.As(err, &failure) && strings.HasPrefix(failure.Line, "STOREDOWN ") && r.policy.DecideByPolicy(nil, err)
}

// ByPolicy returns the keys for requests of a transaction after a failure that the policy covers.
func (r *Remote) ByPolicy(failure error) store.Keys {
	return byPolicy{policy: r.policy, failure: failure}
}

type byPolicy struct {
	NoKeys
	policy  PolicyDecider
	failure error
}

func (p byPolicy) Throttle(_ int64, batch []store.Request) store.Pending {
	p.policy.DecideByPolicy(batch, p.failure)
	return nil
}

// Walk returns all keys of the store, for one command.
func (r *Remote) Walk(ctx context.Context) store.Walker { return &walk{Remote: r.Store, ctx: ctx} }

// walk iterates over a remote store. Walker returns no error; walk records the first.
type walk struct {
	store.Remote
	ctx context.Context
	err error
}

var _ store.Walker = (*walk)(nil)

// WalkFailed returns a Walker's recorded error for the reply, or nil.
func WalkFailed(all store.Walker) error {
	if w, ok := all.(*walk); ok && w.err != nil {
		return reply.StoreFailed(w.err)
	}
	return nil
}

// fail records the first error.
func (w *walk) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Count implements store.Walker. The number of expiring keys is unknown.
func (w *walk) Count(ctx context.Context, _ int64, counts []store.KeyCount) {
	n, err := w.Size(ctx)
	if err != nil {
		w.fail(err)
		return
	}
	counts[0].Keys += n
}

func (w *walk) Scan(nowNs int64, _ uint16, cursor uint64, count int, visit func(key store.Key, e store.Entry)) (next uint64) {
	next, err := w.Remote.Scan(w.ctx, nowNs, cursor, count, visit)
	if err != nil {
		w.fail(err)
		return 0
	}
	return next
}

// The catalog of such a store refuses the commands of the following methods.

func (w *walk) MemoryUsage(int64, store.Key) (bytes int, ok bool) {
	w.fail(reply.ErrNoWalk)
	return 0, false
}

func (w *walk) Flush(context.Context, uint16) { w.fail(reply.ErrNoWalk) }

func (w *walk) FlushAll() { w.fail(reply.ErrNoWalk) }

// NoKeys stands in for the keys of commands without any, and of scripts on a remote store: those that are not
// a single call are refused, single calls run here only to produce their errors.
type NoKeys struct{}

func (NoKeys) Throttle(_ int64, batch []store.Request) store.Pending {
	for i := range batch {
		batch[i].Err = reply.ErrOneCallScript
	}
	return nil
}

func (NoKeys) Apply(int64, store.Key, store.Step) error { return reply.ErrOneCallScript }

func (NoKeys) Entry(int64, store.Key) (e store.Entry, ok bool, err error) {
	return e, false, reply.ErrOneCallScript
}

func (NoKeys) State(int64, store.Key) (s limiter.State, ok bool, err error) {
	return s, false, reply.ErrOneCallScript
}

func (NoKeys) Delete(int64, []store.Key) (deleted int, err error) { return 0, reply.ErrOneCallScript }

func (NoKeys) Save() (undo func()) { return func() {} }
