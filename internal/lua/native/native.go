// Package native runs scripts that need no interpreter: a single call of CL.THROTTLE or its like, and
// programs that read a few keys, compute, and write them. All but a Machine is immutable and safe for
// concurrent use.
package native

import (
	"cellserver/internal/lua/vm"
	"cellserver/internal/resp"
)

// Commands are the full lower-case names of commands that reply arrays of integers.
type Commands map[string]bool

// Call is a script that only calls such a command and returns its reply or one element, as sent by clients
// without such a command.
type Call struct {
	args  []argument
	index int // of the returned element from 1; 0 is the whole reply
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

// AppendReply appends the script's reply for the command's integers.
func (c *Call) AppendReply(answer []int64, buf []byte, resp3 bool) []byte {
	w := resp.Writer{Buf: buf, RESP3: resp3}
	number := func(n int64) { w.Int(vm.ReplyNumber(float64(n))) } // Lua numbers are doubles
	switch {
	case c.index == 0:
		w.Array(len(answer))
		for _, n := range answer {
			number(n)
		}
	case c.index <= len(answer):
		number(answer[c.index-1])
	default:
		w.Null()
	}
	return w.Buf
}
