package lua

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

// jsonDecoder reads a JSON text as leniently as cjson: numbers are Lua's.
type jsonDecoder struct {
	cjsonLibrary
	l   *lua.LState
	src string
	i   int
}

func (lib cjsonLibrary) decode(l *lua.LState) int {
	if l.GetTop() != 1 {
		lib.RaiseArgument(l, 1, "expected 1 argument")
	}
	d := jsonDecoder{cjsonLibrary: lib, l: l, src: lib.CheckString(l, 1)}
	v := d.value(0)
	d.blanks()
	if d.i < len(d.src) {
		d.expected("the end")
	}
	return vm.Return(l, v)
}

func (d *jsonDecoder) blanks() {
	for d.i < len(d.src) && strings.IndexByte(" \t\n\r", d.src[d.i]) >= 0 {
		d.advance()
	}
}

func (d *jsonDecoder) advance() {
	d.i++
	if d.i%jsonBytesPerUnit == 0 {
		d.Meter.Spend(1)
	}
}

// peek returns the next nonblank byte, or 0 at the end.
func (d *jsonDecoder) peek() byte {
	d.blanks()
	if d.i < len(d.src) {
		return d.src[d.i]
	}
	return 0
}

// expected raises an error about the expected and the actual text.
func (d *jsonDecoder) expected(what string) {
	found := "invalid token"
	rest := d.src[d.i:]
	c := d.peek()
	punctuation := strings.IndexByte(`{}[],:"`, c)
	switch {
	case d.i >= len(d.src):
		found = "T_END"
	case punctuation >= 0:
		found = [...]string{"T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END", "T_COMMA", "T_COLON", "T_STRING"}[punctuation]
	case strings.HasPrefix(rest, "true"), strings.HasPrefix(rest, "false"):
		found = "T_BOOLEAN"
	case strings.HasPrefix(rest, "null"):
		found = "T_NULL"
	case vm.IsDigit(c) || c == '-':
		found = "T_NUMBER"
	}
	d.complain(what, found, d.i)
}

func (d *jsonDecoder) complain(expected, found string, at int) {
	d.Raise(d.l, "Expected "+expected+" but found "+found+" at character "+strconv.Itoa(at+1))
}

func (d *jsonDecoder) value(depth int) lua.LValue {
	d.Meter.Spend(2)
	switch c := d.peek(); {
	case c == '{':
		return d.object(depth + 1)
	case c == '[':
		return d.array(depth + 1)
	case c == '"':
		return d.text("value")
	case d.word("true"):
		return lua.LTrue
	case d.word("false"):
		return lua.LFalse
	case d.word("null"):
		return d.null
	case vm.IsDigit(c) || c == '-' || c == '+' || c|0x20 == 'n' || c|0x20 == 'i':
		return d.number()
	}
	d.expected("value")
	return nil
}

func (d *jsonDecoder) word(w string) bool {
	if !strings.HasPrefix(d.src[d.i:], w) {
		return false
	}
	d.i += len(w)
	return true
}

func (d *jsonDecoder) number() lua.LValue {
	from := d.i
	for d.i < len(d.src) && isNumeric(d.src[d.i]) {
		d.advance()
	}
	f, ok := d.ToNumber(lua.LString(d.src[from:d.i]))
	if !ok {
		d.complain("value", "invalid token", from)
	}
	return lua.LNumber(f)
}

// isNumeric reports whether c may be part of a Lua number, inf and nan included.
func isNumeric(c byte) bool {
	return vm.IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '+' || c == '-' || c == '.'
}

func (d *jsonDecoder) enter(depth int) *lua.LTable {
	if depth > maxJSONDepth {
		d.Raise(d.l, "Found too many nested data structures ("+strconv.Itoa(depth)+") at character "+strconv.Itoa(d.i+1))
	}
	d.i++
	d.Meter.Charge(vm.TableBytes)
	return d.L.CreateTable(4, 1)
}

// more reads a comma, or a closing bracket and returns false.
func (d *jsonDecoder) more(closing byte, expected string) bool {
	c := d.peek()
	if c != ',' && c != closing {
		d.expected(expected)
	}
	d.i++
	return c == ','
}

func (d *jsonDecoder) array(depth int) lua.LValue {
	t := d.enter(depth)
	if d.peek() == ']' {
		d.i++
		return t
	}
	for i := 1; ; i++ {
		d.Meter.Charge(vm.ElementBytes)
		t.RawSetInt(i, d.value(depth))
		if !d.more(']', "comma or array end") {
			return t
		}
	}
}

func (d *jsonDecoder) object(depth int) lua.LValue {
	t := d.enter(depth)
	if d.peek() == '}' {
		d.i++
		return t
	}
	for {
		if d.peek() != '"' {
			d.expected("object key string")
		}
		key := d.text("object key string")
		if d.peek() != ':' {
			d.expected("colon")
		}
		d.i++
		d.Meter.Charge(vm.FieldBytes)
		t.RawSet(key, d.value(depth))
		if !d.more('}', "comma or object end") {
			return t
		}
	}
}

// text reads a string from its quote on.
func (d *jsonDecoder) text(what string) lua.LValue {
	d.i++
	from := d.i
	for d.i < len(d.src) && d.src[d.i] != '"' && d.src[d.i] != '\\' {
		d.advance()
	}
	d.Meter.Charge(2 * (d.i - from))
	out := []byte(d.src[from:d.i])
	for {
		switch {
		case d.i >= len(d.src):
			d.complain(what, "unexpected end of string", d.i)
		case d.src[d.i] == '"':
			d.i++
			d.Meter.Charge(3 * len(out))
			return lua.LString(out)
		case d.src[d.i] == '\\':
			d.Meter.Spend(1)
			out = d.escape(out, what)
		default:
			out = append(out, d.src[d.i])
			d.advance()
		}
	}
}

func (d *jsonDecoder) escape(out []byte, what string) []byte {
	if d.i+1 >= len(d.src) {
		d.complain(what, "unexpected end of string", d.i)
	}
	c := d.src[d.i+1]
	if c == 'u' {
		return d.unicode(out, what)
	}
	at := strings.IndexByte(jsonEscapes, c)
	if at < 0 {
		d.complain(what, "invalid escape code", d.i)
	}
	d.i += 2
	return append(out, jsonEscaped[at])
}

// unicode reads \u and four digits, or a surrogate pair of these.
func (d *jsonDecoder) unicode(out []byte, what string) []byte {
	r := d.codeUnit(d.i)
	size := 6
	if utf16.IsSurrogate(r) {
		r = utf16.DecodeRune(r, d.codeUnit(d.i+size))
		size *= 2
		if r == utf8.RuneError {
			r = -1
		}
	}
	if r < 0 {
		d.complain(what, "invalid unicode escape code", d.i)
	}
	d.i += size
	return utf8.AppendRune(out, r)
}

func (d *jsonDecoder) codeUnit(at int) rune {
	if at+6 > len(d.src) || d.src[at:at+2] != `\u` {
		return -1
	}
	n, err := strconv.ParseUint(d.src[at+2:at+6], 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
