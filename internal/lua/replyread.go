package lua

import (
	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

// maxDepth bounds nested arrays in both directions.
const maxDepth = 200

// replyReader reads the reply at the front of its buffer.
type replyReader struct {
	*vm.Machine
	buf []byte
	bad bool // malformed
}

// readReply converts a reply to a Lua value by Redis's rules. It returns false for a malformed one.
func readReply(m *vm.Machine, buf []byte) (v lua.LValue, ok bool) {
	r := replyReader{Machine: m, buf: buf}
	v = r.value(0)
	return v, !r.bad
}

// value reads one reply. RESP3's aggregates are tables with one field for their type, as in Redis.
func (r *replyReader) value(depth int) lua.LValue {
	kind, text, n, rest, ok := vm.CutReply(r.buf)
	if r.bad = r.bad || !ok || depth > maxDepth; r.bad {
		return lua.LNil
	}
	r.buf = rest
	switch kind {
	case '+':
		return r.NewTagged("ok", r.text(text))
	case '-':
		return r.NewTagged("err", r.text(text))
	case ':':
		return lua.LNumber(n)
	case '$':
		if n < 0 {
			return lua.LFalse
		}
		return r.text(text)
	case '*':
		if n < 0 {
			return lua.LFalse
		}
		t := r.table(int(n), 0)
		for i := 1; i <= int(n) && !r.bad; i++ {
			t.RawSetInt(i, r.value(depth+1))
		}
		return t
	case '_':
		return lua.LNil
	case '#':
		return lua.LBool(string(text) == "t")
	case ',':
		f, ok := vm.ParseNumber(string(text))
		r.bad = !ok
		return r.NewTagged("double", lua.LNumber(f))
	case '(':
		return r.NewTagged("big_number", r.text(text))
	case '=':
		return r.verbatim(text)
	case '%':
		return r.NewTagged("map", r.fields(int(n), func() (k, v lua.LValue) { return r.value(depth + 1), r.value(depth + 1) }))
	case '~':
		return r.NewTagged("set", r.fields(int(n), func() (k, v lua.LValue) { return r.value(depth + 1), lua.LTrue }))
	}
	r.bad = true
	return lua.LNil
}

func (r *replyReader) text(b []byte) lua.LString {
	r.Meter.Charge(len(b) + 16)
	return lua.LString(b)
}

func (r *replyReader) table(elements, fields int) *lua.LTable {
	if elements+fields > len(r.buf) { // each takes a byte or more, which verifies the sizes
		r.bad = true
		elements, fields = 0, 0
	}
	r.Meter.Charge(vm.TableBytes + elements*vm.ElementBytes + fields*vm.FieldBytes)
	return r.L.CreateTable(elements, fields)
}

// fields returns a table of n fields.
func (r *replyReader) fields(n int, read func() (k, v lua.LValue)) *lua.LTable {
	t := r.table(0, n)
	for i := 0; i < n && !r.bad; i++ {
		if k, v := read(); k != lua.LNil {
			t.RawSet(k, v)
		}
	}
	return t
}

// verbatim reads a text with a three-letter format.
func (r *replyReader) verbatim(text []byte) lua.LValue {
	if len(text) < 4 {
		r.bad = true
		return lua.LNil
	}
	s := r.text(text)
	t := r.table(0, 0)
	t.RawSetString("format", s[:3])
	t.RawSetString("string", s[4:])
	return r.NewTagged("verbatim_string", t)
}
