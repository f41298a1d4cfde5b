package lua

import (
	"math"
	"strings"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/bound"
	"cellserver/internal/lua/number"
	"cellserver/internal/lua/pattern"
)

func (st *state) openString() {
	lib := st.openLibrary("string", library{
		"byte":    st.stringByte,
		"char":    st.stringChar,
		"find":    func(l *vm.LState) int { return st.stringFind(l, true) },
		"format":  st.stringFormat,
		"gfind":   st.stringGmatch,
		"gmatch":  st.stringGmatch,
		"gsub":    st.stringGsub,
		"len":     func(l *vm.LState) int { l.Push(vm.LNumber(len(st.checkString(l, 1)))); return 1 },
		"lower":   func(l *vm.LState) int { return st.mapBytes(l, 'A', 'Z') },
		"match":   func(l *vm.LState) int { return st.stringFind(l, false) },
		"rep":     st.stringRep,
		"reverse": st.stringReverse,
		"sub":     st.stringSub,
		"upper":   func(l *vm.LState) int { return st.mapBytes(l, 'a', 'z') },
	})
	meta := st.l.CreateTable(0, 16)
	meta.RawSetString("__index", lib)
	st.openArithmetic(meta)
	meta.Metatable = st.sealed
	st.l.SetMetatable(vm.LString(""), meta)
}

// position turns an index from either end into one from the beginning.
func position(i, n int) int {
	if i < 0 {
		return max(n+i+1, 0)
	}
	return i
}

func (st *state) stringByte(l *vm.LState) int {
	s := st.checkString(l, 1)
	from := position(st.optInt(l, 2, 1), len(s))
	to := min(position(st.optInt(l, 3, from), len(s)), len(s))
	from = max(from, 1)
	n := to - from + 1
	if n <= 0 {
		return 0
	}
	if n > bound.MaxResults {
		st.raise(l, "string slice too long")
	}
	st.meter.Charge(n * 2 * bound.ArgumentBytes)
	for i := from; i <= to; i++ {
		l.Push(vm.LNumber(s[i-1]))
	}
	return n
}

func (st *state) stringChar(l *vm.LState) int {
	n := l.GetTop()
	st.meter.Charge(n)
	b := make([]byte, n)
	for i := range b {
		c := st.checkInt(l, i+1)
		if c < 0 || c > 255 {
			st.raiseArgument(l, i+1, "invalid value")
		}
		b[i] = byte(c)
	}
	return st.pushText(l, b)
}

func (st *state) mapBytes(l *vm.LState, from, to byte) int {
	s := st.checkString(l, 1)
	st.meter.Charge(len(s))
	b := []byte(s)
	for i, c := range b {
		if from <= c && c <= to {
			b[i] = c ^ 0x20
		}
	}
	st.meter.Spend(len(s) >> 4)
	return st.pushText(l, b)
}

func (st *state) stringRep(l *vm.LState) int {
	s, n := st.checkString(l, 1), st.checkInt(l, 2)
	if n <= 0 || s == "" {
		l.Push(vm.LString(""))
		return 1
	}
	n = min(n, math.MaxInt/len(s)) // enough to end any run
	st.meter.Charge(n * len(s))
	l.Push(vm.LString(strings.Repeat(s, n)))
	return 1
}

func (st *state) stringReverse(l *vm.LState) int {
	s := st.checkString(l, 1)
	st.meter.Charge(len(s))
	b := make([]byte, len(s))
	for i := range b {
		b[i] = s[len(s)-1-i]
	}
	st.meter.Spend(len(s) >> 4)
	return st.pushText(l, b)
}

func (st *state) stringSub(l *vm.LState) int {
	s := st.checkString(l, 1)
	from := max(position(st.checkInt(l, 2), len(s)), 1)
	to := min(position(st.optInt(l, 3, -1), len(s)), len(s))
	st.meter.Charge(bound.ArgumentBytes)
	if from > to {
		l.Push(vm.LString(""))
	} else {
		l.Push(vm.LString(s[from-1 : to]))
	}
	return 1
}

func (st *state) matcher(l *vm.LState, src, pat string) *pattern.Matcher {
	return pattern.New(st.meter, func(problem string) { st.raise(l, problem) }, src, pat)
}

// stringFind is string.find, and string.match without the positions.
func (st *state) stringFind(l *vm.LState, find bool) int {
	s, pat := st.checkString(l, 1), st.checkString(l, 2)
	from := min(max(position(st.optInt(l, 3, 1), len(s))-1, 0), len(s))
	if find && (vm.LVAsBool(l.Get(4)) || !strings.ContainsAny(pat, "^$*+?.([%-")) {
		st.meter.Spend(len(s) >> 3)
		i := strings.Index(s[from:], pat)
		if i < 0 {
			l.Push(vm.LNil)
			return 1
		}
		l.Push(vm.LNumber(from + i + 1))
		l.Push(vm.LNumber(from + i + len(pat)))
		return 2
	}
	pat, anchored := strings.CutPrefix(pat, "^")
	m := st.matcher(l, s, pat)
	for ; from <= len(s); from++ {
		if end := m.Match(from); end >= 0 {
			if find {
				l.Push(vm.LNumber(from + 1))
				l.Push(vm.LNumber(end))
				return 2 + st.pushCaptures(l, m, m.Captures())
			}
			return st.pushCaptures(l, m, max(m.Captures(), 1))
		}
		if anchored {
			break
		}
	}
	l.Push(vm.LNil)
	return 1
}

// capture is the i-th capture of a match, a text or a position.
func capture(m *pattern.Matcher, i int) vm.LValue {
	text, position := m.Capture(i)
	if position > 0 {
		return vm.LNumber(position)
	}
	return vm.LString(text)
}

// pushCaptures pushes the first n captures, of which the first may be the whole match.
func (st *state) pushCaptures(l *vm.LState, m *pattern.Matcher, n int) int {
	st.meter.Charge(n * bound.ArgumentBytes)
	for i := range n {
		l.Push(capture(m, i))
	}
	return n
}

func (st *state) stringGmatch(l *vm.LState) int {
	s, pat := st.checkString(l, 1), st.checkString(l, 2)
	st.meter.Charge(bound.ClosureBytes + 1024)
	from := 0
	l.Push(l.NewFunction(func(l *vm.LState) int {
		m := st.matcher(l, s, pat)
		for ; from <= len(s); from++ {
			if end := m.Match(from); end >= 0 {
				from = max(end, from+1)
				return st.pushCaptures(l, m, max(m.Captures(), 1))
			}
		}
		l.Push(vm.LNil)
		return 1
	}))
	return 1
}

func (st *state) stringGsub(l *vm.LState) int {
	s, pat := st.checkString(l, 1), st.checkString(l, 2)
	by := l.Get(3)
	switch by.(type) {
	case vm.LString, vm.LNumber, *vm.LTable, *vm.LFunction:
	default:
		st.raiseArgument(l, 3, "string/function/table expected")
	}
	most := st.optInt(l, 4, len(s)+1)
	pat, anchored := strings.CutPrefix(pat, "^")
	m := st.matcher(l, s, pat)
	var out []byte
	n, from := 0, 0
	for n < most {
		end := m.Match(from)
		if end >= 0 {
			n++
			before := len(out)
			out = st.appendReplacement(l, out, m, by)
			st.meter.Charge(len(out) - before)
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
	st.meter.Charge(len(out) + len(s)) // what growing it took
	out = append(out, s[min(from, len(s)):]...)
	st.pushText(l, out)
	l.Push(vm.LNumber(n))
	return 2
}

func (st *state) appendReplacement(l *vm.LState, out []byte, m *pattern.Matcher, by vm.LValue) []byte {
	var v vm.LValue
	switch x := by.(type) {
	case *vm.LTable:
		v = l.GetTable(st.readable(x), capture(m, 0))
	case *vm.LFunction:
		l.Push(x)
		n := st.pushCaptures(l, m, max(m.Captures(), 1))
		l.Call(n, 1)
		v = l.Get(-1)
		l.Pop(1)
	default:
		return st.appendTemplate(out, m, string(appendText(nil, by)))
	}
	if vm.LVIsFalse(v) {
		return append(out, m.Whole()...)
	}
	if !isText(v) {
		st.raise(l, "invalid replacement value (a "+v.Type().String()+")")
	}
	st.meter.Charge(textBytes(v))
	return appendText(out, v)
}

// appendTemplate appends a replacement text in which %0 to %9 stand for captures.
func (st *state) appendTemplate(out []byte, m *pattern.Matcher, by string) []byte {
	st.meter.Charge(len(by))
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
			st.meter.Charge(len(m.Whole()))
			out = append(out, m.Whole()...)
		case number.IsDigit(by[i]):
			v := capture(m, int(by[i]-'1'))
			st.meter.Charge(textBytes(v))
			out = appendText(out, v)
		default:
			out = append(out, by[i])
		}
	}
	return out
}
