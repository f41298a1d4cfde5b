package limiter

import (
	"math"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/limiter/window"
)

func (r *Rule) window() window.Limit { return window.Unpack(r.Packed) }

// windows is common to the kinds of windows.
type windows struct{ counted }

func windowRow(name, encoding, command, short string) Row {
	return Row{
		Name: name, Type: name, Encoding: encoding,
		Command: command, arguments: [MaxArguments]string{"max_count", "period"}, CountsDenied: true, Unit: funnel.WholeSeconds,
		Short: short,
	}
}

func (windows) build(s Spec) (Packed, error) {
	l, err := window.NewLimit(s.Unit, s.Numbers[0], s.Numbers[1])
	return l.Packed(), err
}

func (windows) numbers(r Rule) Numbers {
	l := r.window()
	return Numbers{l.MaxCount(), int64(l.PeriodNs() / r.Unit.Ns())}
}

func (windows) makesKey(r Rule, quantity int64) bool {
	return quantity > 0 && (r.Flags&(CountDenied|Debit) != 0 || r.window().Fits(quantity))
}

// chargeExact charges an exact window that was looked at. Of a debit that a rule denies it takes what it has
// left: it can keep no more.
func (p *part) chargeExact(r *Rule, denied bool, nowNs, quantity int64, flags Flags) {
	took, as := quantity, p.result
	if denied {
		took = min(quantity, as.Remaining)
	}
	if denied && (flags&Debit == 0 || took <= 0) {
		return
	}
	p.payload, p.expiresNs, p.changed = r.decideSliding(p.payload, p.expiresNs, nowNs, took, 0, &as)
	if denied {
		as.Limited, as.RetryAfter = p.result.Limited, p.result.RetryAfter
	}
	if p.result = as; p.untilNs > 0 { // a refund
		r.blocked(&p.result, nowNs, p.untilNs, quantity, flags)
	}
}

type fixedWindows struct{ windows }

func (fixedWindows) row() Row {
	r := windowRow("cl-window", "counter", "cl.fixedwindow", "fixedwindow")
	r.Debits = true
	return r
}

func (fixedWindows) left(payload []byte) int64 { return math.MaxInt64 - window.Count(payload) }

func (fixedWindows) valid(s State) bool { return window.ValidFixed(s.Payload) }

func (fixedWindows) endNs(s State, _ int64) int64 { return s.ExpiresNs }

type slidingWindows struct{ windows }

func (slidingWindows) row() Row {
	return windowRow("cl-slidingwindow", "ring", "cl.slidingwindow", "slidingwindow")
}

func (slidingWindows) build(s Spec) (Packed, error) {
	l, err := window.NewExactLimit(s.Unit, s.Numbers[0], s.Numbers[1])
	return l.Packed(), err
}

func (slidingWindows) valid(s State) bool { return window.ValidSliding(s.Payload, s.ExpiresNs) }

func (slidingWindows) shift(payload []byte, byNs int64) { window.ShiftSliding(payload, byNs) }

// clocked has the newest record. Others keep their times, and leave the window at any time: a state lists
// those that have left, too.
func (slidingWindows) clocked(s State, visit Visit) {
	visit(Part{}, ExpiresAt, Latest)
	window.EachNewest(s.Payload, func(at int) { visit(Part{}, at, Latest) })
}

type approxWindows struct{ windows }

func (approxWindows) row() Row {
	r := windowRow("cl-approxwindow", "counters", "cl.slidingwindow", "approxwindow")
	r.Option, r.Debits = "approx", true
	return r
}

func (approxWindows) valid(s State) bool { return window.ValidApprox(s.Payload, s.ExpiresNs) }

func (approxWindows) shift(payload []byte, byNs int64) { window.ShiftApprox(payload, byNs) }

func (approxWindows) clocked(s State, visit Visit) {
	visit(Part{}, ExpiresAt, Latest)
	if window.ValidApprox(s.Payload, s.ExpiresNs) {
		visit(Part{}, window.ApproxStartAt, Latest)
	}
}

func (approxWindows) endNs(s State, nowNs int64) int64 {
	return window.ApproxEndNs(s.Payload, s.ExpiresNs, nowNs)
}

func (r *Rule) calendar() *calendar.Calendar {
	c, _ := r.Shared.(*calendar.Calendar)
	return c
}

type quotas struct{ windows }

func (quotas) row() Row {
	return Row{
		Name: "cl-quota", Type: "cl-quota", Encoding: "counter",
		Command: "cl.quota", arguments: [MaxArguments]string{"max_count"}, CountsDenied: true, Debits: true,
		Unit: funnel.WholeSeconds, Calendar: true,
	}
}

func (quotas) build(s Spec) (Packed, error) {
	if s.Calendar == nil {
		return Packed{}, ErrWrongType
	}
	l, err := window.NewCount(s.Numbers[0])
	return l.Packed(), err
}

func (quotas) numbers(r Rule) Numbers { return Numbers{r.window().MaxCount()} }

func (quotas) left(payload []byte) int64 { return math.MaxInt64 - window.Count(payload) }

func (quotas) valid(s State) bool { return window.ValidFixed(s.Payload) }

func (quotas) endNs(s State, _ int64) int64 { return s.ExpiresNs }
