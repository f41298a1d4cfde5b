package httpapi

import (
	"net/http"
	"slices"
	"strconv"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/peer"
)

// verb is what a call does to a limiter.
type verb uint8

const (
	ask verb = iota
	peek
	debit
	refund
)

// check is a call about one key.
type check struct {
	limit     string // its name, or "" for one of the caller's own
	key       []byte
	windowSec int64 // of the caller's own; 0 for none
	call      peer.Call
}

const maxChecks = 32 // as of CL.MCHECK

// check is POST /v1/check.
func (a *api) check(q *request, body *object) (answer, error) {
	if !body.has("checks") {
		c, err := a.readCheck(body, ask)
		if err != nil {
			return answer{}, err
		}
		return a.decide(q, &c, http.StatusTooManyRequests)
	}
	checks, err := a.readChecks(body)
	each := body.flag("each")
	if err == nil {
		err = body.end()
	}
	if err != nil {
		return answer{}, err
	}
	calls := make([]peer.Call, len(checks))
	for i := range checks {
		calls[i] = checks[i].call
	}
	answers, err := q.conn.AskTogether(q.Context(), q.user, !each, calls...)
	if err != nil {
		return answer{}, err
	}
	if len(answers) != len(checks) || answers[0].Error != "" {
		return answer{}, a.refused(q, answers, checks)
	}
	return a.together(checks, answers), nil
}

func (a *api) readChecks(body *object) (checks []check, err error) {
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
func (a *api) one(do verb) call {
	return func(q *request, body *object) (answer, error) {
		c, err := a.readCheck(body, do)
		if err != nil {
			return answer{}, err
		}
		return a.decide(q, &c, http.StatusOK)
	}
}

// decide asks about one key, and answers a denial with a status.
func (a *api) decide(q *request, c *check, denial int) (answer, error) {
	answers, err := q.conn.Ask(q.Context(), q.user, c.call)
	if err != nil {
		return answer{}, err
	}
	if len(answers) != 1 || answers[0].Error != "" {
		return answer{}, a.refused(q, answers, []check{*c})
	}
	r := &answers[0].Result
	to := done(nil)
	to.rates = rates{items: a.add(make([]rate, 0, 1), c, &answers[0]), denied: r.Limited, worst: r}
	if !r.Limited || denial == http.StatusOK {
		to.body = append(appendResult(append(make([]byte, 0, 128), '{'), r), "}\n"...)
		return to, nil
	}
	to.deny(denial)
	to.body = append(to.body, "}\n"...)
	return to, nil
}

// together answers several checks.
func (a *api) together(checks []check, answers []reply.Answer) answer {
	to := done(nil)
	list := append(make([]byte, 0, 128*len(checks)), `,"checks":[`...)
	for i := range answers {
		r := &answers[i].Result
		if i > 0 {
			list = append(list, ',')
		}
		list = append(appendResult(append(list, '{'), r), '}')
		to.rates.items = a.add(to.rates.items, &checks[i], &answers[i])
		to.rates.denied = to.rates.denied || r.Limited
		if i == 0 || limiter.Tighter(r, to.rates.worst) {
			to.rates.worst = r
		}
	}
	if to.body = []byte(`{"allowed":true`); to.rates.denied {
		to.deny(http.StatusTooManyRequests)
	}
	to.body = append(append(to.body, list...), "]}\n"...)
	return to
}

// refused returns why calls were not decided.
func (a *api) refused(q *request, answers []reply.Answer, checks []check) error {
	if len(answers) == 0 {
		return errEnded
	}
	if answers[0].Code() == "ERR" {
		for i := range checks {
			if name := checks[i].limit; name != "" && a.Limits.Lookup([]byte(name)) == nil {
				return a.noLimit(q, name)
			}
		}
	}
	return failed(&answers[0])
}

// readCheck reads {"limit", "key"} or {"key", "algorithm", ...}, each with a quantity where there is one.
func (a *api) readCheck(o *object, do verb) (c check, err error) {
	c.key = []byte(o.must("key"))
	var rule namedlimit.Rule
	if o.has("limit") {
		if c.limit = o.text("limit"); c.limit == "" {
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
	if c.limit != "" {
		c.call = named(c.limit, c.key, quantity, do)
		return c, nil
	}
	c.call, err = own(&rule, a.Reading, c.key, quantity, do)
	return c, err
}

// named returns the call of a named limit.
func named(limit string, key []byte, quantity int64, do verb) peer.Call {
	if do == refund {
		quantity = -quantity
	}
	call := peer.Call{[]byte("CL.CHECK"), []byte(limit), key, strconv.AppendInt(nil, quantity, 10)}
	if do == debit {
		call = append(call, []byte("DEBIT"))
	}
	return call
}

// own returns the call of a rule that the caller gave.
func own(r *namedlimit.Rule, reading funnel.Reading, key []byte, quantity int64, do verb) (peer.Call, error) {
	words := r.Words(reading)
	command, numbers := "CL."+words[0], 2
	switch isFunnel := r.Algorithm == namedlimit.Funnel; {
	case isFunnel || r.Algorithm == namedlimit.TokenBucket:
		numbers = 3
		if do == debit { // a token bucket is a funnel to CL.DEBIT
			command, words[1] = "CL.DEBIT", strconv.FormatInt(r.MaxBurst(reading), 10)
		} else if do == refund && isFunnel {
			command = "CL.REFUND"
		} else if isFunnel {
			command = "CL.THROTTLE"
		}
	case do == debit && r.Algorithm == namedlimit.SlidingWindow:
		return nil, bad("a sliding_window cannot be debited; an approximate_window can")
	case do == debit:
		words = append(words, "DEBIT")
	}
	if do == refund && command != "CL.REFUND" {
		quantity = -quantity
	}
	words = slices.Insert(words[1:], numbers, strconv.FormatInt(quantity, 10))
	call := peer.Call{[]byte(command), key}
	for _, word := range words {
		call = append(call, []byte(word))
	}
	return call, nil
}
