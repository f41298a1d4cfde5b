package httpapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"net/http"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/redis/argument"
)

//go:embed openapi.json
var openAPI []byte

// describe is GET /v1/openapi.json.
func describe(*request, string) (answer, error) { return done(openAPI), nil }

// limits is GET /v1/limits.
func (a *API) limits(q *request, _ string) (answer, error) {
	if err := q.do(&decide.Operation{Command: "cl.limit|list", Said: said("CL.LIMIT", "LIST"), Do: decide.Read}); err != nil {
		return answer{}, err
	}
	b := []byte(`{"limits":[`)
	for i, l := range a.Limits.All() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, l.Name)
	}
	return done(append(b, "]}\n"...)), nil
}

// limit is GET /v1/limits/NAME.
func (a *API) limit(q *request, name string) (answer, error) {
	if err := q.do(&decide.Operation{Command: "cl.limit|get", Said: said("CL.LIMIT", "GET", name), Do: decide.Read}); err != nil {
		return answer{}, err
	}
	limit := a.Limits.Lookup([]byte(name))
	if limit == nil {
		return answer{}, a.noLimit(q, name)
	}
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	err := to.Encode(limit.Describe(a.Reading))
	return done(b.Bytes()), err
}

// explain is GET /v1/limits/NAME/explain?key=K. Its times are in seconds, as CL.LIMIT EXPLAIN's.
func (a *API) explain(q *request, name string) (answer, error) {
	p, err := readQuery(q.URL.RawQuery)
	if err != nil {
		return answer{}, err
	}
	key, ok := p.take("key")
	if err := p.end(); err != nil {
		return answer{}, err
	}
	if !ok {
		return answer{}, bad("the parameter key is missing")
	}
	o := &decide.Operation{
		Command: "cl.limit|explain", Said: said("CL.LIMIT", "EXPLAIN", name, key),
		Key: []byte(name + ":" + key), // as a named limit's key is called
	}
	e := &namedlimit.Explained{}
	limits := a.Limits.Limits()
	if limit, err := argument.Limit(&limits, []byte(name)); err != nil {
		o.Do, o.Refusal = decide.Refuse, err
	} else {
		e = limit.Explained([]byte(key), &limits.Moment, a.Reading)
		o.Step = e
	}
	err = q.do(o)
	if refused := (*refusal)(nil); o.Refusal != nil && errors.As(err, &refused) && refused.status == http.StatusBadRequest {
		err = a.noLimit(q, name)
	}
	if err != nil {
		return answer{}, err
	}
	return done(explained(e)), nil
}

func explained(e *namedlimit.Explained) []byte {
	b := []byte(`{"override":`)
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
		b = append(appendText(append(b, `{"rule":`...), e.Rules[i].Rule), ',')
		b = append(appendResult(b, r, "seconds"), '}')
	}
	return append(b, "]}\n"...)
}
