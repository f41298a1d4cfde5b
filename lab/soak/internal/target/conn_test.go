package target

import (
	"bufio"
	"strings"
	"testing"
)

func TestReply(t *testing.T) {
	for _, test := range []struct{ in, want, rest string }{
		{"+OK\r\n+next", "+OK", "+next"},
		{"$3\r\na\r\n\r\nx", "$3", "x"},
		{"$-1\r\nx", "$-1", "x"},
		{"*2\r\n:1\r\n*1\r\n$2\r\n\r\n\r\nx", "*2", "x"},
		{"*2\r\n:1\r\n-ERR no\r\nx", "-ERR no", "x"},
		{"%1\r\n+a\r\n*0\r\nx", "%1", "x"},
	} {
		c := &Conn{in: bufio.NewReader(strings.NewReader(test.in))}
		got, err := c.Reply()
		rest, _ := c.in.Peek(c.in.Buffered())
		if got != test.want || string(rest) != test.rest || err != nil {
			t.Errorf("%q: got %q, %v, and %q left, want %q and %q", test.in, got, err, rest, test.want, test.rest)
		}
	}
	if _, err := (&Conn{in: bufio.NewReader(strings.NewReader("*2\r\n:1\r\n"))}).Reply(); err == nil {
		t.Error("half a reply is a reply")
	}
}
