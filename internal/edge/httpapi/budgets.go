package httpapi

import (
	"bytes"
	"strconv"

	"cellserver/internal/decide"
	"cellserver/internal/limiter"
)

// hold is POST /v1/reserve with checks: {"checks": [{"limit", "key", "units"}, ...], "ttl_ms"}.
func (a *API) hold(x *Exchange, body *object) (decide.Ask, error) {
	b := &decide.Budget{Verb: decide.Hold}
	err := readUses(b, body)
	b.TTLMs, b.Charge = body.integer("ttl_ms"), body.flag("charge")
	if body.has("id") {
		b.ID = bytes.Clone(body.text("id"))
	}
	return x.budget(b, body, err, func() {
		x.together(b.All, make([]int64, len(b.All)), b)
	})
}

// settle is POST /v1/commit with checks.
func (a *API) settle(x *Exchange, body *object) (decide.Ask, error) {
	b := &decide.Budget{Verb: decide.SettleHold, ID: bytes.Clone(body.must("id"))}
	err := readUses(b, body)
	return x.budget(b, body, err, func() { x.committed(b.State != limiter.NoHold, b.State == limiter.OverdueHold) })
}

// extend is POST /v1/extend.
func (a *API) extend(x *Exchange, body *object) (decide.Ask, error) {
	b := &decide.Budget{Verb: decide.ExtendHold, ID: bytes.Clone(body.must("id")), TTLMs: body.integer("ttl_ms")}
	err := readUses(b, body)
	return x.budget(b, body, err, func() {
		x.done(append(appendMember(x.body[:0], `{"extended":`, b.State == limiter.OpenHold), "}\n"...))
	})
}

// budget has a call about a hold executed whose body was read, and then answered.
func (x *Exchange) budget(b *decide.Budget, body *object, err error, answer func()) (decide.Ask, error) {
	if err == nil {
		err = body.end()
	}
	if err != nil {
		return nil, err
	}
	x.then = func(a *API, x *Exchange) error {
		switch {
		case b.Err == nil:
			answer()
			return nil
		case b.Unknown != nil:
			return a.noLimit(x, string(b.Unknown))
		default:
			return failed(b.Err)
		}
	}
	return b, nil
}

// readUses reads the limits and keys of a call about a hold, with their units unless it extends one.
func readUses(b *decide.Budget, body *object) error {
	all, err := body.checks()
	if err != nil {
		return err
	}
	b.All = make([]decide.Request, len(all))
	for i := range all {
		if err := readUse(&b.All[i], all[i].object, b.Verb != decide.ExtendHold); err != nil {
			return err
		}
	}
	return nil
}

func readUse(q *decide.Request, o *object, hasUnits bool) error {
	limit, key := o.must("limit"), o.must("key")
	if len(limit) == 0 {
		o.fail(o.at + "limit must be the name of a limit")
	}
	if hasUnits {
		q.Quantity = o.integer("units")
	}
	q.Limit, q.Key = bytes.Clone(limit), bytes.Clone(key)
	return o.end()
}

// checks reads the objects of checks.
func (o *object) checks() ([]value, error) {
	v, _ := o.take("checks")
	if len(v.all) < 1 || len(v.all) > maxChecks {
		return nil, errChecks
	}
	for i := range v.all {
		if v.all[i].object == nil {
			return nil, bad("checks[" + strconv.Itoa(i) + "] must be an object")
		}
	}
	return v.all, nil
}
