package lua

import (
	"strconv"
	"strings"

	"cellserver/internal/lua/number"

	vm "github.com/yuin/gopher-lua"
)

// chunkName is what Redis calls a script in messages.
const chunkName = "user_script"

// maxMessageBytes cuts the message of an error that ends a script.
const maxMessageBytes = 4096

// raisedAt is the line at which an error was raised; it travels in the Cause of gopher-lua's error.
type raisedAt int

func (r raisedAt) Error() string { return strconv.Itoa(int(r)) }

// onError is what gopher-lua calls with an error on top of the stack. It puts gopher-lua's own messages into Lua's
// words and remembers the line, which is lost once the stack is unwound.
func (st *state) onError(l *vm.LState) {
	v := l.Get(-1)
	if text, ok := v.(vm.LString); ok && !st.verbatim {
		st.meter.charge(3 * len(text)) // gopher-lua puts long keys into its messages
		v = vm.LString(luaWords(string(text)))
	}
	st.verbatim = false
	line := currentLine(l, 0)
	if line == 0 {
		line = currentLine(l, 1)
	}
	panic(&vm.ApiError{Type: vm.ApiErrorRun, Object: v, StackTrace: noTrace, Cause: raisedAt(line)})
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
	st.throw(l, vm.LString(where(l, 1)+text))
}

// raiseArgument says what is wrong with the n-th argument of the native function that runs.
func (st *state) raiseArgument(l *vm.LState, n int, problem string) {
	name := st.native
	if currentLine(l, 1) == 0 {
		name = "?" // called by a native function, as Lua says
	}
	st.raise(l, "bad argument #"+strconv.Itoa(n)+" to '"+name+"' ("+problem+")")
}

func where(l *vm.LState, level int) string {
	if line := currentLine(l, level); line > 0 {
		return chunkName + ":" + strconv.Itoa(line) + ": "
	}
	return ""
}

// currentLine is the line of the Lua function at a level of the stack, or 0 if there is none.
func currentLine(l *vm.LState, level int) int {
	frame, ok := l.GetStack(level)
	if !ok {
		return 0
	}
	if _, err := l.GetInfo("l", frame, vm.LNil); err != nil || frame.CurrentLine < 0 {
		return 0
	}
	return frame.CurrentLine
}

// luaWords puts a message of gopher-lua's virtual machine into Lua 5.1's words, without the variable's name.
func luaWords(text string) string {
	prefix, rest := "", text
	if strings.HasPrefix(text, chunkName+":") {
		if _, after, ok := strings.Cut(text, ": "); ok {
			prefix, rest = text[:len(text)-len(after)], after
		}
	}
	switch {
	case strings.HasPrefix(rest, "attempt to index a non-table object("):
		kind, _, _ := strings.Cut(rest[len("attempt to index a non-table object("):], ")")
		rest = "attempt to index a " + kind + " value"
	case rest == "attempt to call a non-function object":
		rest = "attempt to call a table value" // the simple types have their own message
	case rest == "__unm undefined":
		rest = "attempt to perform arithmetic on a table value"
	case strings.HasPrefix(rest, "cannot perform "):
		if _, kinds, ok := strings.Cut(rest, " operation between "); ok {
			left, right, _ := strings.Cut(kinds, " and ")
			if left == "number" {
				left = right
			}
			rest = "attempt to perform arithmetic on a " + left + " value"
		}
	case strings.HasPrefix(rest, "attempt to compare "):
		left, right, _ := strings.Cut(rest[len("attempt to compare "):], " with ")
		if left == right {
			rest = "attempt to compare two " + left + " values"
		}
	case strings.HasPrefix(rest, "for statement "):
		for gopher, lua := range map[string]string{"init": "initial value", "limit": "limit", "step": "step"} {
			rest = strings.Replace(rest, "for statement "+gopher, "'for' "+lua, 1)
		}
	}
	return prefix + rest
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
	return withPlace(text, s, int(line))
}

// withPlace appends the script and the line to an error's text, as Redis 7 does.
func withPlace(text string, s *Script, line int) string {
	text = oneLine(text[:min(len(text), maxMessageBytes)])
	if line == 0 {
		return text
	}
	return text + " script: " + s.SHA1 + ", on @" + chunkName + ":" + strconv.Itoa(line) + "."
}

// oneLine keeps a script from forging a second reply.
func oneLine(s string) string {
	if strings.ContainsAny(s, "\r\n") {
		return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
	}
	return s
}
