// Package native knows scripts that need no interpreter, as they are one call of CL.THROTTLE or of a command like it. Nothing
// in it changes: all of it may be used by several goroutines at once.
package native

import (
	"bytes"

	"cellserver/internal/lua/guard"

	"cellserver/internal/resp"
)

// Commands are those of which a call needs no interpreter, by their full names in lower case: they reply an array of integers.
type Commands map[string]bool

// A Call is a script that does nothing but call such a command and return its reply, or one element of that. Such scripts
// come from clients that have no such command.
type Call struct {
	sha1      string // of the script
	args      []argument
	index     int  // of the element that is returned, from 1 on; 0 is the whole reply
	protected bool // redis.pcall: errors have no place appended
	line      int  // of the call
}

type source int

const (
	fromLiteral source = iota
	fromKeys
	fromArgv
	fromAllArgv
)

// An argument is one of the command's.
type argument struct {
	from    source
	literal []byte // as the command gets it
	index   int    // into KEYS or ARGV, from 0 on
	number  bool   // it went through tonumber
}

// Args appends the command's arguments, its name first, to args[:0]. It returns false if the script would fail before
// the command, or pass what only the interpreter knows: then the interpreter must run it.
func (c *Call) Args(args, keys, argv [][]byte) ([][]byte, bool) {
	args = args[:0]
	for i := range c.args {
		a := &c.args[i]
		var value []byte
		switch a.from {
		case fromAllArgv:
			if len(argv) >= guard.MaxResults {
				return args, false
			}
			args = append(args, argv...)
			continue
		case fromLiteral:
			value = a.literal
		default:
			list := keys
			if a.from == fromArgv {
				list = argv
			}
			if a.index >= len(list) {
				return args, false
			}
			value = list[a.index]
		}
		if a.number {
			var ok bool
			if value, ok = numberArgument(value); !ok {
				return args, false
			}
		}
		args = append(args, value)
	}
	return args, true
}

// numberArgument is what becomes of tonumber(text) on its way to a command.
func numberArgument(text []byte) ([]byte, bool) {
	const plainDigits = 14 // an integer of so few digits stays as it is
	if len(text) > 0 && len(text) <= plainDigits && (text[0] != '0' || len(text) == 1) {
		i := 0
		for i < len(text) && guard.IsDigit(text[i]) {
			i++
		}
		if i == len(text) {
			return text, true
		}
	}
	f, ok := guard.ParseNumber(string(text))
	if !ok {
		return nil, false
	}
	return guard.AppendExactNumber(nil, f), true
}

// AppendReply appends the script's reply for the command's, which is an error or an array of integers, in RESP2.
func (c *Call) AppendReply(answer, buf []byte, resp3 bool) []byte {
	if len(answer) > 0 && answer[0] == '-' {
		return c.appendError(answer, buf, resp3)
	}
	w := resp.Writer{Buf: buf, RESP3: resp3}
	count, rest, ok := readInteger(answer, '*')
	if ok && c.index == 0 {
		w.Array(int(count))
	}
	for i := int64(1); ok && i <= count; i++ {
		var value int64
		value, rest, ok = readInteger(rest, ':')
		value = guard.TruncateNumber(float64(value)) // numbers of Lua are doubles
		switch c.index {
		case 0:
			w.Int(value)
		case int(i):
			w.Int(value)
			return w.Buf
		}
	}
	if !ok {
		w.Buf = buf
		w.Error("ERR the command gave a reply that is none")
		return w.Buf
	}
	if c.index > 0 {
		w.Null()
	}
	return w.Buf
}

func (c *Call) appendError(answer, buf []byte, resp3 bool) []byte {
	text := string(bytes.TrimRight(answer[1:], "\r\n"))
	w := resp.Writer{Buf: buf, RESP3: resp3}
	switch {
	case !c.protected:
		w.Error(guard.InScript(text, c.sha1, c.line))
	case c.index > 0:
		w.Null()
	default:
		w.Error(guard.OneLine(text))
	}
	return w.Buf
}

// readInteger reads a line of a kind and an integer, and returns what follows it.
func readInteger(b []byte, kind byte) (n int64, rest []byte, ok bool) {
	end := bytes.IndexByte(b, '\r')
	if end < 2 || b[0] != kind || end+1 >= len(b) {
		return 0, nil, false
	}
	n, ok = resp.ParseInt(b[1:end])
	return n, b[end+2:], ok
}
