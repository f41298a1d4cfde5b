package httpapi

import (
	"net/http"
	"slices"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
)

// verb is what a call does to a limiter.
type verb uint8

const (
	ask verb = iota
	peek
	debit
	refund
)

const maxChecks = 32 // as of CL.MCHECK

// check is POST /v1/check.
func (a *API) check(x *Exchange, body *object) (decide.Ask, error) {
	if !body.has("checks") {
		return a.about(x, body, ask, http.StatusTooManyRequests)
	}
	asked, windows, err := a.readChecks(body)
	asked.Each = body.flag("each")
	if err == nil {
		err = body.end()
	}
	if err == nil && !asked.Each && slices.ContainsFunc(asked.All, func(q decide.Request) bool { return isAtMost(&q) }) {
		err = bad("at_most needs \"each\": true beside the checks: without it all are charged their quantities, or none")
	}
	if err != nil {
		return nil, err
	}
	x.then = func(a *API, x *Exchange) error {
		if asked.Err != nil {
			return a.refused(x, asked.Err, asked.All, &asked.Limits)
		}
		x.together(asked.All, windows, nil)
		return nil
	}
	return asked, nil
}

func isAtMost(q *decide.Request) bool { return q.Spec.Flags&limiter.AtMost != 0 }

func (a *API) readChecks(body *object) (asked *decide.Together, windowsSec []int64, err error) {
	asked = &decide.Together{}
	all, err := body.checks()
	if err != nil {
		return asked, nil, err
	}
	var names []byte
	asked.All, windowsSec = make([]decide.Request, len(all)), make([]int64, len(all))
	for i := range all {
		if windowsSec[i], err = a.readCheck(&asked.All[i], &names, all[i].object, ask); err != nil {
			return asked, nil, err
		}
	}
	return asked, windowsSec, nil
}

// one returns the call that does something to one limiter, and is never denied.
func (a *API) one(do verb) call {
	return func(x *Exchange, body *object) (decide.Ask, error) { return a.about(x, body, do, http.StatusOK) }
}

// about begins a call about one key, which answers a denial with a status.
func (a *API) about(x *Exchange, body *object, do verb, denial int) (_ decide.Ask, err error) {
	x.key = x.key[:0]
	if x.windowSec, err = a.readCheck(&x.one[0], &x.key, body, do); err != nil {
		return nil, err
	}
	return x.ask(denial), nil
}

// ask asks about one key, and answers a denial with a status.
func (x *Exchange) ask(denial int) decide.Ask {
	x.one[0].Precise = &x.precise
	x.asked.All, x.denial, x.then = x.one[:], denial, (*API).answerOne
	return &x.asked
}

func (a *API) answerOne(x *Exchange) error {
	q := &x.one[0]
	if q.Err != nil {
		return a.refused(x, q.Err, x.one[:], &x.asked.Limits)
	}
	r := &q.Result
	x.rates.items = appendRates(x.rates.items, q, x.windowSec)
	x.rates.denied, x.rates.worst, x.rates.unit = r.Limited, r, unitOf(q)
	x.noteNear(q)
	if r.Limited && x.denial != http.StatusOK {
		x.deny(x.denial, appendTaken(nil, q))
		return nil
	}
	x.done(append(appendDecision(append(x.body[:0], '{'), q), "}\n"...))
	return nil
}

// together answers several checks, or those of a hold.
func (x *Exchange) together(all []decide.Request, windowsSec []int64, hold *decide.Budget) {
	x.rates.items = ratesOf(all, windowsSec)
	list := append(make([]byte, 0, 128*len(all)), `,"checks":[`...)
	for i := range all {
		q := &all[i]
		if i > 0 {
			list = append(list, ',')
		}
		if list = append(list, '{'); hold != nil {
			list = append(appendText(append(list, `"name":`...), q.Limit), `,"key":`...)
			list = append(appendText(list, q.Key), ',')
		}
		list = append(appendDecision(list, q), '}')
		x.noteNear(q)
		x.rates.denied = x.rates.denied || q.Result.Limited
		if i == 0 || limiter.Tighter(&q.Result, x.rates.worst) {
			x.rates.worst, x.rates.unit = &q.Result, unitOf(q)
			if hold != nil {
				x.rates.whose = q
			}
		}
	}
	list = append(list, ']')
	if hold != nil { // a repeated call is allowed, also beyond the limits
		x.rates.denied = hold.Limited
	}
	switch {
	case x.rates.denied:
		x.deny(http.StatusTooManyRequests, list)
	case hold != nil:
		b := appendText(append(x.body[:0], `{"allowed":true,"id":`...), hold.ID)
		x.done(append(append(b, list...), "}\n"...))
	default:
		x.done(append(append(append(x.body[:0], `{"allowed":true`...), list...), "}\n"...))
	}
}

// refused returns why requests were not decided by these limits.
func (a *API) refused(x *Exchange, err error, requests []decide.Request, limits *namedlimit.Limits) error {
	if said, _ := err.(reply.Error); said.Code() == "ERR" && limits.Taken() { //nolint:errorlint // it is never wrapped
		for i := range requests {
			if limit := requests[i].Limit; limit != nil && limits.Lookup(limit) == nil {
				return a.noLimit(x, string(limit))
			}
		}
	}
	return failed(err)
}

// readCheck reads {"limit", "key"} or {"key", "algorithm", ...}, each with a quantity where there is one, and
// returns the window of the second. The limit and the key are appended to names.
func (a *API) readCheck(q *decide.Request, names *[]byte, o *object, do verb) (windowSec int64, err error) {
	key := o.must("key")
	var limit []byte
	var rule namedlimit.Rule
	if o.has("limit") {
		if limit = o.text("limit"); len(limit) == 0 {
			o.fail(o.at + "limit must be the name of a limit")
		}
	} else {
		rule, windowSec = a.readRule(o)
	}
	quantity, atMost := int64(0), false
	switch do {
	case ask:
		least := int64(0)
		if atMost = o.flag("at_most"); atMost {
			least = 1
		}
		quantity = o.quantity(least)
	case debit, refund:
		quantity = o.quantity(1)
	default: // a look has none
	}
	if err := o.end(); err != nil {
		return 0, err
	}
	begin := len(*names)
	split := begin + len(limit)
	b := append(append(slices.Grow(*names, len(limit)+len(key)+1), limit...), key...)
	*names, limit, key = b, b[begin:split:split], b[split:len(b):len(b)]
	if len(limit) > 0 {
		*q = decide.Request{Command: "CL.CHECK", Limit: limit, Key: key, Quantity: quantity}
	} else if *q, err = a.own(&rule, key, quantity, do); err != nil {
		return 0, err
	}
	switch {
	case atMost:
		q.Spec.Flags = limiter.AtMost
	case do == debit:
		q.Spec.Flags = limiter.Debit
	case do == refund:
		q.Quantity = -quantity
	}
	return windowSec, nil
}

// own returns a request by a limit that the caller gave.
func (a *API) own(r *namedlimit.Rule, key []byte, quantity int64, do verb) (q decide.Request, err error) {
	q = decide.Request{Command: commandOf(r.Algorithm), Key: key, Quantity: quantity}
	reading := a.Reading
	isFunnel := r.Algorithm == namedlimit.Funnel
	switch {
	case do == debit && (isFunnel || r.Algorithm == namedlimit.TokenBucket): // a token bucket is a funnel to CL.DEBIT
		q.Command = "CL.DEBIT"
	case do == debit && r.Algorithm == namedlimit.SlidingWindow:
		return q, bad("a sliding_window cannot be debited; an approximate_window can")
	case do == refund && isFunnel:
		q.Command = "CL.REFUND"
	case r.Algorithm == namedlimit.TokenBucket:
		reading = funnel.Capacity
	}
	q.Spec, err = r.Spec(reading, a.Limits.Calendars())
	return q, err
}

// commandOf returns the command that decides by an algorithm.
func commandOf(a namedlimit.Algorithm) string {
	return [...]string{
		namedlimit.Funnel: "CL.THROTTLE", namedlimit.TokenBucket: "CL.TOKENBUCKET", namedlimit.FixedWindow: "CL.FIXEDWINDOW",
		namedlimit.SlidingWindow: "CL.SLIDINGWINDOW", namedlimit.ApproximateWindow: "CL.SLIDINGWINDOW", namedlimit.Quota: "CL.QUOTA",
	}[a]
}
