package resp

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
)

var testBounds = ReplyBounds{BulkBytes: 100, Bytes: 400, Elements: 20}

// scripted is a connection whose peer sends a text in pieces.
type scripted struct {
	net.Conn
	text string
	each int
}

func (s *scripted) Read(b []byte) (int, error) {
	if s.text == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), s.each)], s.text)
	s.text = s.text[n:]
	return n, nil
}

func (s *scripted) Write(b []byte) (int, error) { return len(b), nil }

// TestRepliesPass: valid replies pass unchanged, in pieces of any size.
func TestRepliesPass(t *testing.T) {
	for _, text := range []string{
		"+OK\r\n", "-ERR no\r\n", ":-5\r\n$-1\r\n*-1\r\n$0\r\n\r\n*0\r\n%0\r\n", "$3\r\na\nb\r\n:1\r\n",
		"*3\r\n*2\r\n:1\r\n$1\r\nx\r\n*0\r\n%1\r\n+a\r\n~1\r\n#t\r\n+b\r\n", ">2\r\n+message\r\n(12345678901234567890\r\n_\r\n,inf\r\n=7\r\ntxt:abc\r\n!5\r\nERR x\r\n",
		"$100\r\n" + strings.Repeat("*", 100) + "\r\n", "*10\r\n" + strings.Repeat("*1\r\n:1\r\n", 10),
		"+" + strings.Repeat("x", 300) + "\r\n", strings.Repeat("*1\r\n", 16) + ":1\r\n",
	} {
		for each := 1; each <= len(text); each++ {
			got, err := io.ReadAll(testBounds.bound(&scripted{text: text, each: each}))
			if err != nil || string(got) != text {
				t.Errorf("%q in pieces of %d: %q, %v", text, each, got, err)
			}
		}
	}
}

// TestRepliesAreBounded: announcements that are too large, alone or together with earlier ones, do not pass.
func TestRepliesAreBounded(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"*2147483647\r\n", "an array of 2147483647 elements; the maximum is 20"}, {"~21\r\n", "an array of 21 elements"}, {">21\r\n", "an array of 21 elements"},
		{"%11\r\n", "an array of 11 elements; the maximum is 10"}, {"%9223372036854775807\r\n", "an array of"}, {"*9223372036854775808\r\n", "invalid length"},
		{"$2147483647\r\n", "a string of 2147483647 bytes; the maximum is 100"}, {"=101\r\n", "a string of 101"}, {"!101\r\n", "a string of 101"},
		{"$-2\r\n", "invalid length"}, {"*\r\n", "invalid length"}, {"$1\n", "invalid length"}, {"$0x5\r\n", "invalid length"}, {"*" + strings.Repeat("0", 40) + "1\r\n", "invalid length"},
		{"*?\r\n", "invalid length"}, {"|1\r\n", "not a Redis reply from the server: |1"}, {"HTTP/1.1 400 Bad Request\r\n", "not a Redis reply from the server: HTTP/1.1"}, {"\r\n", `reply from the server: \r\n`},
		{strings.Repeat("*1\r\n", 17), "more than 16 deep"}, {"*10\r\n" + strings.Repeat("*2\r\n:1\r\n:2\r\n", 10), "more than 20 array elements"},
		{"*5\r\n" + strings.Repeat("$100\r\n"+strings.Repeat("x", 100)+"\r\n", 5), "more than 400 bytes"}, {strings.Repeat(":1\r\n", 101), "more than 400 bytes"},
	} {
		for _, each := range []int{1, 7, len(tt.text)} {
			got, err := io.ReadAll(testBounds.bound(&scripted{text: tt.text, each: each}))
			if err == nil || !strings.Contains(err.Error(), tt.want) ||
				strings.HasSuffix(string(got), "\n") && strings.Contains(tt.want, " the maximum is ") {
				t.Errorf("%.40q in pieces of %d: %q, %v, want %s", tt.text, each, got, err, tt.want)
			}
		}
	}
	long := ReplyBounds{BulkBytes: 1, Bytes: 1 << 30, Elements: 1}
	if _, err := io.Copy(io.Discard, long.bound(&scripted{text: "+" + strings.Repeat("x", maxReplyLine), each: 1000})); err == nil {
		t.Error("an endless line is accepted")
	}
}

// TestRepliesAreCountedForEachWrite: a connection is not bounded as a whole, and fails for good.
func TestRepliesAreCountedForEachWrite(t *testing.T) {
	s := &scripted{each: 1000}
	c := testBounds.bound(s)
	b := make([]byte, 1000)
	for range 50 {
		s.text = "*15\r\n" + strings.Repeat("$1\r\nx\r\n", 15)
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(b); n == 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	s.text = "*15\r\n"
	if _, err := c.Read(b); err == nil {
		t.Error("earlier replies do not count")
	}
	s.text = ":1\r\n"
	if n, err := c.Read(b); n > 0 || err == nil {
		t.Error("a failed connection continues")
	}
}

// FuzzReplies: bytes pass unchanged until a failure, wherever they are cut.
func FuzzReplies(f *testing.F) {
	f.Add([]byte("*2\r\n$1\r\nx\r\n:1\r\n"), 3)
	f.Add([]byte("%1\r\n+a\r\n$-1\r\n|1\r\n"), 1)
	f.Fuzz(func(t *testing.T, text []byte, each int) {
		each = 1 + (each&0xff)%(len(text)+1)
		whole, err := io.ReadAll(testBounds.bound(&scripted{text: string(text), each: len(text) + 1}))
		pieces, err2 := io.ReadAll(testBounds.bound(&scripted{text: string(text), each: each}))
		if (err == nil) != (err2 == nil) || !bytes.HasPrefix(text, pieces) || !bytes.HasPrefix(text, whole) ||
			err == nil && len(whole)+len(pieces) != 2*len(text) {
			t.Errorf("%q, %v; %q, %v", whole, err, pieces, err2)
		}
	})
}

func TestRepliesAllocateNothing(t *testing.T) {
	s := &scripted{each: 1000}
	c := testBounds.bound(s)
	b := make([]byte, 1000)
	if n := testing.AllocsPerRun(100, func() {
		s.text = "*2\r\n$1\r\nx\r\n:1\r\n"
		_, _ = c.Write(b)
		_, _ = c.Read(b)
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
