package lua

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
	"cellserver/internal/resp"
)

type replyWriter struct {
	*vm.Machine
	out         *resp.Writer
	scriptRESP3 bool
	maxBytes    int
}

// writeReply appends a script's value as a reply by Redis's rules, and ends the run if it exceeds maxBytes.
// Booleans also depend on the script's redis.setresp.
func writeReply(m *vm.Machine, out *resp.Writer, v lua.LValue, scriptRESP3 bool, maxBytes int) {
	w := replyWriter{m, out, scriptRESP3, maxBytes}
	w.value(v, 0)
}

// value appends a value. The first of these fields determines a table's type: err, ok, double, map, set,
// big_number, verbatim_string; otherwise it is an array up to its first nil.
func (w *replyWriter) value(v lua.LValue, depth int) {
	w.Meter.Spend(2)
	w.room(0)
	switch x := v.(type) {
	case lua.LString:
		w.room(len(x))
		w.out.BulkString(string(x))
	case lua.LNumber:
		w.out.Int(vm.ReplyNumber(float64(x)))
	case lua.LBool:
		w.bool(bool(x))
	case *lua.LTable:
		if depth >= maxDepth {
			w.ThrowText(w.L, "reached lua stack limit")
		}
		w.table(x, depth)
	default:
		w.out.Null()
	}
}

// room ends the run if the reply would be too long.
func (w *replyWriter) room(n int) {
	w.Meter.Spend(n >> 6)
	if len(w.out.Buf)+n > w.maxBytes {
		w.Meter.End("ERR the script's reply is longer than " + strconv.Itoa(w.maxBytes) + " bytes")
	}
}

func (w *replyWriter) bool(b bool) {
	switch {
	case w.scriptRESP3:
		w.out.Bool(b)
	case b:
		w.out.Int(1)
	default:
		w.out.Null()
	}
}

func (w *replyWriter) table(t *lua.LTable, depth int) {
	if text, ok := t.RawGetString("err").(lua.LString); ok {
		w.room(len(text))
		w.out.Error(vm.OneLine(string(text)))
	} else if text, ok := t.RawGetString("ok").(lua.LString); ok {
		w.room(len(text))
		w.out.Status(vm.OneLine(string(text)))
	} else if f, ok := t.RawGetString("double").(lua.LNumber); ok {
		w.double(float64(f))
	} else if m, ok := t.RawGetString("map").(*lua.LTable); ok {
		w.out.Map(w.count(m))
		for k, v := range vm.Pairs(m) {
			w.value(k, depth+1)
			w.value(v, depth+1)
		}
	} else if set, ok := t.RawGetString("set").(*lua.LTable); ok {
		w.out.Set(w.count(set))
		for k := range vm.Pairs(set) {
			w.value(k, depth+1)
		}
	} else if big, ok := t.RawGetString("big_number").(lua.LString); ok {
		w.room(len(big))
		w.out.BigNumber(vm.OneLine(string(big)))
	} else if text, ok := t.RawGetString("verbatim_string").(*lua.LTable); !ok || !w.verbatim(text) {
		w.array(t, depth)
	}
}

func (w *replyWriter) count(t *lua.LTable) int {
	n := 0
	for range vm.Pairs(t) {
		n++
		w.Meter.Spend(2)
	}
	return n
}

func (w *replyWriter) array(t *lua.LTable, depth int) {
	n := 0
	for t.RawGetInt(n+1) != lua.LNil {
		n++
		w.Meter.Spend(1)
	}
	w.out.Array(n)
	for i := 1; i <= n; i++ {
		w.value(t.RawGetInt(i), depth+1)
	}
}

// double appends a number with the digits of Redis's scripts, more than elsewhere.
func (w *replyWriter) double(f float64) {
	var piece [40]byte
	text := vm.AppendExactNumber(piece[:0], f)
	if f != f {
		text = append(piece[:0], "nan"...)
	}
	if !w.out.RESP3 {
		w.out.Bulk(text)
		return
	}
	w.out.Buf = append(append(append(w.out.Buf, ','), text...), '\r', '\n')
}

// verbatim appends a text with a three-letter format, if t is one.
func (w *replyWriter) verbatim(t *lua.LTable) bool {
	text, isText := t.RawGetString("string").(lua.LString)
	format, isFormat := t.RawGetString("format").(lua.LString)
	if !isText || !isFormat {
		return false
	}
	w.room(len(text))
	if !w.out.RESP3 {
		w.out.BulkString(string(text))
		return true
	}
	const formatBytes = 3
	format = lua.LString(vm.OneLine(string(format + "   "))[:formatBytes])
	b := strconv.AppendInt(append(w.out.Buf, '='), int64(len(text)+formatBytes+1), 10)
	b = append(append(append(b, '\r', '\n'), format...), ':')
	w.out.Buf = append(append(b, text...), '\r', '\n')
	return true
}
