package decide

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Probe is the view of a key by a rule, without effect or count.
type Probe struct {
	Known   bool           // the key has a state
	Next    funnel.Result  // of a call for one unit
	Outlook funnel.Outlook // of a funnel
}

// reader is the part of a store for looks.
type reader interface {
	State(nowNs int64, key store.Key) (s limiter.State, ok bool, err error)
}

func Look(on reader, nowNs int64, key store.Key, rule *limiter.Rule) (p Probe, err error) {
	state, known, err := on.State(nowNs, key)
	if err != nil {
		return p, err
	}
	p.Known = known
	if rule.Kind == limiter.Funnel {
		tatNs, err := state.TAT(nowNs)
		if err != nil {
			return p, err
		}
		p.Outlook = rule.Funnel.Outlook(tatNs, nowNs)
	}
	p.Next, _, err = rule.Decide(&state, nowNs, 1) // state is a copy
	return p, err
}
