package session

import (
	"errors"
	"strings"

	"cellserver/internal/store"
)

// Deputy is a store.Remote that decides by a policy what its machines do not. Throttle does so by itself; this is for the requests
// of a transaction.
type Deputy interface {
	// DecideByPolicy answers requests that a failure has left undecided, at once. It is false if the policy is to reply the failure;
	// then, and where there are no requests, it does nothing.
	DecideByPolicy(batch []store.Request, failure error) bool
}

// standsIn reports whether what has failed is decided by the store's policy: that its machines do not answer, and nothing that is
// wrong with the requests.
func (r *remote) standsIn(err error) bool {
	var failure store.Failure
	return r.deputy != nil && errors.As(err, &failure) && strings.HasPrefix(failure.Line, "STOREDOWN ") && r.deputy.DecideByPolicy(nil, err)
}

// byPolicy is where the requests of a transaction find their keys while the store's machines do not answer.
type byPolicy struct {
	noKeys
	deputy  Deputy
	failure error
}

// Throttle implements store.Keys.
func (p byPolicy) Throttle(_ int64, batch []store.Request) store.Pending {
	p.deputy.DecideByPolicy(batch, p.failure)
	return nil
}
