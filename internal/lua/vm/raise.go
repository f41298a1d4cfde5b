package vm

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// raisedAt is the line of an error, passed in the Cause of gopher-lua's error.
type raisedAt int

func (r raisedAt) Error() string { return strconv.Itoa(int(r)) }

// onError is called with an error on top of the stack. It translates gopher-lua's messages and records the
// line, which unwinding would lose.
func (m *Machine) onError(l *lua.LState) {
	v := l.Get(-1)
	if text, ok := v.(lua.LString); ok && !m.verbatim {
		m.Meter.Charge(3 * len(text)) // gopher-lua's messages contain long keys
		v = lua.LString(translateMessage(string(text)))
	}
	m.verbatim = false
	at := raisedAt(currentLine(l))
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: v, StackTrace: noTrace, Cause: at})
}

// Throw raises v unchanged.
func (m *Machine) Throw(l *lua.LState, v lua.LValue) {
	m.verbatim = true
	l.Error(v, 0)
}

// ThrowText raises a message without a position.
func (m *Machine) ThrowText(l *lua.LState, text string) { m.Throw(l, lua.LString(text)) }

// Raise raises a message with the caller's position.
func (m *Machine) Raise(l *lua.LState, text string) {
	m.Throw(l, lua.LString(Position(l, 1)+text))
}

const readOnlyText = "Attempt to modify a readonly table"

func (m *Machine) raiseReadOnly(l *lua.LState) { m.Raise(l, readOnlyText) }

// ThrowReadOnly raises the error without a position, like Redis's own functions.
func (m *Machine) ThrowReadOnly(l *lua.LState) { m.ThrowText(l, readOnlyText) }

// RaiseArgument raises an error about the running native function's n-th argument.
func (m *Machine) RaiseArgument(l *lua.LState, n int, problem string) {
	name := m.native
	if lineAt(l, 1) == 0 {
		name = "?" // called by a native function, in Lua's words
	}
	m.Raise(l, "bad argument #"+strconv.Itoa(n)+" to '"+name+"' ("+problem+")")
}

// ErrorText returns the reply for an uncaught error of PCall.
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
		text = "ERR " + FormatNumber(float64(v))
	default:
		text = "ERR " + v.String()
	}
	line, _ := api.Cause.(raisedAt) //nolint:errorlint // a plain value that onError put there
	return InScript(text, sha1, int(line))
}
