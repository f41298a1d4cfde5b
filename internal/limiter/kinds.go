package limiter

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/reserve"
	"cellserver/internal/limiter/window"
)

// Kind is the meaning of a key's state. Its number is stored.
type Kind uint8

const (
	Funnel        Kind = iota // expires at its TAT; no payload
	Reserving                 // a funnel with reservations; expires with the last one and the TAT
	FixedWindow               // expires with its window
	SlidingWindow             // expires when its newest record leaves the window
	ApproxWindow              // expires when no unit counts
	Bucket                    // never expires, except by EXPIRE
	Concurrency               // expires with its last lease
	Named                     // the rules of a named limit
	Quota                     // expires with its window of the calendar
	Value                     // a counter or a text of Redis's; never expires, except by its caller's choice
	Kinds
)

// of returns a kind's behavior. A new kind takes a constant, a type, and a case here and in decideSmall.
func (k Kind) of() kind {
	switch k {
	case Funnel:
		return funnels{}
	case Reserving:
		return reservations{}
	case FixedWindow:
		return fixedWindows{}
	case SlidingWindow:
		return slidingWindows{}
	case ApproxWindow:
		return approxWindows{}
	case Bucket:
		return buckets{}
	case Concurrency:
		return leases{}
	case Named:
		return namedLimits{}
	case Quota:
		return quotas{}
	case Value:
		return values{}
	case holdsKind:
		return holds{}
	default:
		return noKind{}
	}
}

// decideSmall decides for all kinds but Named and SlidingWindow, with the payload and the expiry of a state
// of the kind, or of an expired one: an empty payload and nowNs. It sets the result in place, as copying
// fresh stores would stall. Direct calls keep the pointers' targets, and the payload, on the stack.
func (r *Rule) decideSmall(payload []byte, expiresNs, nowNs, quantity int64, flags Flags, result *funnel.Result) (newPayload []byte, newExpiresNs int64, changed bool) {
	o := window.Options{Unit: r.Unit, CountDenied: flags&CountDenied != 0, Debit: flags&Debit != 0}
	switch r.Kind {
	case Funnel:
		newExpiresNs, *result = r.decideFunnel(expiresNs, nowNs, quantity, flags)
		return payload, newExpiresNs, newExpiresNs != expiresNs
	case FixedWindow:
		payload, expiresNs, *result, changed = r.window().Fixed(payload, expiresNs, nowNs, quantity, o)
	case ApproxWindow:
		payload, expiresNs, *result, changed = r.window().Approx(payload, expiresNs, nowNs, quantity, o)
	case Bucket:
		payload, expiresNs, *result, changed = takeUnits(r.Packed[0], payload, expiresNs, nowNs, quantity)
	case Quota:
		payload, expiresNs, *result, changed = r.window().Until(payload, expiresNs, nowNs, r.calendar().EndNs(nowNs), quantity, o)
	default:
		*result = funnel.Result{}
	}
	return payload, expiresNs, changed
}

// decideSliding is decideSmall for SlidingWindow, whose payload may be large.
func (r *Rule) decideSliding(payload []byte, expiresNs, nowNs, quantity int64, flags Flags, result *funnel.Result) (newPayload []byte, newExpiresNs int64, changed bool) {
	o := window.Options{Unit: r.Unit, CountDenied: flags&CountDenied != 0}
	payload, expiresNs, *result, changed = r.window().Sliding(payload, expiresNs, nowNs, quantity, o)
	return payload, expiresNs, changed
}

// decideFunnel decides for a funnel without reservations.
func (r *Rule) decideFunnel(tatNs, nowNs, quantity int64, flags Flags) (newTATNs int64, result funnel.Result) {
	if flags&Debit == 0 {
		return r.Funnel.ThrottleIn(r.Unit, tatNs, nowNs, quantity)
	}
	return r.Funnel.DebitIn(r.Unit, tatNs, nowNs, quantity)
}

type funnels struct{ defaults }

func (funnels) row() Row {
	return Row{
		Name: "funnel", Type: "string", Encoding: "int",
		Command: "cl.throttle", arguments: [MaxArguments]string{"max_burst", "count", "period"},
		Short: "throttle",
	}
}

func (funnels) numbers(r Rule) Numbers { return funnelNumbers(r.Unit, r.Funnel) }

func funnelNumbers(unit funnel.Unit, l funnel.Limit) Numbers {
	count, period := l.Arguments(unit)
	return Numbers{l.Capacity(), count, period}
}

func (funnels) share(r Rule, share float64) Rule {
	r.Funnel = r.Funnel.Share(share)
	return r
}

func (funnels) valid(s State) bool { return len(s.Payload) == 0 }

type reservations struct{ funnels }

func (reservations) row() Row {
	return Row{Name: "cl-reserving", Type: "string", Encoding: "reservations", Command: "cl.reserve"}
}

// Requests are decided as a Funnel's, so no rule has this kind.

func (reservations) numbers(Rule) Numbers         { return Numbers{} }
func (reservations) share(r Rule, _ float64) Rule { return r }

func (reservations) valid(s State) bool { return reserve.Valid(s.Payload, s.ExpiresNs) }

func (reservations) shift(payload []byte, byNs int64) { reserve.Shift(payload, byNs) }

// clocked has the expiry, which depends on all other numbers, and least debts as at the later time: Accept
// corrects the former, and less of the latter returns a little less.
func (reservations) clocked(s State, visit Visit) {
	visit(Part{}, ExpiresAt, AsLater)
	reserve.Each(s.Payload, func(id uint64, at int, part reserve.Part) {
		form := Latest
		switch part {
		case reserve.First:
			form = Earliest
		case reserve.LeastDebt:
			form = AsLater
		case reserve.TAT, reserve.Last, reserve.Expiry:
		}
		visit(Part{uint8(part), id}, at, form)
	})
}

func (reservations) endNs(s State, nowNs int64) int64 { return reserve.NextExpiryNs(s.Payload, nowNs) }
