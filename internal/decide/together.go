package decide

import (
	"bytes"
	"slices"

	"cellserver/internal/decide/observe"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Together decides a batch, of funnels, as one in a transaction: all requests are debited in their order, or, where one of
// them is limited, none. Then the limited ones have their results, and the others those of a look, for that is how they are
// counted, too. With an error the transaction must be undone, for some may have been debited.
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
		if r := &ahead[i].result; r.Limited { // which that look did not find if it is for those before it
			batch[i].Result.Limited, batch[i].Result.RetryAfter = true, r.RetryAfter
		}
	}
	d.sample(nowNs, batch, local)
	return limited, nil
}

// foreseen is what a request of several at once would come to if those before it were debited.
type foreseen struct {
	first  int // of the requests of its key, which has, as far as the requests go:
	state  limiter.State
	empty  limiter.State // what that would be if the key were empty before
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
		if r, _, err := q.Rule.Decide(&first.empty, nowNs, q.Quantity); err != nil || r.Limited { // and so it will always be
			f.result.RetryAfter = -1
		}
	}
	return ahead, nil
}

// firstOf returns which request is the first of a key; the one behind those if none of them is.
func firstOf(requests []store.Request, key *store.Key) int {
	for i := range requests {
		if other := &requests[i].Key; other.DB == key.DB && bytes.Equal(other.Name, key.Name) {
			return i
		}
	}
	return len(requests)
}

// lookOnly has nothing debited. A request that is limited for an earlier one of its key might not be limited alone, so it is
// no more than a look, either.
func lookOnly(batch []store.Request, ahead []foreseen) {
	for i := range batch {
		if !ahead[i].result.Limited || ahead[i].first != i {
			batch[i].Quantity = 0
		}
	}
}
