package decide

import (
	"bytes"
	"errors"
	"slices"

	"cellserver/internal/decide/observe"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Together decides requests in a transaction: it charges all in order, or none if one is limited.
// Then limited requests have the results that they would have behind the earlier ones, and the others those
// of a look, as which they are counted. On an error the transaction must be undone, as some may have been
// charged.
func (d *Decider) Together(tx store.Keys, nowNs int64, batch []store.Request, local *observe.Local) (limited bool, err error) {
	ahead, err := foresee(tx, nowNs, batch)
	if err != nil {
		return false, err
	}
	limited = slices.ContainsFunc(ahead, func(f foreseen) bool { return f.result.Limited })
	if limited {
		lookOnly(batch, ahead)
	}
	tx.Throttle(nowNs, batch)
	for i := range ahead {
		if batch[i].Err != nil {
			return false, batch[i].Err
		}
		if f := &ahead[i]; f.result.Limited { // perhaps by earlier requests only
			batch[i].Result = f.result
			if n, ok := batch[i].Rule.Shared.(*limiter.NamedLimit); ok {
				copy(n.Results(), f.rules)
			}
		}
	}
	d.sample(nowNs, batch, local)
	return limited, nil
}

// Each decides requests in a transaction, each by itself. On an error the transaction must be undone.
func (d *Decider) Each(tx store.Keys, nowNs int64, batch []store.Request, local *observe.Local) (limited bool, err error) {
	tx.Throttle(nowNs, batch)
	for i := range batch {
		if batch[i].Err != nil {
			return false, batch[i].Err
		}
		limited = limited || batch[i].Result.Limited
	}
	d.sample(nowNs, batch, local)
	return limited, nil
}

// foreseen is a request's result if the earlier ones were charged.
type foreseen struct {
	first  int // index of its key's first request, which holds the key's states:
	state  limiter.State
	empty  limiter.State // as if the key had been empty
	result funnel.Result
	rules  []funnel.Result // of a precise named limit that limits
}

func foresee(tx store.Keys, nowNs int64, batch []store.Request) (ahead []foreseen, err error) {
	ahead = make([]foreseen, len(batch))
	look := limiter.Operation{Verb: limiter.Look} // shared, as it escapes
	for i := range batch {
		q, f := &batch[i], &ahead[i]
		f.first = firstOf(batch[:i], &q.Key)
		first := &ahead[f.first]
		if f.first == i {
			if first.state, err = stateFor(tx, nowNs, q, &look); err != nil {
				return nil, err
			}
		}
		own := q.Rule
		if f.first != i { // earlier ones may be what limits it; they will not have been charged
			own.Flags |= limiter.NoBlock
		}
		if f.result, _, err = own.Decide(&first.state, nowNs, q.Quantity); err != nil {
			return nil, err
		}
		n, _ := q.Rule.Shared.(*limiter.NamedLimit)
		if n != nil && f.result.Limited {
			f.rules = slices.Clone(n.Results())
		}
		r, _, err := own.Decide(&first.empty, nowNs, q.Quantity)
		if f.result.Limited && (err != nil || r.Limited) {
			f.limitForever(n, first, nowNs, q.Quantity)
		}
	}
	return ahead, nil
}

// limitForever answers a limited request that an empty key would limit, too: by a rule that does.
func (f *foreseen) limitForever(n *limiter.NamedLimit, first *foreseen, nowNs, quantity int64) {
	for i := 0; n != nil && i < len(n.Rules); i++ {
		r := n.Look(i, &first.state, nowNs, quantity)
		if !r.Limited || !n.Look(i, &first.empty, nowNs, quantity).Limited {
			continue
		}
		if r.RetryAfter = -1; f.rules != nil {
			f.rules[i] = r
		}
		if f.result.RetryAfter >= 0 {
			r.Marks = f.result.Marks
			f.result = r
		}
	}
	f.result.RetryAfter = -1
}

// stateFor returns what decides a request: of a funnel its TAT, without its reservations.
func stateFor(tx store.Keys, nowNs int64, q *store.Request, look *limiter.Operation) (s limiter.State, err error) {
	if q.Rule.Kind == limiter.Funnel {
		if err = tx.Apply(nowNs, q.Key, look); !errors.Is(err, limiter.ErrWrongType) {
			return limiter.State{ExpiresNs: look.AtNs}, err
		}
	}
	s, _, err = tx.State(nowNs, q.Key) // also of a funnel with holds
	return s, err
}

// firstOf returns the index of a key's first request, or len(requests).
func firstOf(requests []store.Request, key *store.Key) int {
	for i := range requests {
		if other := &requests[i].Key; other.DB == key.DB && bytes.Equal(other.Name, key.Name) {
			return i
		}
	}
	return len(requests)
}

// lookOnly turns requests into looks, except those limited on their own: one limited by earlier requests on
// its key might be allowed without them.
func lookOnly(batch []store.Request, ahead []foreseen) {
	for i := range batch {
		if !ahead[i].result.Limited || ahead[i].first != i {
			batch[i].Quantity = 0
		}
	}
}
