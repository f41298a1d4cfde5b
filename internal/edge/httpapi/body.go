package httpapi

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"cellserver/internal/base/duration"
)

// object is a JSON object. Its readers take fields out, and the first error stays.
type object struct {
	at     string         // in front of a field's name in an error, such as "checks[1]."
	fields map[string]any // string, json.Number, bool, nil, *object or []any
	err    error
}

// fail keeps the first error.
func (o *object) fail(detail string) {
	if o.err == nil {
		o.err = bad(detail)
	}
}

func (o *object) has(name string) bool {
	_, ok := o.fields[name]
	return ok
}

func (o *object) take(name string) (v any, ok bool) {
	v, ok = o.fields[name]
	delete(o.fields, name)
	return v, ok
}

// optional reads a field that has a type's zero value if it is absent.
func optional[T any](o *object, name, must string) T {
	v, ok := o.take(name)
	value, isOne := v.(T)
	if ok && !isOne {
		o.fail(o.at + name + " must be " + must)
	}
	return value
}

func (o *object) text(name string) string { return optional[string](o, name, "text") }

func (o *object) flag(name string) bool { return optional[bool](o, name, "true or false") }

// must is text of a required field.
func (o *object) must(name string) string {
	if !o.has(name) {
		o.fail("the field " + quote(o.at+name) + " is missing")
	}
	return o.text(name)
}

// integer reads a required field.
func (o *object) integer(name string) int64 {
	v, ok := o.take(name)
	if !ok {
		o.fail("the field " + quote(o.at+name) + " is missing")
		return 0
	}
	number, _ := v.(json.Number)
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		o.fail(o.at + name + " must be an integer of 64 bits")
	}
	return n
}

// quantity reads one that is at least a minimum, and returns 1 if it is absent.
func (o *object) quantity(least int64) int64 {
	const name = "quantity"
	if !o.has(name) {
		return 1
	}
	n := o.integer(name)
	if n < least {
		o.fail(o.at + name + " must be at least " + strconv.FormatInt(least, 10) + ", got " + strconv.FormatInt(n, 10))
	}
	return n
}

// period reads whole seconds as a file of limits has them: a number, or text such as 1m.
func (o *object) period() int64 {
	text, isText := o.fields["period"].(string)
	if !isText {
		return o.integer("period")
	}
	o.take("period")
	if sec, err := strconv.ParseInt(text, 10, 64); err == nil {
		return sec
	}
	d, err := duration.Parse(text)
	if err != nil || d%time.Second != 0 {
		o.fail(o.at + "period must be whole seconds, such as 60, \"60s\", \"1m\", \"24h\" or \"1d\", got " + quote(text))
	}
	return int64(d / time.Second)
}

// end returns the first error, also for a field that nobody has read.
func (o *object) end() error {
	if len(o.fields) == 0 || o.err != nil {
		return o.err
	}
	unknown := make([]string, 0, len(o.fields))
	for name := range o.fields {
		unknown = append(unknown, name)
	}
	return unknownField(o.at + slices.Min(unknown))
}

func unknownField(name string) error {
	return bad("unknown field " + quote(name) + "; see /v1/openapi.json")
}
