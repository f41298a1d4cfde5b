package httpapi

import (
	_ "embed"
	"errors"
	"net/http"
	"strconv"
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
	v, err := q.do("CL.LIMIT", "LIST")
	if err != nil {
		return answer{}, err
	}
	return done(append(appendJSON([]byte(`{"limits":`), v), "}\n"...)), nil
}

// limit is GET /v1/limits/NAME.
func (a *api) limit(q *request, name string) (answer, error) {
	if q.URL.RawQuery != "" {
		return answer{}, errNoQuery
	}
	v, err := q.do("CL.LIMIT", "GET", name)
	if err != nil {
		return answer{}, err
	}
	if v == nil {
		return answer{}, a.noLimit(q, name)
	}
	return done(append(appendJSON(nil, v), '\n')), nil
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
	v, err := q.do("CL.LIMIT", "EXPLAIN", name, key)
	if e := (*refusal)(nil); errors.As(err, &e) && e.status == http.StatusBadRequest && a.Limits.Lookup([]byte(name)) == nil {
		err = a.noLimit(q, name)
	}
	if err != nil {
		return answer{}, err
	}
	body, ok := explained(v)
	if !ok {
		return answer{}, errReply
	}
	return done(body), nil
}

func explained(v any) (b []byte, ok bool) {
	all, _ := v.([]any)
	if len(all) < 2 {
		return nil, false
	}
	b = append(appendJSON([]byte(`{"override":`), all[0]), `,"rules":[`...)
	for i, one := range all[1:] {
		rule, _ := one.([]any)
		if len(rule) != 2 {
			return nil, false
		}
		r, _, ok := resultOf(rule[1])
		if !ok {
			return nil, false
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendBool(append(appendJSON(append(b, `{"rule":`...), rule[0]), `,"allowed":`...), !r.Limited)
		b = strconv.AppendInt(append(b, `,"limit":`...), r.Limit, 10)
		b = strconv.AppendInt(append(b, `,"remaining":`...), r.Remaining, 10)
		b = strconv.AppendInt(append(b, `,"retry_after_seconds":`...), r.RetryAfter, 10)
		b = append(strconv.AppendInt(append(b, `,"reset_after_seconds":`...), r.ResetAfter, 10), '}')
	}
	return append(b, "]}\n"...), true
}
