package lua

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

// directive is a % of string.format without its letter.
type directive struct {
	flags     string
	width     int
	precision int // -1 without one
}

func (lib stringLibrary) format(l *lua.LState) int {
	format := lib.CheckString(l, 1)
	var out []byte
	arg, charged := 1, 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			out = append(out, format[i])
		} else if i+1 < len(format) && format[i+1] == '%' {
			out = append(out, '%')
			i++
		} else {
			arg++
			if arg > l.GetTop() {
				lib.RaiseArgument(l, arg, "no value")
			}
			var d directive
			d, i = lib.readDirective(l, format, i+1)
			letter := byte(0)
			if i < len(format) {
				letter = format[i]
			}
			out = lib.appendFormatted(l, out, d, letter, arg)
		}
		if grown := len(out) - charged; grown > 1024 {
			lib.Meter.Charge(2 * grown)
			charged = len(out)
		}
	}
	return lib.PushText(l, out)
}

func (lib stringLibrary) readDirective(l *lua.LState, format string, i int) (directive, int) {
	d := directive{precision: -1}
	from := i
	for i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0 {
		i++
	}
	d.flags = format[from:i]
	if len(d.flags) > 5 {
		lib.Raise(l, "invalid format (repeated flags)")
	}
	twoDigits := func() int {
		n := 0
		for digits := 0; i < len(format) && vm.IsDigit(format[i]) && digits < 2; digits++ {
			n = n*10 + int(format[i]-'0')
			i++
		}
		if i < len(format) && vm.IsDigit(format[i]) {
			lib.Raise(l, "invalid format (width or precision too long)")
		}
		return n
	}
	d.width = twoDigits()
	if i < len(format) && format[i] == '.' {
		i++
		d.precision = twoDigits()
	}
	return d, i
}

func (lib stringLibrary) appendFormatted(l *lua.LState, out []byte, d directive, letter byte, arg int) []byte {
	switch letter {
	case 'c':
		c := byte(lib.CheckInt(l, arg))
		if c == 0 { // the end of C's string
			return out
		}
		return d.pad(out, string([]byte{c}))
	case 'd', 'i':
		return fmt.Appendf(out, d.verb('d'), vm.TruncateNumber(lib.CheckNumber(l, arg)))
	case 'u':
		return fmt.Appendf(out, d.verb('d'), uint64(vm.TruncateNumber(lib.CheckNumber(l, arg))))
	case 'o', 'x', 'X':
		return fmt.Appendf(out, d.verb(letter), uint64(vm.TruncateNumber(lib.CheckNumber(l, arg))))
	case 'e', 'E', 'f', 'g', 'G':
		return d.float(out, letter, lib.CheckNumber(l, arg))
	case 'q':
		return lib.appendQuoted(out, lib.CheckString(l, arg))
	case 's':
		s := lib.CheckString(l, arg)
		if d.precision >= 0 && d.precision < len(s) {
			s = s[:d.precision]
		}
		lib.Meter.Charge(len(s))
		return d.pad(out, s)
	}
	name := ""
	if letter != 0 {
		name = string([]byte{letter})
	}
	lib.Raise(l, "invalid option '%"+d.flags+vm.OneLine(name)+"' to 'format'")
	return nil
}

// verb spells the directive for package fmt.
func (d directive) verb(letter byte) string {
	format := "%" + d.flags
	if d.width > 0 {
		format += strconv.Itoa(d.width)
	}
	if d.precision >= 0 {
		format += "." + strconv.Itoa(d.precision)
	}
	return format + string(rune(letter))
}

func (d directive) float(out []byte, letter byte, f float64) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		text := vm.FormatNumber(f)
		if strings.Contains(d.flags, "+") && text[0] != '-' {
			text = "+" + text
		}
		if letter < 'a' {
			text = strings.ToUpper(text)
		}
		return d.pad(out, text)
	}
	if d.precision < 0 {
		d.precision = 6
	}
	if d.precision == 0 && letter|0x20 == 'g' {
		d.precision = 1
	}
	return fmt.Appendf(out, d.verb(letter), f)
}

// pad appends a text padded to the width in bytes.
func (d directive) pad(out []byte, s string) []byte {
	blanks := strings.Repeat(" ", max(d.width-len(s), 0))
	if strings.Contains(d.flags, "-") {
		return append(append(out, s...), blanks...)
	}
	return append(append(out, blanks...), s...)
}

// appendQuoted appends a string as a Lua literal.
func (lib stringLibrary) appendQuoted(out []byte, s string) []byte {
	lib.Meter.Charge(2 * len(s))
	out = append(out, '"')
	for from, to := range lib.Pieces(len(s), stringBytesPerUnit) {
		out = appendEscaped(out, s[from:to])
	}
	return append(out, '"')
}

func appendEscaped(out []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\', '\n':
			out = append(out, '\\', c)
		case '\r':
			out = append(out, `\r`...)
		case 0:
			out = append(out, `\000`...)
		default:
			out = append(out, c)
		}
	}
	return out
}
