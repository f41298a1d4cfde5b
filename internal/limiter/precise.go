package limiter

import (
	"slices"

	"cellserver/internal/funnel"
)

// Precise returns a copy for one request: times are in milliseconds, and Results are kept. It is made in the
// place of an earlier copy, unless that is nil.
func (n *NamedLimit) Precise(in *Precise) *NamedLimit {
	if in == nil {
		in = &Precise{}
	}
	rules, results := in.Rules[:0], in.results[:0]
	if cap(rules) == 0 {
		rules, results = in.rule[:0], in.result[:0]
	}
	in.NamedLimit = *n
	rules = append(rules, n.Rules...)
	in.Rules, in.results = rules, slices.Grow(results, len(rules))[:len(rules)]
	clear(in.results)
	for i := range in.Rules {
		in.Rules[i].Rule.Unit = funnel.Milliseconds
	}
	return &in.NamedLimit
}

// Precise is a copy of a limit for one request, in one allocation for one rule.
type Precise struct {
	NamedLimit
	rule   [1]NamedRule
	result [1]funnel.Result
}

// Results returns the result of each rule in the last decision of a Precise limit. After a denial, but for a
// shadow's, those of rules that allow the request count it.
func (n *NamedLimit) Results() []funnel.Result { return n.results }

// uncharge makes the results of rules that allow a request those of a look: a shadow that denies none has
// charged none either.
func (n *NamedLimit) uncharge(s *State, nowNs int64, result *funnel.Result) {
	for i := range n.results {
		if result.Marks.Denied()>>i&1 == 0 {
			n.results[i] = n.Look(i, s, nowNs, 0)
		}
	}
}
