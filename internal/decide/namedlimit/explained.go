package namedlimit

import (
	"strconv"
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
	by    *Policy
}

// ExplainedRule is a rule as text, and its answer to a look for one unit, in seconds.
type ExplainedRule struct {
	Rule       string
	Result     funnel.Result
	BlockedFor int64 // until the end of the rule's block, in seconds; 0 without

	left int64 // units, of a limit with a unit
}

// Explained returns the step for a key.
func (l *Limit) Explained(key []byte, when *Moment, reading funnel.Reading) *Explained {
	by := l.Explain(key, when, reading)
	e := &Explained{Override: by.Override, named: by.Named, by: &by.Policy}
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
		if e.named.Unit != "" {
			e.Rules[i].left = e.named.Look(i, s, nowNs, 0).Remaining
		}
	}
	return false, nil
}

// Text returns the i-th rule as text, and of a limit in dollars what is left and how much comes back, in
// parentheses:
//
//	QUOTA 50000000 MONTH ($37.66 of $50.00 left)
func (e *Explained) Text(i int) string {
	r := &e.Rules[i]
	if e.named.Unit != USD || e.named.Constant != limiter.ByRules {
		return r.Rule
	}
	amounts := Dollars(max(0, r.left)) + " of " + Dollars(r.Result.Limit) + " left"
	if rule := &e.by.Rules[i]; rule.Algorithm == Funnel || rule.Algorithm == TokenBucket {
		amounts += ", " + Dollars(rule.Count) + " every " + strconv.FormatInt(rule.PeriodSec, 10) + " s"
	}
	return r.Rule + " (" + amounts + ")"
}

// CutAmounts returns a rule's text without the amounts that Text adds.
func CutAmounts(text string) string {
	rule, _, _ := strings.Cut(text, " (")
	return rule
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
