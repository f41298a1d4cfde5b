package vm

import (
	"iter"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/resp"
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

// CutReply cuts the first line off replies to commands, and a string's bytes. It returns the type, the text,
// and a number or size.
func CutReply(b []byte) (kind byte, text []byte, n int64, rest []byte, ok bool) {
	end := 0
	for end < len(b) && b[end] != '\r' {
		end++
	}
	if end == 0 || end+1 >= len(b) {
		return 0, nil, 0, nil, false
	}
	kind, text, rest, ok = b[0], b[1:end], b[end+2:], true
	switch kind {
	case ':', '*', '%', '~', '$', '=':
		n, ok = resp.ParseInt(text)
	}
	if n >= 0 && (kind == '$' || kind == '=') {
		if n > int64(len(rest)-2) {
			return 0, nil, 0, nil, false
		}
		text, rest = rest[:n:n], rest[n+2:]
	}
	return kind, text, n, rest, ok
}
