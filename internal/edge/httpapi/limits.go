package httpapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/redis/commands/throttle"
	"cellserver/internal/redis/execute"
	"cellserver/internal/wire/catalog"
)

//go:embed openapi.json
var openAPI []byte

// describe is GET /v1/openapi.json.
func describe(q *request, _ string) (answer, error) {
	if q.URL.RawQuery != "" {
		return answer{}, errNoQuery
	}
	return done(openAPI), nil
}

var errNoQuery = bad("this path takes no query")

// limits is GET /v1/limits.
func (a *api) limits(q *request, _ string) (answer, error) {
	if q.URL.RawQuery != "" {
		return answer{}, errNoQuery
	}
	var all []*namedlimit.Limit
	err := q.do(execute.Operation{Command: "cl.limit|list", Words: said("CL.LIMIT", "LIST"), Do: func(execute.Call) error {
		all = a.Limits.All()
		return nil
	}})
	if err != nil {
		return answer{}, err
	}
	b := []byte(`{"limits":[`)
	for i, l := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, l.Name)
	}
	return done(append(b, "]}\n"...)), nil
}

// limit is GET /v1/limits/NAME.
func (a *api) limit(q *request, name string) (answer, error) {
	if q.URL.RawQuery != "" {
		return answer{}, errNoQuery
	}
	var limit *namedlimit.Limit
	err := q.do(execute.Operation{Command: "cl.limit|get", Words: said("CL.LIMIT", "GET", name), Do: func(execute.Call) error {
		limit = a.Limits.Lookup([]byte(name))
		return nil
	}})
	if err != nil {
		return answer{}, err
	}
	if limit == nil {
		return answer{}, a.noLimit(q, name)
	}
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	err = to.Encode(limit.Describe(a.Reading))
	return done(b.Bytes()), err
}

// explain is GET /v1/limits/NAME/explain?key=K. Its times are in seconds, as CL.LIMIT EXPLAIN's.
func (a *api) explain(q *request, name string) (answer, error) {
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
	var e throttle.Explained
	joined := catalog.AppendJoined(nil, []byte(name), []byte(key))
	err = q.do(execute.Operation{Command: "cl.limit|explain", Key: joined, Words: said("CL.LIMIT", "EXPLAIN", name, key), Do: func(c execute.Call) (err error) {
		e, err = throttle.Explain(c, a.Limits, a.Reading, []byte(name), []byte(key))
		return err
	}})
	if refused := (*refusal)(nil); errors.As(err, &refused) && refused.status == http.StatusBadRequest && a.Limits.Lookup([]byte(name)) == nil {
		err = a.noLimit(q, name)
	}
	if err != nil {
		return answer{}, err
	}
	return done(explained(&e)), nil
}

func explained(e *throttle.Explained) []byte {
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
		b = strconv.AppendBool(append(appendText(append(b, `{"rule":`...), e.Rules[i].Rule), `,"allowed":`...), !r.Limited)
		b = strconv.AppendInt(append(b, `,"limit":`...), r.Limit, 10)
		b = strconv.AppendInt(append(b, `,"remaining":`...), r.Remaining, 10)
		b = strconv.AppendInt(append(b, `,"retry_after_seconds":`...), r.RetryAfter, 10)
		b = append(strconv.AppendInt(append(b, `,"reset_after_seconds":`...), r.ResetAfter, 10), '}')
	}
	return append(b, "]}\n"...)
}
