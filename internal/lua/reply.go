package lua

import (
	"math"
	"strconv"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/bound"
	"cellserver/internal/lua/message"
	"cellserver/internal/lua/number"
)

// appendValue appends a script's value as a reply, by Redis's rules. A table is what the first of these fields makes
// it: err, ok, double, map, set, big_number, verbatim_string; else it is an array up to its first nil.
func (st *state) appendValue(v vm.LValue, depth int) {
	st.meter.Spend(2)
	switch x := v.(type) {
	case vm.LString:
		st.room(len(x))
		st.reply.BulkString(string(x))
	case vm.LNumber:
		st.room(0)
		st.reply.Int(number.Truncate(float64(x)))
	case vm.LBool:
		st.room(0)
		st.appendBool(bool(x))
	case *vm.LTable:
		st.room(0)
		if depth >= replyDepth {
			st.throwText(st.l, "reached lua stack limit")
		}
		st.appendTable(x, depth)
	default:
		st.room(0)
		st.reply.Null()
	}
}

// room ends the run if the reply gets longer than it may.
func (st *state) room(n int) {
	st.meter.Spend(n >> 6)
	if len(st.reply.Buf)+n > st.maxReply {
		st.meter.End("ERR the script's reply is longer than " + strconv.Itoa(st.maxReply) + " bytes")
	}
}

func (st *state) appendBool(b bool) {
	switch {
	case st.resp3 && st.reply.RESP3 && b:
		st.reply.Buf = append(st.reply.Buf, "#t\r\n"...)
	case st.resp3 && st.reply.RESP3:
		st.reply.Buf = append(st.reply.Buf, "#f\r\n"...)
	case b:
		st.reply.Int(1)
	case st.resp3:
		st.reply.Int(0)
	default:
		st.reply.Null()
	}
}

func (st *state) appendTable(t *vm.LTable, depth int) {
	if text, ok := t.RawGetString("err").(vm.LString); ok {
		st.room(len(text))
		st.reply.Error(message.OneLine(string(text)))
	} else if text, ok := t.RawGetString("ok").(vm.LString); ok {
		st.room(len(text))
		st.reply.Status(message.OneLine(string(text)))
	} else if f, ok := t.RawGetString("double").(vm.LNumber); ok {
		st.appendDouble(float64(f))
	} else if m, ok := t.RawGetString("map").(*vm.LTable); ok {
		st.reply.Map(st.count(m))
		st.each(m, func(k, v vm.LValue) {
			st.appendValue(k, depth+1)
			st.appendValue(v, depth+1)
		})
	} else if set, ok := t.RawGetString("set").(*vm.LTable); ok {
		st.reply.Set(st.count(set))
		st.each(set, func(k, _ vm.LValue) { st.appendValue(k, depth+1) })
	} else if big, ok := t.RawGetString("big_number").(vm.LString); ok {
		st.appendBig(message.OneLine(string(big)))
	} else if text, ok := t.RawGetString("verbatim_string").(*vm.LTable); ok && st.appendVerbatim(text) {
		return
	} else {
		st.appendArray(t, depth)
	}
}

func (st *state) each(t *vm.LTable, f func(k, v vm.LValue)) {
	for k, v := t.Next(vm.LNil); k != vm.LNil; k, v = t.Next(k) {
		f(k, v)
	}
}

func (st *state) count(t *vm.LTable) int {
	n := 0
	st.each(t, func(_, _ vm.LValue) { n++ })
	st.meter.Spend(n)
	return n
}

func (st *state) appendArray(t *vm.LTable, depth int) {
	n := 0
	for t.RawGetInt(n+1) != vm.LNil {
		n++
	}
	st.meter.Spend(n)
	st.reply.Array(n)
	for i := 1; i <= n; i++ {
		st.appendValue(t.RawGetInt(i), depth+1)
	}
}

func (st *state) appendDouble(f float64) {
	var piece [40]byte
	text := number.AppendExact(piece[:0], f)
	if f != f {
		text = append(piece[:0], "nan"...)
	}
	if !st.reply.RESP3 {
		st.reply.Bulk(text)
		return
	}
	st.reply.Buf = append(append(append(st.reply.Buf, ','), text...), '\r', '\n')
}

func (st *state) appendBig(digits string) {
	st.room(len(digits))
	if !st.reply.RESP3 {
		st.reply.BulkString(digits)
		return
	}
	st.reply.Buf = append(append(append(st.reply.Buf, '('), digits...), '\r', '\n')
}

// appendVerbatim appends a text with its format of three letters, if t is one.
func (st *state) appendVerbatim(t *vm.LTable) bool {
	text, isText := t.RawGetString("string").(vm.LString)
	format, isFormat := t.RawGetString("format").(vm.LString)
	if !isText || !isFormat {
		return false
	}
	st.room(len(text))
	if !st.reply.RESP3 {
		st.reply.BulkString(string(text))
		return true
	}
	const formatBytes = 3
	format = vm.LString(message.OneLine(string(format + "   "))[:formatBytes])
	b := strconv.AppendInt(append(st.reply.Buf, '='), int64(len(text)+formatBytes+1), 10)
	b = append(append(append(b, '\r', '\n'), format...), ':')
	st.reply.Buf = append(append(b, text...), '\r', '\n')
	return true
}

// A replyReader reads a reply of the host's into Lua values.
type replyReader struct {
	st  *state
	buf []byte
	bad bool // the host's reply is no reply
}

// line takes a line off the buffer, without its end.
func (r *replyReader) line() []byte {
	for i := 1; i < len(r.buf); i++ {
		if r.buf[i] == '\n' && r.buf[i-1] == '\r' {
			line := r.buf[:i-1]
			r.buf = r.buf[i+1:]
			return line
		}
	}
	r.bad = true
	r.buf = nil
	return nil
}

func (r *replyReader) number(line []byte) int {
	n, err := strconv.Atoi(string(line))
	if err != nil {
		r.bad = true
	}
	return n
}

// value reads one reply. The lists of RESP3 are tables with one field that says what they are, as in Redis.
func (r *replyReader) value(depth int) vm.LValue {
	line := r.line()
	if r.bad || len(line) == 0 || depth > replyDepth {
		r.bad = true
		return vm.LNil
	}
	rest := line[1:]
	switch line[0] {
	case '+':
		return r.tagged("ok", r.text(rest))
	case '-':
		return r.tagged("err", r.text(rest))
	case ':':
		return vm.LNumber(r.integer(rest))
	case '$':
		return r.bulk(r.number(rest))
	case '*':
		return r.array(r.number(rest), depth)
	case '_':
		return vm.LNil
	case '#':
		return vm.LBool(len(rest) == 1 && rest[0] == 't')
	case ',':
		f, ok := number.Parse(string(rest))
		r.bad = r.bad || !ok
		return r.tagged("double", vm.LNumber(f))
	case '(':
		return r.tagged("big_number", r.text(rest))
	case '=':
		text, _ := r.bulk(r.number(rest)).(vm.LString)
		return r.verbatim(text)
	case '%':
		return r.tagged("map", r.pairs(r.number(rest), depth))
	case '~':
		return r.tagged("set", r.members(r.number(rest), depth))
	}
	r.bad = true
	return vm.LNil
}

func (r *replyReader) text(b []byte) vm.LValue {
	r.st.meter.Charge(len(b) + 16)
	return vm.LString(b)
}

func (r *replyReader) integer(line []byte) float64 {
	n, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		r.bad = true
		return math.NaN()
	}
	return float64(n)
}

func (r *replyReader) table(elements, fields int) *vm.LTable {
	if elements+fields > len(r.buf) { // each takes a byte or more: the sizes can be believed
		r.bad = true
		elements, fields = 0, 0
	}
	r.st.meter.Charge(bound.TableBytes + elements*bound.ElementBytes + fields*bound.FieldBytes)
	return r.st.l.CreateTable(elements, fields)
}

func (r *replyReader) tagged(kind string, v vm.LValue) vm.LValue {
	r.st.meter.Charge(bound.TableBytes)
	t := r.st.l.CreateTable(0, 1)
	t.RawSetString(kind, v)
	return t
}

func (r *replyReader) bulk(n int) vm.LValue {
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

func (r *replyReader) array(n, depth int) vm.LValue {
	if n < 0 {
		return vm.LFalse
	}
	t := r.table(n, 0)
	for i := 1; i <= n && !r.bad; i++ {
		t.RawSetInt(i, r.value(depth+1))
	}
	return t
}

func (r *replyReader) pairs(n, depth int) vm.LValue {
	t := r.table(0, n)
	for i := 0; i < n && !r.bad; i++ {
		k, v := r.value(depth+1), r.value(depth+1)
		if k != vm.LNil {
			t.RawSet(k, v)
		}
	}
	return t
}

func (r *replyReader) members(n, depth int) vm.LValue {
	t := r.table(0, n)
	for i := 0; i < n && !r.bad; i++ {
		if k := r.value(depth + 1); k != vm.LNil {
			t.RawSet(k, vm.LTrue)
		}
	}
	return t
}

func (r *replyReader) verbatim(text vm.LString) vm.LValue {
	if len(text) < 4 {
		r.bad = true
		return vm.LNil
	}
	t := r.table(0, 0)
	t.RawSetString("format", text[:3])
	t.RawSetString("string", text[4:])
	return r.tagged("verbatim_string", t)
}
