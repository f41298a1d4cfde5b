package httpapi

import (
	"errors"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
)

// readRule reads a limit of the caller's own, in the words of a file of limits, and its window in seconds.
func (a *API) readRule(o *object) (r namedlimit.Rule, windowSec int64) {
	var ok bool
	if r.Algorithm, ok = namedlimit.AlgorithmOf(string(o.text("algorithm"))); !ok {
		o.fail(o.at + "algorithm must be funnel, token_bucket, fixed_window, sliding_window, approximate_window or quota, or give limit, the name of one")
		return r, 0
	}
	switch r.Algorithm {
	case namedlimit.Funnel:
		windowSec = drainSec(a.readFunnel(o, &r))
	case namedlimit.TokenBucket:
		r.Capacity, r.Count, r.PeriodSec = o.integer("capacity"), o.integer("refill"), o.period()
		if l, err := funnel.NewLimit(funnel.Capacity, r.Capacity, r.Count, r.PeriodSec); err == nil {
			windowSec = drainSec(l)
		}
	case namedlimit.Quota:
		r.Capacity, r.Calendar = o.integer("max_count"), readCalendar(o)
		windowSec = quotaSec(r.Calendar.Every)
	default:
		r.Capacity, r.PeriodSec = o.integer("max_count"), o.period()
		windowSec = r.PeriodSec
	}
	if o.err == nil {
		if err := namedlimit.CheckRule(&r, a.Limits.Calendars()); err != nil {
			o.fail(o.at + err.Error())
		}
	}
	return r, windowSec
}

// readFunnel reads the numbers of a funnel, with max_burst as the server reads it.
func (a *API) readFunnel(o *object, r *namedlimit.Rule) funnel.Limit {
	reading, name := a.Reading, "max_burst"
	if o.has("capacity") {
		reading, name = funnel.Capacity, "capacity"
		if o.has("max_burst") {
			o.fail(o.at + "give max_burst or capacity, not both; capacity is all that fits")
		}
	}
	room := o.integer(name)
	if r.Count, r.PeriodSec = o.integer("count"), o.period(); o.err != nil {
		return funnel.Limit{}
	}
	if wrong := r.WrongRate(); wrong != nil {
		o.fail(o.at + wrong.Error())
		return funnel.Limit{}
	}
	l, err := funnel.NewLimit(reading, room, r.Count, r.PeriodSec)
	if err != nil {
		if argument := (*funnel.ArgumentError)(nil); errors.As(err, &argument) && argument.Name == "max_burst" {
			argument.Name = name
		}
		o.fail(o.at + err.Error())
		return l
	}
	r.Capacity = l.Capacity()
	return l
}

func readCalendar(o *object) (s calendar.Spec) {
	every := o.must("every")
	e, ok := calendar.EveryOf(every)
	if !ok || e.String() != string(every) {
		o.fail(o.at + "every must be second, minute, hour, day, week, month or year, got " + quote(string(every)))
		return s
	}
	s.Every, s.Zone = e, string(o.text("time_zone"))
	if o.has("start") {
		var err error
		if s.Start, err = calendar.ParseStart(e, o.text("start")); err != nil {
			o.fail(o.at + err.Error())
		}
	}
	s.Epoch = o.flag("epoch")
	return s.Normal()
}
