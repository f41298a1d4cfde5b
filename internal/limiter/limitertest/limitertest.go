// Package limitertest makes states, requests and operations of every kind for tests of their storage and
// transport.
package limitertest

import (
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/limiter/value"
)

const (
	// capacity of each limiter.
	capacity = 1000
	// LifeNs is the life of a state from State, half of an approximate window's.
	LifeNs = int64(time.Hour)
)

// State returns a state with some units taken, as calls make it LifeNs before its expiry; a bucket never
// expires.
func State(kind limiter.Kind, expiresNs int64, units int64) (limiter.State, error) {
	nowNs := expiresNs - LifeNs
	switch kind {
	case limiter.Value:
		return limiter.State{Kind: kind, ExpiresNs: expiresNs, Payload: value.AppendCounter(nil, units)}, nil
	case limiter.Reserving, limiter.Concurrency:
		limit, err := funnel.NewLimit(funnel.Burst, capacity, units, LifeNs/int64(time.Second))
		if err != nil {
			return limiter.State{}, err
		}
		o := limiter.Operation{Verb: limiter.Reserve, Funnel: limit, Quantity: units, Max: capacity, ID: uint64(units), TTLNs: LifeNs}
		if kind == limiter.Concurrency {
			o.Verb = limiter.Acquire
		}
		var s limiter.State
		_, err = o.Do(&s, nowNs)
		return s, err
	default:
	}
	like := kind
	if kind == limiter.Quota { // whose calendar chooses the end
		like = limiter.FixedWindow
	}
	r, err := Rule(like, capacity, units, LifeNs/int64(time.Second))
	if err != nil {
		return limiter.State{}, err
	}
	s := r.Full(nowNs)
	_, _, err = r.Decide(&s, nowNs, units)
	s.Kind = kind
	return s, err
}

// Calendar returns windows of at least a period, if that is not more than a year.
func Calendar(period time.Duration) *calendar.Calendar {
	every := calendar.Year
	for shorter, length := range map[calendar.Every]time.Duration{calendar.Second: time.Second, calendar.Minute: time.Minute, calendar.Hour: time.Hour} {
		if period <= length {
			every = min(every, shorter)
		}
	}
	return calendar.New(calendar.Spec{Every: every}, nil, &calendar.Wall{})
}

// Rule returns the rule of a limit of units for a period; of a funnel, perPeriod leak in it. It returns
// limiter.ErrWrongType for kinds that no request creates.
func Rule(kind limiter.Kind, units, perPeriod, periodSec int64) (r limiter.Rule, err error) {
	return RuleIn(funnel.Seconds, kind, units, perPeriod, periodSec)
}

// RuleIn is Rule with times in a unit.
func RuleIn(unit funnel.Unit, kind limiter.Kind, units, perPeriod, period int64) (r limiter.Rule, err error) {
	if kind == limiter.Named {
		l, err := funnel.NewLimitIn(unit, funnel.Burst, units, perPeriod, period)
		if err != nil {
			return r, err
		}
		w, err := RuleIn(unit, limiter.FixedWindow, units, perPeriod, period)
		return Named(limiter.PlainRule(l, period*int64(unit.Ns())), limiter.OtherRule(w, "window")), err
	}
	if kind == limiter.Value {
		r.Add(units)
		return r, nil
	}
	row, s := kind.Row(), limiter.Spec{Kind: kind, Unit: unit}
	if row.Calendar {
		s.Calendar = Calendar(time.Duration(period) * time.Duration(unit.Ns()))
	}
	for i, name := range row.Arguments() {
		switch name {
		case "period":
			s.Numbers[i] = period
		case "count":
			s.Numbers[i] = perPeriod
		default:
			s.Numbers[i] = units
		}
	}
	err = s.Build(&r)
	return r, err
}

func Named(rules ...limiter.NamedRule) limiter.Rule {
	return limiter.Rule{Kind: limiter.Named, Shared: limiter.NewNamedLimit(rules, 0)}
}

// Call is a request, or an operation.
type Call struct {
	Rule      limiter.Rule
	Quantity  int64
	Operation *limiter.Operation
}

// Maker returns a repeatable call that makes a key of a kind, which expires in a minute or never.
func Maker(kind limiter.Kind) (c Call, err error) {
	const minuteSec, minuteNs = 60, int64(time.Minute)
	l, err := funnel.NewLimit(funnel.Burst, 9, 1, minuteSec)
	if err != nil {
		return c, err
	}
	switch kind {
	case limiter.Reserving:
		return Call{Operation: &limiter.Operation{Verb: limiter.Reserve, Funnel: l, Quantity: 1, ID: 7, TTLNs: minuteNs}}, nil
	case limiter.Bucket:
		return Call{Operation: &limiter.Operation{Verb: limiter.Fill, Max: 5}}, nil
	case limiter.Concurrency:
		return Call{Operation: &limiter.Operation{Verb: limiter.Acquire, Max: 5, ID: 7, TTLNs: minuteNs}}, nil
	case limiter.Funnel:
		return Call{Rule: limiter.OfFunnel(l), Quantity: 1}, nil
	case limiter.Named:
		short, err := funnel.NewLimit(funnel.Burst, 99, 1, 1)
		return Call{Rule: Named(limiter.PlainRule(l, minuteNs), limiter.PlainRule(short, int64(time.Second))), Quantity: 1}, err
	default:
		r, err := Rule(kind, 9, 1, minuteSec)
		return Call{Rule: r, Quantity: 2}, err
	}
}
