package lua

import (
	"math"
	"strings"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/bound"
	"cellserver/internal/lua/number"
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

func (st *state) matcher(l *vm.LState, src, pat string) *matcher {
	return &matcher{meter: st.meter, fail: func(problem string) { st.raise(l, problem) }, src: src, pat: pat}
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
		m.level = 0
		if end := m.match(from, 0); end >= 0 {
			if find {
				l.Push(vm.LNumber(from + 1))
				l.Push(vm.LNumber(end))
				return 2 + st.pushCaptures(l, m, -1, -1)
			}
			return st.pushCaptures(l, m, from, end)
		}
		if anchored {
			break
		}
	}
	l.Push(vm.LNil)
	return 1
}

// capture is the i-th capture of a match; the whole match stands in for the first if there is none.
func (st *state) capture(m *matcher, i, from, end int) vm.LValue {
	if i >= m.level {
		if i > 0 {
			m.fail("invalid capture index")
		}
		return vm.LString(m.src[from:end])
	}
	c := m.captures[i]
	switch c.length {
	case captureOpen:
		m.fail("unfinished capture")
	case capturePosition:
		return vm.LNumber(c.start + 1)
	}
	return vm.LString(m.src[c.start : c.start+c.length])
}

// pushCaptures pushes all captures, or the whole match if there are none and from is a position.
func (st *state) pushCaptures(l *vm.LState, m *matcher, from, end int) int {
	n := m.level
	if n == 0 && from >= 0 {
		n = 1
	}
	st.meter.Charge(n * bound.ArgumentBytes)
	for i := range n {
		l.Push(st.capture(m, i, from, end))
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
			m.level = 0
			if end := m.match(from, 0); end >= 0 {
				at := from
				from = end
				if end == at {
					from++
				}
				return st.pushCaptures(l, m, at, end)
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
		m.level = 0
		end := m.match(from, 0)
		if end >= 0 {
			n++
			before := len(out)
			out = st.appendReplacement(l, out, m, by, from, end)
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

func (st *state) appendReplacement(l *vm.LState, out []byte, m *matcher, by vm.LValue, from, end int) []byte {
	var v vm.LValue
	switch x := by.(type) {
	case *vm.LTable:
		v = l.GetTable(st.readable(x), st.capture(m, 0, from, end))
	case *vm.LFunction:
		l.Push(x)
		n := st.pushCaptures(l, m, from, end)
		l.Call(n, 1)
		v = l.Get(-1)
		l.Pop(1)
	default:
		return st.appendTemplate(out, m, string(appendText(nil, by)), from, end)
	}
	if vm.LVIsFalse(v) {
		return append(out, m.src[from:end]...)
	}
	if !isText(v) {
		st.raise(l, "invalid replacement value (a "+v.Type().String()+")")
	}
	st.meter.Charge(textBytes(v))
	return appendText(out, v)
}

// appendTemplate appends a replacement text in which %0 to %9 stand for captures.
func (st *state) appendTemplate(out []byte, m *matcher, by string, from, end int) []byte {
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
			st.meter.Charge(end - from)
			out = append(out, m.src[from:end]...)
		case number.IsDigit(by[i]):
			v := st.capture(m, int(by[i]-'1'), from, end)
			st.meter.Charge(textBytes(v))
			out = appendText(out, v)
		default:
			out = append(out, by[i])
		}
	}
	return out
}
