package decide

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Probe is a look at a key's funnel, which changes nothing and is counted nowhere.
type Probe struct {
	Known   bool          // whether the key has a state
	Now     funnel.Result // of a call for no unit
	Next    funnel.Result // of a call for one
	Outlook funnel.Outlook
}

// reader is what a look needs of a store.
type reader interface {
	State(nowNs int64, key store.Key) (s limiter.State, ok bool, err error)
}

// Look looks at the funnel that a key has by a limit.
func Look(on reader, nowNs int64, key store.Key, limit funnel.Limit) (p Probe, err error) {
	state, known, err := on.State(nowNs, key)
	if err != nil {
		return p, err
	}
	p.Known = known
	tatNs, err := state.TAT(nowNs)
	if err != nil {
		return p, err
	}
	_, p.Now = limit.Throttle(tatNs, nowNs, 0)
	_, p.Next = limit.Throttle(tatNs, nowNs, 1)
	p.Outlook = limit.Outlook(tatNs, nowNs)
	return p, nil
}
