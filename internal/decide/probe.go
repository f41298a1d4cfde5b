package decide

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Probe is a look at a key by a rule, which changes nothing and is counted nowhere.
type Probe struct {
	Known   bool           // whether the key has a state
	Next    funnel.Result  // what a call for one unit would get now
	Outlook funnel.Outlook // of a funnel
}

// reader is what a look needs of a store.
type reader interface {
	State(nowNs int64, key store.Key) (s limiter.State, ok bool, err error)
}

// Look looks at a key by a rule.
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
	p.Next, _, err = rule.Decide(&state, nowNs, 1) // the state is a copy
	return p, err
}
