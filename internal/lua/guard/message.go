package guard

import (
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// ChunkName is what Redis calls a script in messages.
const ChunkName = "user_script"

// NoTrace stands for the stack trace of an error, so that gopher-lua does not compute one.
const NoTrace = "-"

// maxMessageBytes cuts the message of an error that ends a script.
const maxMessageBytes = 4096

// LineAt returns the line of the Lua function at a level of the stack, or 0 if there is none.
func LineAt(l *lua.LState, level int) int {
	frame, ok := l.GetStack(level)
	if !ok {
		return 0
	}
	if _, err := l.GetInfo("l", frame, lua.LNil); err != nil || frame.CurrentLine < 0 {
		return 0
	}
	return frame.CurrentLine
}

// CurrentLine returns the line that is executed: of the function that runs, or of its caller if it is native.
func CurrentLine(l *lua.LState) int {
	if line := LineAt(l, 0); line != 0 {
		return line
	}
	return LineAt(l, 1)
}

// Position returns the line at a level of the stack as the beginning of a message, or nothing if there is none.
func Position(l *lua.LState, level int) string {
	if line := LineAt(l, level); line > 0 {
		return AtLine(line)
	}
	return ""
}

// AtLine returns a line as the beginning of a message.
func AtLine(line int) string { return ChunkName + ":" + strconv.Itoa(line) + ": " }

// InScript appends the script and the line to an error's text, as Redis 7 does, unless the line is 0.
func InScript(text, sha1 string, line int) string {
	text = OneLine(text[:min(len(text), maxMessageBytes)])
	if line == 0 {
		return text
	}
	return text + " script: " + sha1 + ", on @" + ChunkName + ":" + strconv.Itoa(line) + "."
}

// NameInMessage returns a name that a script has made as it is fit for a message.
func NameInMessage(s string) string {
	const most = 256
	return OneLine(s[:min(len(s), most)])
}

// OneLine returns s without line ends: no script forges a second reply.
func OneLine(s string) string {
	if strings.ContainsAny(s, "\r\n") {
		return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
	}
	return s
}
