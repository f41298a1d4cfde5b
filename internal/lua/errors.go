package lua

import (
	"strconv"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/message"
	"cellserver/internal/lua/number"
)

// raisedAt is the line at which an error was raised; it travels in the Cause of gopher-lua's error.
type raisedAt int

func (r raisedAt) Error() string { return strconv.Itoa(int(r)) }

// onError is what gopher-lua calls with an error on top of the stack. It puts gopher-lua's own messages into Lua's
// words and remembers the line, which is lost once the stack is unwound.
func (st *state) onError(l *vm.LState) {
	v := l.Get(-1)
	if text, ok := v.(vm.LString); ok && !st.verbatim {
		st.meter.Charge(3 * len(text)) // gopher-lua puts long keys into its messages
		v = vm.LString(message.InLuasWords(string(text)))
	}
	st.verbatim = false
	at := raisedAt(message.CurrentLine(l))
	panic(&vm.ApiError{Type: vm.ApiErrorRun, Object: v, StackTrace: message.NoTrace, Cause: at})
}

// throw raises v as it is.
func (st *state) throw(l *vm.LState, v vm.LValue) {
	st.verbatim = true
	l.Error(v, 0)
}

// throwText raises a message as it is, without a position.
func (st *state) throwText(l *vm.LState, text string) { st.throw(l, vm.LString(text)) }

// throwError raises an error reply.
func (st *state) throwError(l *vm.LState, text string) { st.throw(l, st.tagged("err", text)) }

// raise raises a message with the position of the native function's caller in front.
func (st *state) raise(l *vm.LState, text string) {
	st.throw(l, vm.LString(message.Position(l, 1)+text))
}

// raiseArgument says what is wrong with the n-th argument of the native function that runs.
func (st *state) raiseArgument(l *vm.LState, n int, problem string) {
	name := st.native
	if message.Line(l, 1) == 0 {
		name = "?" // called by a native function, as Lua says
	}
	st.raise(l, "bad argument #"+strconv.Itoa(n)+" to '"+name+"' ("+problem+")")
}

// errorText is the reply for an error that a script did not catch.
func errorText(err error, s *Script) string {
	api, ok := err.(*vm.ApiError) //nolint:errorlint // gopher-lua returns it as it is
	if !ok {
		return "ERR " + err.Error()
	}
	var text string
	switch v := api.Object.(type) {
	case *vm.LTable:
		if e, ok := v.RawGetString("err").(vm.LString); ok {
			text = string(e)
		} else {
			text = "ERR the script raised a table without an err field"
		}
	case vm.LNumber:
		text = "ERR " + number.Format(float64(v))
	default:
		text = "ERR " + v.String()
	}
	line, _ := api.Cause.(raisedAt) //nolint:errorlint // a plain value that onError put there
	return message.InScript(text, s.SHA1, int(line))
}
