package httpapi

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"cellserver/internal/base/duration"
)

// value is a JSON value.
type value struct {
	kind   kind
	text   []byte // of text and numbers; a part of the body, or a copy
	object *object
	all    []value // of an array
}

// kind is that of a value.
type kind uint8

const (
	isNull kind = iota
	isTrue
	isFalse
	isNumber
	isText
	isObject
	isArray
)

// object is a JSON object. Its readers take fields out, and the first error stays. Text that they return is a
// part of the body.
type object struct {
	at     string // in front of a field's name in an error, such as "checks[1]."
	fields []field
	err    error
}

type field struct {
	name  []byte
	value value
}

// fail keeps the first error.
func (o *object) fail(detail string) {
	if o.err == nil {
		o.err = bad(detail)
	}
}

// find returns the position of a field, or -1.
func (o *object) find(name string) int {
	for i := range o.fields {
		if string(o.fields[i].name) == name {
			return i
		}
	}
	return -1
}

func (o *object) has(name string) bool { return o.find(name) >= 0 }

func (o *object) take(name string) (v value, ok bool) {
	i := o.find(name)
	if i < 0 {
		return v, false
	}
	v = o.fields[i].value
	last := len(o.fields) - 1
	o.fields[i] = o.fields[last]
	o.fields[last] = field{}
	o.fields = o.fields[:last]
	return v, true
}

// text reads an optional field.
func (o *object) text(name string) []byte {
	v, ok := o.take(name)
	if ok && v.kind != isText {
		o.fail(o.at + name + " must be text")
		return nil
	}
	return v.text
}

// flag reads an optional field.
func (o *object) flag(name string) bool {
	v, ok := o.take(name)
	if ok && v.kind != isTrue && v.kind != isFalse {
		o.fail(o.at + name + " must be true or false")
	}
	return v.kind == isTrue
}

// must is text of a required field.
func (o *object) must(name string) []byte {
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
	n, err := strconv.ParseInt(string(v.text), 10, 64)
	if err != nil || v.kind != isNumber {
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
	const name = "period"
	i := o.find(name)
	if i < 0 || o.fields[i].value.kind != isText {
		return o.integer(name)
	}
	text := o.text(name)
	if n := len(text); n > 0 && text[n-1] <= '9' { // it has no unit
		if sec, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return sec
		}
	}
	d, err := duration.Parse(string(text))
	if err != nil || d%time.Second != 0 {
		o.fail(o.at + "period must be whole seconds, such as 60, \"60s\", \"1m\", \"24h\" or \"1d\", got " + quote(string(text)))
	}
	return int64(d / time.Second)
}

// end returns the first error, also for a field that nobody has read.
func (o *object) end() error {
	if len(o.fields) == 0 || o.err != nil {
		return o.err
	}
	first := slices.MinFunc(o.fields, func(a, b field) int { return bytes.Compare(a.name, b.name) })
	return unknownField(o.at + string(first.name))
}

func unknownField(name string) error {
	return bad("unknown field " + quote(name) + "; see /v1/openapi.json")
}
