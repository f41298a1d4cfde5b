package transact

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// Remote is a store on other machines, where keys cannot be held.
type Remote struct {
	Store   store.Remote
	policy  PolicyDecider // nil if the store is none
	timeout time.Duration
	lanes   *lanes // of transactions
}

// DefaultStoreTimeout is the time for conflicting attempts of a transaction.
const DefaultStoreTimeout = 50 * time.Millisecond

// NewRemote returns nil for a local store. A timeout of 0 is DefaultStoreTimeout.
func NewRemote(s store.Store, timeout time.Duration) *Remote {
	on, ok := s.(store.Remote)
	if !ok {
		return nil
	}
	r := &Remote{Store: on, timeout: timeout, lanes: newLanes()}
	r.policy, _ = s.(PolicyDecider)
	if r.timeout <= 0 {
		r.timeout = DefaultStoreTimeout
	}
	return r
}

// Transact repeats a transaction until it has no conflict or its time is over. On an error nothing has
// changed, unless it is a store.Failure that says otherwise.
func (r *Remote) Transact(ctx context.Context, now func() int64, keys []store.Key, do func(in *Space) Verdict) error {
	within, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	leave, ok := r.lanes.enter(within, keys)
	if ok {
		defer leave()
	}
	for conflicts := 1; ; conflicts++ {
		switch {
		case ctx.Err() != nil:
			return reply.ErrEnded
		case !ok:
			return reply.ErrContended
		}
		nowNs := now()
		tx, err := r.Store.Begin(within, nowNs, keys)
		if err != nil && conflicts > 1 && within.Err() != nil { // merely the end of its time
			return reply.ErrContended
		}
		if err != nil {
			return err
		}
		if do(&Space{Keys: tx, NowNs: nowNs}) != Keep {
			return nil
		}
		if done, err := tx.Commit(within); done || err != nil {
			return err
		}
		if !pause(within, conflicts) && ctx.Err() == nil {
			return reply.ErrContended
		}
	}
}

// conflictPause bounds the first pause after a conflict, which separates the competitors.
const conflictPause = 200 * time.Microsecond

// pause waits for a random time that grows with the conflicts. It returns false if ctx ends first.
func pause(ctx context.Context, conflicts int) bool {
	timer := time.NewTimer(rand.N(time.Duration(min(conflicts, 10)) * conflictPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// PolicyDecider is a store.Remote that decides by a policy while its machines do not answer. Throttle applies the
// policy itself; this is for requests of a transaction.
type PolicyDecider interface {
	// DecideByPolicy answers requests that failed. It returns false, without effect, if the policy is to
	// reply the failure, or without requests.
	DecideByPolicy(batch []store.Request, failure error) bool
}

// PolicyDecides reports whether the policy decides after this error: the machines do not answer, and the requests
// are valid.
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
