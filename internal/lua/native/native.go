// Package native runs scripts that need no interpreter: a single call of CL.THROTTLE or its like, and
// programs that read a few keys, compute, and write them. All but a Machine is immutable and safe for
// concurrent use.
package native

import (
	"bytes"

	"cellserver/internal/lua/vm"
	"cellserver/internal/resp"
)

// Commands are the full lower-case names of commands that reply arrays of integers.
type Commands map[string]bool

// Call is a script that only calls such a command and returns its reply or one element, as sent by clients
// without such a command.
type Call struct {
	sha1      string // of the script
	args      []argument
	index     int  // of the returned element from 1; 0 is the whole reply
	protected bool // redis.pcall: errors have no position
	line      int  // of the call
}

type source int

const (
	fromLiteral source = iota
	fromKeys
	fromArgv
	fromAllArgv
)

type argument struct {
	from    source
	literal []byte // as passed to the command
	index   int    // into KEYS or ARGV, from 0
	number  bool   // passed through tonumber
}

// Args appends the command's name and arguments to args[:0]. It returns false if the script would fail
// earlier, or pass something only the interpreter computes.
func (c *Call) Args(args, keys, argv [][]byte) ([][]byte, bool) {
	args = args[:0]
	for i := range c.args {
		a := &c.args[i]
		var value []byte
		switch a.from {
		case fromAllArgv:
			if len(argv) >= vm.MaxResults {
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

// numberArgument returns the command's argument for tonumber(text).
func numberArgument(text []byte) ([]byte, bool) {
	const plainDigits = 14 // shorter integers are unchanged
	if len(text) > 0 && len(text) <= plainDigits && (text[0] != '0' || len(text) == 1) {
		i := 0
		for i < len(text) && vm.IsDigit(text[i]) {
			i++
		}
		if i == len(text) {
			return text, true
		}
	}
	f, ok := vm.ParseNumber(string(text))
	if !ok {
		return nil, false
	}
	return vm.AppendExactNumber(nil, f), true
}

// AppendReply appends the script's reply for the command's error or array of integers, in RESP2.
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
		value = vm.TruncateNumber(float64(value)) // Lua numbers are doubles
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
		w.Error(vm.InScript(text, c.sha1, c.line))
	case c.index > 0:
		w.Null()
	default:
		w.Error(vm.OneLine(text))
	}
	return w.Buf
}

// readInteger reads an integer's line of a kind, and returns the rest.
func readInteger(b []byte, kind byte) (n int64, rest []byte, ok bool) {
	end := bytes.IndexByte(b, '\r')
	if end < 2 || b[0] != kind || end+1 >= len(b) {
		return 0, nil, false
	}
	n, ok = resp.ParseInt(b[1:end])
	return n, b[end+2:], ok
}
