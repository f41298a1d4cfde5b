package httpapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/redis/argument"
)

//go:embed openapi.json
var openAPI []byte

// describe is GET /v1/openapi.json.
func describe(_ *API, x *Exchange) (decide.Ask, error) {
	x.done(openAPI)
	x.body = nil // which is not to be written to
	return nil, nil
}

// limits is GET /v1/limits.
func (a *API) limits(x *Exchange) (decide.Ask, error) {
	o := &decide.Operation{Command: "cl.limit|list", Said: said("CL.LIMIT", "LIST"), Do: decide.Read}
	return x.operate(o, func() error {
		b := x.body[:0]
		b = append(b, `{"limits":[`...)
		for i, l := range a.Limits.All() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(b, l.Name)
		}
		x.done(append(b, "]}\n"...))
		return nil
	}), nil
}

// limit is GET /v1/limits/NAME.
func (a *API) limit(x *Exchange) (decide.Ask, error) {
	o := &decide.Operation{Command: "cl.limit|get", Said: said("CL.LIMIT", "GET", x.name), Do: decide.Read}
	return x.operate(o, func() error {
		limit := a.Limits.Lookup([]byte(x.name))
		if limit == nil {
			return a.noLimit(x, x.name)
		}
		var b bytes.Buffer
		to := json.NewEncoder(&b)
		to.SetEscapeHTML(false)
		if err := to.Encode(struct {
			namedlimit.Description
			namedlimit.Spending
		}{limit.Describe(a.Reading), a.Limits.SpendingOf(limit, o.MayRead)}); err != nil {
			return err
		}
		x.done(b.Bytes())
		return nil
	}), nil
}

// explain is GET /v1/limits/NAME/explain?key=K. Its times are in seconds, as CL.LIMIT EXPLAIN's.
func (a *API) explain(x *Exchange) (decide.Ask, error) {
	p, err := readQuery(x.Request.Query)
	if err != nil {
		return nil, err
	}
	key, ok := p.take("key")
	if err := p.end(); err != nil {
		return nil, err
	}
	if !ok {
		return nil, bad("the parameter key is missing")
	}
	o := &decide.Operation{
		Command: "cl.limit|explain", Said: said("CL.LIMIT", "EXPLAIN", x.name, key),
		Key: []byte(x.name + ":" + key), // as a named limit's key is called
	}
	e := &namedlimit.Explained{}
	limits := a.Limits.Limits()
	if limit, err := argument.Limit(&limits, []byte(x.name)); err != nil {
		o.Do, o.Refusal = decide.Refuse, err
	} else {
		e = limit.Explained([]byte(key), &limits.Moment, a.Reading)
		o.Step = e
	}
	x.then = func(a *API, x *Exchange) error {
		err := failedOperation(o)
		if refused := (*refusal)(nil); o.Refusal != nil && errors.As(err, &refused) && refused.status == http.StatusBadRequest {
			err = a.noLimit(x, x.name)
		}
		if err == nil {
			x.done(explained(x.body[:0], e))
		}
		return err
	}
	return o, nil
}

func explained(b []byte, e *namedlimit.Explained) []byte {
	b = append(b, `{"override":`...)
	if e.Override == "" {
		b = append(b, "null"...)
	} else {
		b = appendText(b, e.Override)
	}
	b = append(b, `,"rules":[`...)
	for i := range e.Rules {
		r := &e.Rules[i].Result
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(append(b, `{"rule":`...), e.Text(i)), ',')
		if b = appendResult(b, r, "seconds"); e.Rules[i].BlockedFor > 0 {
			b = strconv.AppendInt(append(b, `,"blocked_for_seconds":`...), e.Rules[i].BlockedFor, 10)
		}
		b = append(b, '}')
	}
	return append(b, "]}\n"...)
}
