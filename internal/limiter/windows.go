package limiter

import (
	"math"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/window"
)

// OfWindow returns the rule of a kind of window.
func OfWindow(kind Kind, l window.Limit) Rule { return Rule{Kind: kind, Packed: l.Packed()} }

func (r *Rule) window() window.Limit { return window.Unpack(r.Packed) }

// windows is common to the kinds of windows.
type windows struct{ defaults }

func windowRow(name, encoding, command, short string) Row {
	return Row{
		Name: name, Type: name, Encoding: encoding,
		Command: command, arguments: [MaxArguments]string{"max_count", "period"}, Quantity: "quantity", CountsDenied: true, Unit: funnel.WholeSeconds,
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

func (windows) share(r Rule, share float64) Rule {
	r.Packed = r.window().Share(share).Packed()
	return r
}

func (windows) makesKey(r Rule, quantity int64) bool {
	return quantity > 0 && (r.Flags&(CountDenied|Debit) != 0 || r.window().Fits(quantity))
}

type fixedWindows struct{ windows }

func (fixedWindows) row() Row {
	r := windowRow("cl-window", "counter", "cl.fixedwindow", "fixedwindow")
	r.Debits = true
	return r
}

func (fixedWindows) left(payload []byte) int64 { return math.MaxInt64 - window.Count(payload) }

func (fixedWindows) valid(s State) bool { return window.ValidFixed(s.Payload) }

func (fixedWindows) stamp(to *stamping) {
	if to.lastNs = to.course.nowNs + 1; to.course.payloadBefore(FixedWindow) == nil {
		to.lastNs = to.state.ExpiresNs
	}
}

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

func (slidingWindows) stamp(to *stamping) {
	window.WrittenAt(to.state.Payload, to.course.nowNs, func(at int) {
		to.all.add(at, to.course.nowNs, 0, math.MaxInt64, false)
		to.lastNs = to.state.ExpiresNs
	})
}

type approxWindows struct{ windows }

func (approxWindows) row() Row {
	r := windowRow("cl-approxwindow", "counters", "cl.slidingwindow", "approxwindow")
	r.Option, r.Debits = "approx", true
	return r
}

func (approxWindows) valid(s State) bool { return window.ValidApprox(s.Payload, s.ExpiresNs) }

func (approxWindows) shift(payload []byte, byNs int64) { window.ShiftApprox(payload, byNs) }

func (approxWindows) stamp(to *stamping) {
	endNs := to.state.ExpiresNs
	if startNs, fromNs, ok := window.ApproxStart(to.state.Payload, endNs, to.course.nowNs); ok {
		to.all.add(0, startNs, fromNs, math.MaxInt64, false)
		to.lastNs = funnel.Shift(endNs, -fromNs)
	}
}
