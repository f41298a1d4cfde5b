package vm

import (
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// ChunkName is what Redis calls a script in messages.
const ChunkName = "user_script"

// noTrace replaces an error's stack trace, which gopher-lua would compute.
const noTrace = "-"

// maxMessageBytes truncates the message of an error that ends a script.
const maxMessageBytes = 4096

// lineAt returns the line of the Lua function at a stack level, or 0.
func lineAt(l *lua.LState, level int) int {
	frame, ok := l.GetStack(level)
	if !ok {
		return 0
	}
	if _, err := l.GetInfo("l", frame, lua.LNil); err != nil || frame.CurrentLine < 0 {
		return 0
	}
	return frame.CurrentLine
}

// currentLine returns the current line of the running function, or of a native one's caller.
func currentLine(l *lua.LState) int {
	if line := lineAt(l, 0); line != 0 {
		return line
	}
	return lineAt(l, 1)
}

// Position returns the line at a stack level as a prefix for messages, or nothing.
func Position(l *lua.LState, level int) string {
	if line := lineAt(l, level); line > 0 {
		return AtLine(line)
	}
	return ""
}

func AtLine(line int) string { return ChunkName + ":" + strconv.Itoa(line) + ": " }

// InScript appends the script and the line, unless it is 0, to an error's text as Redis 7 does.
func InScript(text, sha1 string, line int) string {
	text = OneLine(text[:min(len(text), maxMessageBytes)])
	if line == 0 {
		return text
	}
	return text + " script: " + sha1 + ", on @" + ChunkName + ":" + strconv.Itoa(line) + "."
}

// NameInMessage returns a script's name in a form fit for messages.
func NameInMessage(s string) string {
	const most = 256
	return OneLine(s[:min(len(s), most)])
}

// OneLine removes line ends, so that no script forges a second reply.
func OneLine(s string) string {
	if strings.ContainsAny(s, "\r\n") {
		return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
	}
	return s
}

// ErrorReply returns the error that redis.error_reply makes of a text: without a leading dash, and a single
// word, which is no code, gets ERR.
func ErrorReply(text string) string {
	text = strings.TrimPrefix(text, "-")
	if !strings.Contains(text, " ") {
		return "ERR " + text
	}
	return text
}

// translateMessage puts a message of gopher-lua's virtual machine into Lua 5.1's words, without the
// variable's name.
func translateMessage(text string) string {
	prefix, rest := "", text
	if strings.HasPrefix(text, ChunkName+":") {
		if _, after, ok := strings.Cut(text, ": "); ok {
			prefix, rest = text[:len(text)-len(after)], after
		}
	}
	switch {
	case strings.HasPrefix(rest, "attempt to index a non-table object("):
		kind, _, _ := strings.Cut(rest[len("attempt to index a non-table object("):], ")")
		rest = "attempt to index a " + kind + " value"
	case rest == "attempt to call a non-function object":
		rest = "attempt to call a table value" // simple types have their own message
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
