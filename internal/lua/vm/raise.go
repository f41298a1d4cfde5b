package vm

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/guard"
)

// raisedAt is the line at which an error was raised; it travels in the Cause of gopher-lua's error.
type raisedAt int

func (r raisedAt) Error() string { return strconv.Itoa(int(r)) }

// onError is what gopher-lua calls with an error on top of the stack. It puts gopher-lua's own messages into Lua's
// words and remembers the line, which is lost once the stack is unwound.
func (m *Machine) onError(l *lua.LState) {
	v := l.Get(-1)
	if text, ok := v.(lua.LString); ok && !m.verbatim {
		m.Meter.Charge(3 * len(text)) // gopher-lua puts long keys into its messages
		v = lua.LString(guard.TranslateMessage(string(text)))
	}
	m.verbatim = false
	at := raisedAt(guard.CurrentLine(l))
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: v, StackTrace: guard.NoTrace, Cause: at})
}

// Throw raises v as it is.
func (m *Machine) Throw(l *lua.LState, v lua.LValue) {
	m.verbatim = true
	l.Error(v, 0)
}

// ThrowText raises a message as it is, without a position.
func (m *Machine) ThrowText(l *lua.LState, text string) { m.Throw(l, lua.LString(text)) }

// Raise raises a message with the position of the native function's caller in front.
func (m *Machine) Raise(l *lua.LState, text string) {
	m.Throw(l, lua.LString(guard.Position(l, 1)+text))
}

const readOnlyText = "Attempt to modify a readonly table"

// raiseReadOnly raises that a table cannot be changed.
func (m *Machine) raiseReadOnly(l *lua.LState) { m.Raise(l, readOnlyText) }

// ThrowReadOnly is RaiseReadOnly as Redis's own functions raise it, without a position.
func (m *Machine) ThrowReadOnly(l *lua.LState) { m.ThrowText(l, readOnlyText) }

// RaiseArgument says what is wrong with the n-th argument of the native function that runs.
func (m *Machine) RaiseArgument(l *lua.LState, n int, problem string) {
	name := m.native
	if guard.LineAt(l, 1) == 0 {
		name = "?" // called by a native function, as Lua says
	}
	m.Raise(l, "bad argument #"+strconv.Itoa(n)+" to '"+name+"' ("+problem+")")
}

// ErrorText returns the text of the reply for an error of PCall that the script with a SHA-1 did not catch.
func ErrorText(err error, sha1 string) string {
	api, ok := err.(*lua.ApiError) //nolint:errorlint // gopher-lua returns it as it is
	if !ok {
		return "ERR " + err.Error()
	}
	var text string
	switch v := api.Object.(type) {
	case *lua.LTable:
		if e, ok := v.RawGetString("err").(lua.LString); ok {
			text = string(e)
		} else {
			text = "ERR the script raised a table without an err field"
		}
	case lua.LNumber:
		text = "ERR " + guard.FormatNumber(float64(v))
	default:
		text = "ERR " + v.String()
	}
	line, _ := api.Cause.(raisedAt) //nolint:errorlint // a plain value that onError put there
	return guard.InScript(text, sha1, int(line))
}
