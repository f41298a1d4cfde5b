package lua

import (
	"bytes"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
	"cellserver/internal/resp"
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

// line removes and returns a line without its end.
func (r *replyReader) line() []byte {
	if i := bytes.Index(r.buf, []byte("\r\n")); i >= 0 {
		line := r.buf[:i]
		r.buf = r.buf[i+2:]
		return line
	}
	r.bad = true
	r.buf = nil
	return nil
}

func (r *replyReader) size(line []byte) int {
	n, ok := resp.ParseInt(line)
	r.bad = r.bad || !ok
	return int(n)
}

// value reads one reply. RESP3's aggregates are tables with one field for their type, as in Redis.
func (r *replyReader) value(depth int) lua.LValue {
	line := r.line()
	if r.bad || len(line) == 0 || depth > maxDepth {
		r.bad = true
		return lua.LNil
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
		return lua.LNumber(n)
	case '$':
		return r.bulk(r.size(rest))
	case '*':
		return r.array(r.size(rest), depth)
	case '_':
		return lua.LNil
	case '#':
		return lua.LBool(len(rest) == 1 && rest[0] == 't')
	case ',':
		f, ok := vm.ParseNumber(string(rest))
		r.bad = r.bad || !ok
		return r.NewTagged("double", lua.LNumber(f))
	case '(':
		return r.NewTagged("big_number", r.text(rest))
	case '=':
		text, _ := r.bulk(r.size(rest)).(lua.LString)
		return r.verbatim(text)
	case '%':
		return r.NewTagged("map", r.pairs(r.size(rest), depth))
	case '~':
		return r.NewTagged("set", r.members(r.size(rest), depth))
	}
	r.bad = true
	return lua.LNil
}

func (r *replyReader) text(b []byte) lua.LValue {
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

func (r *replyReader) bulk(n int) lua.LValue {
	if n < 0 {
		return lua.LFalse
	}
	if n > len(r.buf)-2 {
		r.bad = true
		return lua.LFalse
	}
	v := r.text(r.buf[:n])
	r.buf = r.buf[n+2:]
	return v
}

func (r *replyReader) array(n, depth int) lua.LValue {
	if n < 0 {
		return lua.LFalse
	}
	t := r.table(n, 0)
	for i := 1; i <= n && !r.bad; i++ {
		t.RawSetInt(i, r.value(depth+1))
	}
	return t
}

func (r *replyReader) pairs(n, depth int) lua.LValue {
	t := r.table(0, n)
	for i := 0; i < n && !r.bad; i++ {
		k, v := r.value(depth+1), r.value(depth+1)
		if k != lua.LNil {
			t.RawSet(k, v)
		}
	}
	return t
}

func (r *replyReader) members(n, depth int) lua.LValue {
	t := r.table(0, n)
	for i := 0; i < n && !r.bad; i++ {
		if k := r.value(depth + 1); k != lua.LNil {
			t.RawSet(k, lua.LTrue)
		}
	}
	return t
}

func (r *replyReader) verbatim(text lua.LString) lua.LValue {
	if len(text) < 4 {
		r.bad = true
		return lua.LNil
	}
	t := r.table(0, 0)
	t.RawSetString("format", text[:3])
	t.RawSetString("string", text[4:])
	return r.NewTagged("verbatim_string", t)
}
