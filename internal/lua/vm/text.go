package vm

import (
	"iter"

	lua "github.com/yuin/gopher-lua"
)

// IsText reports whether a value is a string or a number.
func IsText(v lua.LValue) bool {
	switch v.(type) {
	case lua.LString, lua.LNumber:
		return true
	}
	return false
}

// TextBytes bounds the length of a string or number.
func TextBytes(v lua.LValue) int {
	if s, ok := v.(lua.LString); ok {
		return len(s)
	}
	return 24
}

// AppendText appends a string, or a number as Lua shows it.
func AppendText(b []byte, v lua.LValue) []byte {
	switch x := v.(type) {
	case lua.LString:
		return append(b, x...)
	case lua.LNumber:
		return AppendNumber(b, float64(x))
	}
	return b
}

// Pieces iterates over n bytes in pieces of some 10 microseconds, each spent beforehand; bytesPerUnit are
// handled in an instruction's time.
func (m *Machine) Pieces(n, bytesPerUnit int) iter.Seq2[int, int] {
	const piece = 8 << 10
	return func(yield func(from, to int) bool) {
		for from := 0; from < n; from += piece {
			to := min(from+piece, n)
			m.Meter.Spend((to - from) / bytesPerUnit)
			if !yield(from, to) {
				return
			}
		}
	}
}

// PushText pushes a new string and charges for it.
func (m *Machine) PushText(l *lua.LState, b []byte) int {
	m.Meter.Charge(len(b) + 16)
	l.Push(lua.LString(b))
	return 1
}
