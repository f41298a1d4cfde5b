package decide

import (
	"cellserver/internal/funnel"
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
	TAT(nowNs int64, key store.Key) (tatNs int64, ok bool, err error)
}

// Look looks at the funnel that a key has by a limit.
func Look(on reader, nowNs int64, key store.Key, limit funnel.Limit) (p Probe, err error) {
	tatNs, known, err := on.TAT(nowNs, key)
	if err != nil {
		return p, err
	}
	if p.Known = known; !known {
		tatNs = nowNs
	}
	_, p.Now = limit.Throttle(tatNs, nowNs, 0)
	_, p.Next = limit.Throttle(tatNs, nowNs, 1)
	p.Outlook = limit.Outlook(tatNs, nowNs)
	return p, nil
}
