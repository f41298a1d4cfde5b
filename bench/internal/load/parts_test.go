package load

import (
	"errors"
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	c, err := ParseCommand("SET  k:{key}:x 1")
	if err != nil {
		t.Fatal(err)
	}
	request := c.repeat(2)
	c.put(request[len(request)/2:], 123_456_789_012)
	want := "*3\r\n$3\r\nSET\r\n$16\r\nk:000000000000:x\r\n$1\r\n1\r\n" + "*3\r\n$3\r\nSET\r\n$16\r\nk:123456789012:x\r\n$1\r\n1\r\n"
	if string(request) != want {
		t.Errorf("got %q", request)
	}
	if got := c.String(); got != "SET k:{key}:x 1" {
		t.Errorf("got %q", got)
	}
	if _, err := ParseCommand(" "); err == nil {
		t.Error("an empty command is accepted")
	}
}

func TestRecordedCommand(t *testing.T) {
	c, err := RecordedCommand([]byte("*2\r\n$3\r\nGET\r\n$14\r\nk:#key-digits#\r\n"), "#key-digits#")
	if err != nil {
		t.Fatal(err)
	}
	request := c.repeat(1)
	c.put(request, 42)
	if want := "*2\r\n$3\r\nGET\r\n$14\r\nk:000000000042\r\n"; string(request) != want {
		t.Errorf("got %q", request)
	}
	if _, err := RecordedCommand([]byte("*1\r\n$4\r\nPING\r\n"), "#key-digits#"); err == nil {
		t.Error("a command without the mark is accepted")
	}
}

// TestReplies feeds each stream in every possible pair of pieces, and byte by byte.
func TestReplies(t *testing.T) {
	for _, c := range []struct {
		stream           string
		replies, limited int
	}{
		{"+OK\r\n:1\r\n+PONG\r\n", 3, 0},
		{allowedReply + limitedReply + allowedReply, 3, 1},
		{"$5\r\nhello\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n", 5, 0},
		{"$6\r\na\r\n-b\n\r\n+OK\r\n", 2, 0},
		{"*3\r\n*2\r\n:1\r\n$3\r\nabc\r\n:1\r\n*0\r\n+OK\r\n", 2, 0},
		{"*4\r\n:1\r\n:0\r\n$2\r\n-1\r\n$1\r\n2\r\n", 1, 1},
	} {
		for cut := range c.stream {
			r := replies{limited: '1'}
			var n counted
			var kept string
			for _, piece := range []string{c.stream[:cut], c.stream[cut:]} {
				m, used, err := r.feed([]byte(kept + piece))
				if err != nil {
					t.Fatalf("%q: %v", c.stream, err)
				}
				kept = (kept + piece)[used:]
				n.replies, n.limited = n.replies+m.replies, n.limited+m.limited
			}
			if n.replies != c.replies || n.limited != c.limited || kept != "" {
				t.Errorf("%q cut at %d: %+v, %q kept", c.stream, cut, n, kept)
			}
		}
	}
}

func TestRepliesRefuse(t *testing.T) {
	for _, stream := range []string{"-ERR bad\r\n", "*2\r\n:1\r\n-ERR bad\r\n", "hello\r\n", "\r\n", "$x\r\n", "*-7\r\n"} {
		r := replies{}
		_, _, err := r.feed([]byte(stream))
		if err == nil || strings.Contains(stream, "-ERR") != errors.Is(err, errErrorReply) {
			t.Errorf("%q: %v", stream, err)
		}
	}
}

func TestSamplers(t *testing.T) {
	count := func(k Keys, n int) map[uint64]int {
		seen := map[uint64]int{}
		s := k.sampler(0, 1)
		for range n {
			seen[s.next()]++
		}
		return seen
	}
	if seen := count(Keys{Dist: Uniform, Count: 10}, 10_000); len(seen) != 10 || seen[0] < 800 || seen[9] < 800 {
		t.Errorf("uniform: %v", seen)
	}
	if seen := count(Keys{Dist: Zipf, Count: 1000}, 10_000); seen[0] < 1000 || seen[0] < 2*seen[4] {
		t.Errorf("zipf: %d and %d", seen[0], seen[4])
	}
	if seen := count(Keys{Dist: Hot, Count: 10}, 100); seen[0] != 100 {
		t.Errorf("hot: %v", seen)
	}
	seen := map[uint64]int{}
	k := Keys{Dist: Sequential, Count: 100, From: 7}
	for thread := range 4 {
		s := k.sampler(thread, 4)
		for range 25 {
			seen[s.next()]++
		}
	}
	if len(seen) != 100 || seen[7] != 1 || seen[106] != 1 {
		t.Errorf("sequential: %d keys", len(seen))
	}
}
