package lua

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

func (lib stringLibrary) matcher(l *lua.LState, src, pat string) *matcher {
	return &matcher{meter: lib.Meter, fail: func(problem string) { lib.Raise(l, problem) }, src: src, pat: pat}
}

// find is string.find, and string.match without the positions.
func (lib stringLibrary) find(l *lua.LState, find bool) int {
	s, pat := lib.CheckString(l, 1), lib.CheckString(l, 2)
	from := min(max(position(lib.OptInt(l, 3, 1), len(s))-1, 0), len(s))
	if find && (lua.LVAsBool(l.Get(4)) || !lib.isPattern(pat)) {
		i := lib.index(s[from:], pat)
		if i < 0 {
			return vm.Return(l, lua.LNil)
		}
		return vm.Return(l, lua.LNumber(from+i+1), lua.LNumber(from+i+len(pat)))
	}
	pat, anchored := strings.CutPrefix(pat, "^")
	m := lib.matcher(l, s, pat)
	var end int
	if anchored {
		end = m.matchAt(from)
	} else {
		end = m.search(from)
	}
	switch {
	case end < 0:
		return vm.Return(l, lua.LNil)
	case find:
		return vm.Return(l, lua.LNumber(m.from+1), lua.LNumber(end)) + lib.pushCaptures(l, m, 0)
	}
	return lib.pushCaptures(l, m, 1)
}

// isPattern reports whether a pattern is not plain text.
func (lib stringLibrary) isPattern(pat string) bool {
	for from, to := range lib.Pieces(len(pat), stringBytesPerUnit) {
		if strings.ContainsAny(pat[from:to], "^$*+?.([%-") {
			return true
		}
	}
	return false
}

// index is a bounded strings.Index: it looks for a long text's beginning first, in windows.
func (lib stringLibrary) index(s, text string) int {
	const beginning = 1 << 10
	if len(text) == 0 {
		return 0
	}
	first := text[:min(len(text), beginning)]
	for from, to := range lib.Pieces(len(s), stringBytesPerUnit) {
		window := s[:min(to+len(first)-1, len(s))]
		for at := from; ; at++ {
			i := strings.Index(window[at:], first)
			if i < 0 {
				break
			}
			at += i
			if len(first) == len(text) || lib.hasPrefix(s[at:], text) {
				return at
			}
		}
	}
	return -1
}

func (lib stringLibrary) hasPrefix(s, text string) bool {
	if len(s) < len(text) {
		return false
	}
	lib.Meter.Spend(1)
	for from, to := range lib.Pieces(len(text), 4*stringBytesPerUnit) {
		if s[from:to] != text[from:to] {
			return false
		}
	}
	return true
}

// pushCaptures pushes the captures, or the whole match if there are none and one is required.
func (lib stringLibrary) pushCaptures(l *lua.LState, m *matcher, least int) int {
	n := max(m.level, least)
	lib.Meter.Charge(n * vm.ArgumentBytes)
	for i := range n {
		l.Push(m.capture(i))
	}
	return n
}

func (lib stringLibrary) gmatch(l *lua.LState) int {
	s, pat := lib.CheckString(l, 1), lib.CheckString(l, 2)
	lib.Meter.Charge(vm.ClosureBytes + 1024)
	from := 0
	l.Push(l.NewFunction(func(l *lua.LState) int {
		m := lib.matcher(l, s, pat)
		end := m.search(from)
		if end < 0 {
			return vm.Return(l, lua.LNil)
		}
		from = max(end, m.from+1)
		return lib.pushCaptures(l, m, 1)
	}))
	return 1
}

func (lib stringLibrary) gsub(l *lua.LState) int {
	s, pat := lib.CheckString(l, 1), lib.CheckString(l, 2)
	by := l.Get(3)
	switch x := by.(type) {
	case lua.LNumber:
		by = lua.LString(vm.FormatNumber(float64(x)))
	case lua.LString, *lua.LTable, *lua.LFunction:
	default:
		lib.RaiseArgument(l, 3, "string/function/table expected")
	}
	most := lib.OptInt(l, 4, len(s)+1)
	pat, anchored := strings.CutPrefix(pat, "^")
	m := lib.matcher(l, s, pat)
	var out []byte
	n, from := 0, 0
	for n < most {
		end := m.matchAt(from)
		if end >= 0 {
			n++
			before := len(out)
			out = lib.appendReplacement(l, out, m, by)
			lib.Meter.Charge(len(out) - before)
		}
		if end > from {
			from = end
		} else if from < len(s) {
			out = append(out, s[from])
			from++
		} else {
			break
		}
		if anchored {
			break
		}
	}
	lib.Meter.Charge(len(out) + len(s)) // for its growth
	out = append(out, s[min(from, len(s)):]...)
	lib.PushText(l, out)
	l.Push(lua.LNumber(n))
	return 2
}

func (lib stringLibrary) appendReplacement(l *lua.LState, out []byte, m *matcher, by lua.LValue) []byte {
	var v lua.LValue
	switch x := by.(type) {
	case *lua.LTable:
		v = l.GetTable(lib.Readable(x), m.capture(0))
	case *lua.LFunction:
		l.Push(x)
		n := lib.pushCaptures(l, m, 1)
		l.Call(n, 1)
		v = l.Get(-1)
		l.Pop(1)
	case lua.LString:
		return lib.appendTemplate(out, m, string(x))
	}
	if lua.LVIsFalse(v) {
		return append(out, m.whole()...)
	}
	if !vm.IsText(v) {
		lib.Raise(l, "invalid replacement value (a "+v.Type().String()+")")
	}
	lib.Meter.Charge(vm.TextBytes(v))
	return vm.AppendText(out, v)
}

// appendTemplate appends a replacement text with captures for %0 to %9.
func (lib stringLibrary) appendTemplate(out []byte, m *matcher, by string) []byte {
	lib.Meter.Charge(len(by))
	for i := 0; i < len(by); i++ {
		if by[i] != '%' {
			out = append(out, by[i])
			continue
		}
		i++
		switch {
		case i == len(by):
			out = append(out, 0)
		case by[i] == '0':
			lib.Meter.Charge(len(m.whole()))
			out = append(out, m.whole()...)
		case vm.IsDigit(by[i]):
			v := m.capture(int(by[i] - '1'))
			lib.Meter.Charge(vm.TextBytes(v))
			out = vm.AppendText(out, v)
		default:
			out = append(out, by[i])
		}
	}
	return out
}
