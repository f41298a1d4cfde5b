package decide

import (
	"bytes"
	"slices"

	"cellserver/internal/decide/observe"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Together decides requests on funnels in a transaction: it charges all in order, or none if one is limited.
// Then limited requests have their results, and the others those of a look, as which they are counted. On an
// error the transaction must be undone, as some may have been charged.
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
		if r := &ahead[i].result; r.Limited { // limited by earlier requests only
			batch[i].Result.Limited, batch[i].Result.RetryAfter = true, r.RetryAfter
		}
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
}

func foresee(tx store.Keys, nowNs int64, batch []store.Request) (ahead []foreseen, err error) {
	ahead = make([]foreseen, len(batch))
	look := limiter.Operation{Verb: limiter.Look}
	for i := range batch {
		q, f := &batch[i], &ahead[i]
		f.first = firstOf(batch[:i], &q.Key)
		first := &ahead[f.first]
		if f.first == i {
			if err = tx.Apply(nowNs, q.Key, &look); err != nil {
				return nil, err
			}
			first.state = limiter.State{ExpiresNs: look.AtNs}
		}
		if f.result, _, err = q.Rule.Decide(&first.state, nowNs, q.Quantity); err != nil {
			return nil, err
		}
		// limited forever
		if r, _, err := q.Rule.Decide(&first.empty, nowNs, q.Quantity); err != nil || r.Limited {
			f.result.RetryAfter = -1
		}
	}
	return ahead, nil
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
