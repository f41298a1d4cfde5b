package lua

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

type stringLibrary struct{ *vm.Machine }

// stringBytesPerUnit is the number of bytes that a loop over a string handles in an instruction's time.
const stringBytesPerUnit = 16

// openString makes the table string global and returns it.
func openString(m *vm.Machine) *lua.LTable {
	lib := stringLibrary{m}
	return m.OpenLibrary("string", vm.Functions{
		"byte":    lib.byte,
		"char":    lib.char,
		"find":    func(l *lua.LState) int { return lib.find(l, true) },
		"format":  lib.format,
		"gfind":   lib.gmatch,
		"gmatch":  lib.gmatch,
		"gsub":    lib.gsub,
		"len":     func(l *lua.LState) int { return vm.Return(l, lua.LNumber(len(lib.CheckString(l, 1)))) },
		"lower":   func(l *lua.LState) int { return lib.mapBytes(l, 'A', 'Z') },
		"match":   func(l *lua.LState) int { return lib.find(l, false) },
		"rep":     lib.rep,
		"reverse": lib.reverse,
		"sub":     lib.sub,
		"upper":   func(l *lua.LState) int { return lib.mapBytes(l, 'a', 'z') },
	})
}

// position converts an index from either end.
func position(i, n int) int {
	if i < 0 {
		return max(n+i+1, 0)
	}
	return i
}

func (lib stringLibrary) byte(l *lua.LState) int {
	s := lib.CheckString(l, 1)
	from := position(lib.OptInt(l, 2, 1), len(s))
	to := min(position(lib.OptInt(l, 3, from), len(s)), len(s))
	from = max(from, 1)
	n := to - from + 1
	if n <= 0 {
		return 0
	}
	if n > vm.MaxResults-l.GetTop() {
		lib.Raise(l, "string slice too long")
	}
	lib.Meter.Charge(n * 2 * vm.ArgumentBytes)
	for i := from; i <= to; i++ {
		l.Push(lua.LNumber(s[i-1]))
	}
	return n
}

func (lib stringLibrary) char(l *lua.LState) int {
	n := l.GetTop()
	lib.Meter.Charge(n)
	b := make([]byte, n)
	for i := range b {
		c := lib.CheckInt(l, i+1)
		if c < 0 || c > 255 {
			lib.RaiseArgument(l, i+1, "invalid value")
		}
		b[i] = byte(c)
	}
	return lib.PushText(l, b)
}

func (lib stringLibrary) mapBytes(l *lua.LState, from, to byte) int {
	s := lib.CheckString(l, 1)
	lib.Meter.Charge(len(s))
	b := []byte(s)
	for i, end := range lib.Pieces(len(b), stringBytesPerUnit) {
		for ; i < end; i++ {
			if c := b[i]; from <= c && c <= to {
				b[i] = c ^ 0x20
			}
		}
	}
	return lib.PushText(l, b)
}

func (lib stringLibrary) rep(l *lua.LState) int {
	s, n := lib.CheckString(l, 1), lib.CheckInt(l, 2)
	if n <= 0 || s == "" {
		return vm.Return(l, lua.LString(""))
	}
	n = min(n, math.MaxInt/len(s)) // ends any run
	lib.Meter.Charge(n * len(s))
	return vm.Return(l, lua.LString(strings.Repeat(s, n)))
}

func (lib stringLibrary) reverse(l *lua.LState) int {
	s := lib.CheckString(l, 1)
	lib.Meter.Charge(len(s))
	b := make([]byte, len(s))
	for i, end := range lib.Pieces(len(b), stringBytesPerUnit) {
		for ; i < end; i++ {
			b[i] = s[len(s)-1-i]
		}
	}
	return lib.PushText(l, b)
}

func (lib stringLibrary) sub(l *lua.LState) int {
	s := lib.CheckString(l, 1)
	from := max(position(lib.CheckInt(l, 2), len(s)), 1)
	to := min(position(lib.OptInt(l, 3, -1), len(s)), len(s))
	lib.Meter.Charge(vm.ArgumentBytes)
	if from > to {
		return vm.Return(l, lua.LString(""))
	}
	return vm.Return(l, lua.LString(s[from-1:to]))
}
