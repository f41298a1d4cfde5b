package httpapi

import (
	"net/http"
	"strconv"

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

// check is a request about one key.
type check struct {
	decide.Request
	windowSec int64 // of a limit of the caller's own; 0 for none
}

const maxChecks = 32 // as of CL.MCHECK

// check is POST /v1/check.
func (a *API) check(q *request, body *object) (answer, error) {
	if !body.has("checks") {
		c, err := a.readCheck(body, ask)
		if err != nil {
			return answer{}, err
		}
		return a.ask(q, c, http.StatusTooManyRequests)
	}
	checks, err := a.readChecks(body)
	each := body.flag("each")
	if err == nil {
		err = body.end()
	}
	if err != nil {
		return answer{}, err
	}
	asked := &decide.Together{All: make([]decide.Request, len(checks)), Each: each}
	for i := range checks {
		asked.All[i] = checks[i].Request
	}
	if err := q.conn.Ask(q.Context(), q.user, asked); err != nil {
		return answer{}, err
	}
	if asked.Err != nil {
		return answer{}, a.refused(q, asked.Err, asked.All, &asked.Limits)
	}
	for i := range checks {
		checks[i].Request = asked.All[i]
	}
	return together(checks), nil
}

func (a *API) readChecks(body *object) (checks []check, err error) {
	v, _ := body.take("checks")
	all, _ := v.([]any)
	if len(all) < 1 || len(all) > maxChecks {
		return nil, errChecks
	}
	checks = make([]check, len(all))
	for i, one := range all {
		o, ok := one.(*object)
		if !ok {
			return nil, bad("checks[" + strconv.Itoa(i) + "] must be an object")
		}
		if checks[i], err = a.readCheck(o, ask); err != nil {
			return nil, err
		}
	}
	return checks, nil
}

// one returns the call that does something to one limiter, and is never denied.
func (a *API) one(do verb) call {
	return func(q *request, body *object) (answer, error) {
		c, err := a.readCheck(body, do)
		if err != nil {
			return answer{}, err
		}
		return a.ask(q, c, http.StatusOK)
	}
}

// ask asks about one key, and answers a denial with a status.
func (a *API) ask(q *request, c check, denial int) (answer, error) {
	asked := &decide.Requests{All: []decide.Request{c.Request}}
	if err := q.conn.Ask(q.Context(), q.user, asked); err != nil {
		return answer{}, err
	}
	c.Request = asked.All[0]
	if c.Err != nil {
		return answer{}, a.refused(q, c.Err, asked.All, &asked.Limits)
	}
	r := &c.Result
	to := done(nil)
	to.rates = rates{items: c.appendRates(make([]rate, 0, 1)), denied: r.Limited, worst: r}
	if !r.Limited || denial == http.StatusOK {
		to.body = append(appendResult(append(make([]byte, 0, 128), '{'), r, "ms"), "}\n"...)
		return to, nil
	}
	to.deny(denial, nil)
	return to, nil
}

// together answers several checks.
func together(checks []check) answer {
	to := done(nil)
	to.rates.items = ratesOf(checks)
	list := append(make([]byte, 0, 128*len(checks)), `,"checks":[`...)
	for i := range checks {
		c := &checks[i]
		r := &c.Result
		if i > 0 {
			list = append(list, ',')
		}
		list = append(appendResult(append(list, '{'), r, "ms"), '}')
		to.rates.denied = to.rates.denied || r.Limited
		if i == 0 || limiter.Tighter(r, to.rates.worst) {
			to.rates.worst = r
		}
	}
	if list = append(list, ']'); to.rates.denied {
		to.deny(http.StatusTooManyRequests, list)
	} else {
		to.body = append(append([]byte(`{"allowed":true`), list...), "}\n"...)
	}
	return to
}

// refused returns why requests were not decided by these limits.
func (a *API) refused(q *request, err error, requests []decide.Request, limits *namedlimit.Limits) error {
	if said, _ := err.(reply.Error); said.Code() == "ERR" && limits.Taken() { //nolint:errorlint // it is never wrapped
		for i := range requests {
			if limit := requests[i].Limit; limit != nil && limits.Lookup(limit) == nil {
				return a.noLimit(q, string(limit))
			}
		}
	}
	return failed(err)
}

// readCheck reads {"limit", "key"} or {"key", "algorithm", ...}, each with a quantity where there is one.
func (a *API) readCheck(o *object, do verb) (c check, err error) {
	key := []byte(o.must("key"))
	var limit string
	var rule namedlimit.Rule
	if o.has("limit") {
		if limit = o.text("limit"); limit == "" {
			o.fail(o.at + "limit must be the name of a limit")
		}
	} else {
		rule, c.windowSec = a.readRule(o)
	}
	quantity := int64(0)
	switch do {
	case ask:
		quantity = o.quantity(0)
	case debit, refund:
		quantity = o.quantity(1)
	default: // a look has none
	}
	if err := o.end(); err != nil {
		return c, err
	}
	if limit != "" {
		c.Request = named(limit, key, quantity)
	} else if c.Request, err = a.own(&rule, key, quantity, do); err != nil {
		return c, err
	}
	switch do {
	case debit:
		c.Spec.Flags = limiter.Debit
	case refund:
		c.Quantity = -quantity
	default:
	}
	return c, nil
}

// named returns a request under the name of a limit.
func named(limit string, key []byte, quantity int64) decide.Request {
	return decide.Request{Command: "CL.CHECK", Limit: []byte(limit), Key: key, Quantity: quantity}
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
