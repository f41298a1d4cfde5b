package limiter

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/reserve"
)

type funnels struct{ defaults }

func (funnels) row() Row {
	return Row{
		Name: "funnel", Type: "string", Encoding: "int",
		Command: "cl.throttle", arguments: [MaxArguments]string{"max_burst", "count", "period"}, Quantity: "quantity",
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

func (funnels) eachTAT(s State, nowNs int64, f func(at int, periodNs, tatNs int64)) {
	tatNs, _ := s.TAT(nowNs)
	f(0, 0, tatNs)
}

func (funnels) stamp(to *stamping) {
	to.lastNs = funnel.Shift(to.state.ExpiresNs, -debtOf(to.course.debts, 0).leastNs)
}

type reservations struct{ funnels }

func (reservations) row() Row {
	return Row{Name: "cl-reserving", Type: "string", Encoding: "reservations", Command: "cl.reserve"}
}

// Requests are decided as a Funnel's, so no rule has this kind.

func (reservations) numbers(Rule) Numbers         { return Numbers{} }
func (reservations) share(r Rule, _ float64) Rule { return r }

func (reservations) valid(s State) bool { return reserve.Valid(s.Payload, s.ExpiresNs) }

func (reservations) shift(payload []byte, byNs int64) { reserve.Shift(payload, byNs) }

func (reservations) stamp(to *stamping) {
	d := debtOf(to.course.debts, 0)
	course := reserve.Course{FirstDebtNs: d.firstNs, LeastDebtNs: d.leastNs, Debited: to.course.debited}
	course.Written(to.course.payloadBefore(Reserving), to.state.Payload, to.follow, to.all.add)
}
