package lua

import (
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
	"cellserver/internal/resp"
)

func newMachine() *vm.Machine {
	m := vm.New(func() int64 { return 0 }, nil)
	m.Meter.Begin(nil, time.Second, 16<<20)
	return m
}

// write returns a value as a reply, or why the run was ended.
func write(m *vm.Machine, v lua.LValue, resp3 bool, maxBytes int) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text, _ = m.Meter.Ended()
		}
	}()
	w := resp.Writer{RESP3: resp3}
	writeReply(m, &w, v, resp3, maxBytes)
	return string(w.Buf)
}

// TestThereAndBack holds what becomes of a command's reply that a script returns as it is.
func TestThereAndBack(t *testing.T) {
	for _, c := range []struct{ in, resp2, resp3 string }{
		{"+OK\r\n", "+OK\r\n", "+OK\r\n"},
		{"-ERR x\r\n", "-ERR x\r\n", "-ERR x\r\n"},
		{":-5\r\n", ":-5\r\n", ":-5\r\n"},
		{"$3\r\na\r\n\r\n", "$3\r\na\r\n\r\n", "$3\r\na\r\n\r\n"},
		{"$-1\r\n", "$-1\r\n", "#f\r\n"},
		{"*-1\r\n", "$-1\r\n", "#f\r\n"},
		{"_\r\n", "$-1\r\n", "_\r\n"},
		{"#t\r\n", ":1\r\n", "#t\r\n"},
		{",0.1\r\n", "$19\r\n0.10000000000000001\r\n", ",0.10000000000000001\r\n"},
		{",nan\r\n", "$3\r\nnan\r\n", ",nan\r\n"},
		{"(123\r\n", "$3\r\n123\r\n", "(123\r\n"},
		{"=7\r\ntxt:abc\r\n", "$3\r\nabc\r\n", "=7\r\ntxt:abc\r\n"},
		{"%1\r\n:1\r\n:2\r\n", "*2\r\n:1\r\n:2\r\n", "%1\r\n:1\r\n:2\r\n"},
		{"~1\r\n:1\r\n", "*1\r\n:1\r\n", "~1\r\n:1\r\n"},
		{"*2\r\n:1\r\n*1\r\n:2\r\n", "*2\r\n:1\r\n*1\r\n:2\r\n", "*2\r\n:1\r\n*1\r\n:2\r\n"},
	} {
		m := newMachine()
		v, ok := readReply(m, []byte(c.in))
		if !ok {
			t.Errorf("%q is malformed", c.in)
			continue
		}
		if got := write(m, v, false, 1000); got != c.resp2 {
			t.Errorf("%q became %q in RESP2, want %q", c.in, got, c.resp2)
		}
		if got := write(m, v, true, 1000); got != c.resp3 {
			t.Errorf("%q became %q in RESP3, want %q", c.in, got, c.resp3)
		}
	}
}

func TestReplyIsBounded(t *testing.T) {
	v := lua.LString("0123456789")
	if got := write(newMachine(), v, false, 10); got != "$10\r\n0123456789\r\n" {
		t.Errorf("got %q", got)
	}
	if got := write(newMachine(), v, false, 9); got != "ERR the script's reply is longer than 9 bytes" {
		t.Errorf("got %q", got)
	}
}

// FuzzRead reads anything: what is malformed is said to be so.
func FuzzRead(f *testing.F) {
	for _, in := range []string{"%1\r\n+k\r\n:1\r\n", "~-1\r\n", "*2\r\n$1\r\na\r\n_\r\n", "=7\r\ntxt:abc\r\n", ",3.5\r\n", "(1\r\n", "*9223372036854775807\r\n"} {
		f.Add([]byte(in))
	}
	m := vm.New(func() int64 { return 0 }, nil)
	f.Fuzz(func(_ *testing.T, in []byte) {
		m.Meter.Begin(nil, time.Second, 64<<20)
		defer func() {
			if p := recover(); p != nil {
				if reason, _ := m.Meter.Ended(); reason == "" {
					panic(p)
				}
			}
		}()
		if v, ok := readReply(m, in); ok {
			write(m, v, true, 1<<20)
		}
	})
}
