// Package reply turns RESP into Lua values and back, by Redis's rules. A value belongs to the goroutine of its machine.
package reply

import (
	"bytes"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/bound"
	"cellserver/internal/lua/machine"
	"cellserver/internal/lua/number"
	"cellserver/internal/resp"
)

// maxDepth bounds nested arrays, both ways.
const maxDepth = 200

// A reader reads one reply, which is at the front of its buffer.
type reader struct {
	*machine.Machine
	buf []byte
	bad bool // the reply is malformed
}

// Read returns a reply in RESP as a Lua value, by Redis's rules. It is false if the reply is malformed.
func Read(m *machine.Machine, buf []byte) (v vm.LValue, ok bool) {
	r := reader{Machine: m, buf: buf}
	v = r.value(0)
	return v, !r.bad
}

// line takes a line off the buffer, without its end.
func (r *reader) line() []byte {
	if i := bytes.Index(r.buf, []byte("\r\n")); i >= 0 {
		line := r.buf[:i]
		r.buf = r.buf[i+2:]
		return line
	}
	r.bad = true
	r.buf = nil
	return nil
}

// size reads how long something is.
func (r *reader) size(line []byte) int {
	n, ok := resp.ParseInt(line)
	r.bad = r.bad || !ok
	return int(n)
}

// value reads one reply. The lists of RESP3 are tables with one field that says what they are, as in Redis.
func (r *reader) value(depth int) vm.LValue {
	line := r.line()
	if r.bad || len(line) == 0 || depth > maxDepth {
		r.bad = true
		return vm.LNil
	}
	rest := line[1:]
	switch line[0] {
	case '+':
		return r.NewTagged("ok", r.text(rest))
	case '-':
		return r.NewTagged("err", r.text(rest))
	case ':':
		n, ok := resp.ParseInt(rest)
		r.bad = r.bad || !ok
		return vm.LNumber(n)
	case '$':
		return r.bulk(r.size(rest))
	case '*':
		return r.array(r.size(rest), depth)
	case '_':
		return vm.LNil
	case '#':
		return vm.LBool(len(rest) == 1 && rest[0] == 't')
	case ',':
		f, ok := number.Parse(string(rest))
		r.bad = r.bad || !ok
		return r.NewTagged("double", vm.LNumber(f))
	case '(':
		return r.NewTagged("big_number", r.text(rest))
	case '=':
		text, _ := r.bulk(r.size(rest)).(vm.LString)
		return r.verbatim(text)
	case '%':
		return r.NewTagged("map", r.pairs(r.size(rest), depth))
	case '~':
		return r.NewTagged("set", r.members(r.size(rest), depth))
	}
	r.bad = true
	return vm.LNil
}

func (r *reader) text(b []byte) vm.LValue {
	r.Meter.Charge(len(b) + 16)
	return vm.LString(b)
}

func (r *reader) table(elements, fields int) *vm.LTable {
	if elements+fields > len(r.buf) { // each takes a byte or more: the sizes can be believed
		r.bad = true
		elements, fields = 0, 0
	}
	r.Meter.Charge(bound.TableBytes + elements*bound.ElementBytes + fields*bound.FieldBytes)
	return r.L.CreateTable(elements, fields)
}

func (r *reader) bulk(n int) vm.LValue {
	if n < 0 {
		return vm.LFalse
	}
	if n > len(r.buf)-2 {
		r.bad = true
		return vm.LFalse
	}
	v := r.text(r.buf[:n])
	r.buf = r.buf[n+2:]
	return v
}

func (r *reader) array(n, depth int) vm.LValue {
	if n < 0 {
		return vm.LFalse
	}
	t := r.table(n, 0)
	for i := 1; i <= n && !r.bad; i++ {
		t.RawSetInt(i, r.value(depth+1))
	}
	return t
}

func (r *reader) pairs(n, depth int) vm.LValue {
	t := r.table(0, n)
	for i := 0; i < n && !r.bad; i++ {
		k, v := r.value(depth+1), r.value(depth+1)
		if k != vm.LNil {
			t.RawSet(k, v)
		}
	}
	return t
}

func (r *reader) members(n, depth int) vm.LValue {
	t := r.table(0, n)
	for i := 0; i < n && !r.bad; i++ {
		if k := r.value(depth + 1); k != vm.LNil {
			t.RawSet(k, vm.LTrue)
		}
	}
	return t
}

func (r *reader) verbatim(text vm.LString) vm.LValue {
	if len(text) < 4 {
		r.bad = true
		return vm.LNil
	}
	t := r.table(0, 0)
	t.RawSetString("format", text[:3])
	t.RawSetString("string", text[4:])
	return r.NewTagged("verbatim_string", t)
}
