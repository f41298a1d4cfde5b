package namedlimit

import (
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Explained is what decides a key's requests, and what is left: a store.Step that looks at the key's state.
type Explained struct {
	limiter.Base
	Override string // as text; "" for none
	Rules    []ExplainedRule

	named *limiter.NamedLimit
}

// ExplainedRule is a rule as text, and its answer to a look for one unit, in seconds.
type ExplainedRule struct {
	Rule       string
	Result     funnel.Result
	BlockedFor int64 // until the end of the rule's block, in seconds; 0 without
}

// Explained returns the step for a key.
func (l *Limit) Explained(key []byte, when *Moment, reading funnel.Reading) *Explained {
	by := l.Explain(key, when, reading)
	e := &Explained{Override: by.Override, named: by.Named}
	if by.Named.Constant != limiter.ByRules {
		rule := limiter.OfNamed(by.Named)
		result, _ := rule.Constantly()
		e.Rules = []ExplainedRule{{Rule: strings.Join(by.Words(reading), " "), Result: result}}
		return e
	}
	e.Rules = make([]ExplainedRule, len(by.Rules))
	for i := range by.Rules {
		e.Rules[i].Rule = by.Rules[i].Text(reading)
	}
	return e
}

func (e *Explained) Do(s *limiter.State, nowNs int64) (changed bool, err error) {
	switch {
	case s.ExpiresNs > nowNs && s.Kind != limiter.Named:
		return false, limiter.ErrWrongType
	case e.named.Constant != limiter.ByRules:
		return false, nil
	}
	for i := range e.Rules {
		e.Rules[i].Result = e.named.Look(i, s, nowNs, 1)
		e.Rules[i].BlockedFor = funnel.WholeSeconds.Of(e.named.BlockedNs(i, s, nowNs))
	}
	return false, nil
}

func (e *Explained) MakesKey() bool { return false }

func (e *Explained) Traits() limiter.Traits {
	return limiter.Traits{Kind: limiter.Named, KeepsPayload: true}
}

func (e *Explained) Copy() (c store.Step, take func()) {
	own := *e
	own.Rules = append([]ExplainedRule(nil), e.Rules...)
	return &own, func() { e.Rules = own.Rules }
}
