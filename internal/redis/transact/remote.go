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

// Remote is a store on other machines, where nobody can be kept from the keys.
type Remote struct {
	Store   store.Remote
	deputy  Deputy // that it is; nil if it is none
	timeout time.Duration
	lanes   *lanes // of transactions
}

// DefaultStoreTimeout is how long the keys of a transaction may be changed by others before it is given up.
const DefaultStoreTimeout = 50 * time.Millisecond

// NewRemote returns nil for a store of this machine. A timeout of 0 is DefaultStoreTimeout.
func NewRemote(s store.Store, timeout time.Duration) *Remote {
	on, ok := s.(store.Remote)
	if !ok {
		return nil
	}
	r := &Remote{Store: on, timeout: timeout, lanes: newLanes()}
	r.deputy, _ = s.(Deputy)
	if r.timeout <= 0 {
		r.timeout = DefaultStoreTimeout
	}
	return r
}

// Transact has something done in transactions until the keys have not been changed by others meanwhile, or its time is over. With
// an error nothing has changed, unless it is a store.Failure that says otherwise.
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
		if err != nil && conflicts > 1 && within.Err() != nil { // no more than the end of its time
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

// conflictPause is how long the first of those that follow a conflict may be, so that those who change the same keys come apart.
const conflictPause = 200 * time.Microsecond

// pause waits for a random time, longer with each conflict, and is false if ctx ends before.
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

// Deputy is a store.Remote that decides by a policy what its machines do not. Throttle does so by itself; this is for the requests
// of a transaction.
type Deputy interface {
	// DecideByPolicy answers requests that a failure has left undecided, at once. It is false if the policy is to reply the failure;
	// then, and where there are no requests, it does nothing.
	DecideByPolicy(batch []store.Request, failure error) bool
}

// StandsIn reports whether what has failed is decided by the store's policy: that its machines do not answer, and nothing that is
// wrong with the requests.
func (r *Remote) StandsIn(err error) bool {
	var failure store.Failure
	return r.deputy != nil && errors.As(err, &failure) && strings.HasPrefix(failure.Line, "STOREDOWN ") && r.deputy.DecideByPolicy(nil, err)
}

// ByPolicy returns where the requests of a transaction find their keys after a failure for which the policy stands in.
func (r *Remote) ByPolicy(failure error) store.Keys {
	return byPolicy{deputy: r.deputy, failure: failure}
}

// byPolicy is where the requests of a transaction find their keys while the store's machines do not answer.
type byPolicy struct {
	NoKeys
	deputy  Deputy
	failure error
}

// Throttle implements store.Keys.
func (p byPolicy) Throttle(_ int64, batch []store.Request) store.Pending {
	p.deputy.DecideByPolicy(batch, p.failure)
	return nil
}
