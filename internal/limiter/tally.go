package limiter

import (
	"math"
	"math/bits"
	"sync/atomic"

	"cellserver/internal/funnel"
)

// Counts counts the requests for units of a named limit.
type Counts struct {
	Outcomes            // by the limit's own rules
	Overridden Outcomes // by overrides

	Held, Settled, Late atomic.Uint64 // holds, of those settled in time, and after it
}

// Outcomes counts requests for units. Near ones are among the allowed. Over ones are debits charged beyond
// the limit, and among the limited or, in a shadow, the shadow-limited.
type Outcomes struct{ Allowed, Limited, ShadowLimited, Near, Over atomic.Uint64 }

// IsNear reports whether a decided request is allowed and its key near the limit. In a shadow it is near, too,
// where the request would be denied.
func (n *NamedLimit) IsNear(r *funnel.Result) bool {
	return !r.Limited && r.Marks&(funnel.Shadowed|funnel.MarksOf(0, math.MaxUint16)) != 0
}

// outcomes is Outcomes of one goroutine.
type outcomes struct{ allowed, limited, shadowLimited, near, over int64 }

// Tally sums up consecutive requests of a named limit, whose counters all event loops share.
type Tally struct {
	of *NamedLimit
	outcomes
	rules [MaxRules]outcomes // but for allowed, which is the same for all
	marks uint16             // the rules with a sum
}

type Counter interface {
	Count(into *atomic.Uint64, n uint64)
}

// Add counts a request. It first passes the sums of another limit on.
func (t *Tally) Add(r *Rule, quantity int64, result *funnel.Result, to Counter) {
	n := r.named()
	if n == nil || n.Counts == nil || quantity <= 0 {
		return
	}
	if t.of != n {
		t.Flush(to)
		t.of = n
	}
	if !result.Limited && result.Marks == 0 {
		t.allowed++
		return
	}
	of := outcomes{}
	switch over := result.Marks.Denied() != 0 && r.Flags&Debit != 0; {
	case result.Limited:
		of.limited = 1
		of.over = oneIf(over)
	case result.Marks&funnel.Shadowed != 0:
		of.shadowLimited = 1
		of.over = oneIf(over)
	default:
		t.allowed++
		of.near = oneIf(result.Marks.Near() != 0)
	}
	if of == (outcomes{}) {
		return
	}
	t.add(of)
	marked := result.Marks.Denied() | result.Marks.Near()
	t.marks |= marked
	for ; marked != 0; marked &= marked - 1 {
		t.rules[bits.TrailingZeros16(marked)%MaxRules].add(of)
	}
}

func (o *outcomes) add(other outcomes) {
	o.limited += other.limited
	o.shadowLimited += other.shadowLimited
	o.near += other.near
	o.over += other.over
}

// Flush passes the sums on.
func (t *Tally) Flush(to Counter) {
	if t.of == nil {
		return
	}
	total, all := t.outcomes, &t.of.Counts.Outcomes
	if t.of.Overridden {
		all = &t.of.Counts.Overridden
	}
	total.pass(all, to)
	for i, into := range t.of.ByRule {
		of := outcomes{}
		if t.marks>>i&1 != 0 {
			of = t.rules[i%MaxRules]
		}
		of.allowed = total.allowed
		of.pass(into, to)
	}
	for marks := t.marks; marks != 0; marks &= marks - 1 {
		t.rules[bits.TrailingZeros16(marks)%MaxRules] = outcomes{}
	}
	t.of, t.outcomes, t.marks = nil, outcomes{}, 0
}

func (o *outcomes) pass(into *Outcomes, to Counter) {
	for _, c := range [...]struct {
		into *atomic.Uint64
		n    int64
	}{{&into.Allowed, o.allowed}, {&into.Limited, o.limited}, {&into.ShadowLimited, o.shadowLimited}, {&into.Near, o.near}, {&into.Over, o.over}} {
		if c.n > 0 {
			to.Count(c.into, uint64(c.n))
		}
	}
}
