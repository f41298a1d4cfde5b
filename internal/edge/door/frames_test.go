package door

import (
	"bytes"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// frameOf returns a frame of HTTP/2.
func frameOf(kind, flags byte, payload string) []byte {
	return append([]byte{0, byte(len(payload) >> 8), byte(len(payload)), kind, flags, 0, 0, 0, 1}, payload...)
}

var (
	headers  = frameOf(1, 4, "h")
	data     = frameOf(0, 0, "message")
	trailers = frameOf(1, 5, "t")
	settings = frameOf(4, 0, "")
)

func TestOutgoing(t *testing.T) {
	for name, tt := range map[string]struct {
		written [][]byte
		more    bool
	}{
		"headers":                         {[][]byte{headers}, true},
		"a message":                       {[][]byte{headers, data}, true},
		"a whole answer":                  {[][]byte{headers, data, trailers}, false},
		"settings":                        {[][]byte{settings}, false},
		"headers, then settings":          {[][]byte{headers, settings}, false},
		"a part of a message":             {[][]byte{headers, data[:12]}, false},
		"a part of a header":              {[][]byte{headers, data[:5]}, false},
		"a message in two parts":          {[][]byte{headers, data[:12], data[12:]}, true},
		"a message in three parts":        {[][]byte{headers, data[:5], data[5:9], data[9:]}, true},
		"many at once":                    {[][]byte{slices.Concat(headers, data, trailers, headers, data)}, true},
		"an empty message":                {[][]byte{headers, frameOf(0, 0, "")}, true},
		"the last part is empty":          {[][]byte{headers, frameOf(0, 1, "")}, false},
		"a stream that is reset":          {[][]byte{headers, frameOf(3, 0, "code")}, false},
		"headers that go on (no END yet)": {[][]byte{frameOf(1, 0, "h"), frameOf(9, 4, "h")}, false},
	} {
		l := newLedger(false)
		more := false
		for _, b := range tt.written {
			more, _ = l.sent(b)
		}
		if more != tt.more {
			t.Errorf("%s: more to come is %v", name, more)
		}
	}
}

// recorder notes what is written and read at once.
type recorder struct {
	net.Conn
	reads int
	in    *bytes.Reader

	mu      sync.Mutex // guards all below
	written [][]byte
	fails   bool
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails {
		return 0, io.ErrClosedPipe
	}
	r.written = append(r.written, slices.Clone(b))
	return len(b), nil
}

func (r *recorder) writes(want ...[]byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.EqualFunc(r.written, want, bytes.Equal)
}

func (r *recorder) failNow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = true
}

func (r *recorder) Read(b []byte) (int, error) {
	r.reads++
	return r.in.Read(b)
}

// speaking returns a connection that has sent its preface, and input after it.
func speaking(t *testing.T, input string) (*Conn, *recorder) {
	t.Helper()
	r := &recorder{in: bytes.NewReader([]byte(preface + input))}
	c := &Conn{Conn: r}
	if n, err := c.Read(make([]byte, len(preface))); n != len(preface) || err != nil {
		t.Fatal(n, err)
	}
	return c, r
}

func write(t *testing.T, c *Conn, all ...[]byte) {
	t.Helper()
	for _, b := range all {
		if n, err := c.Write(b); n != len(b) || err != nil {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
}

func TestAnswersAreWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := speaking(t, "")
		write(t, c, settings, headers, data, trailers, headers, settings)
		time.Sleep(time.Second)
		synctest.Wait()
		if !r.writes(settings, slices.Concat(headers, data, trailers), slices.Concat(headers, settings)) {
			t.Errorf("written: %q", r.written)
		}
	})
}

// TestAnswersThatGoOnAreNotHeld: what is streamed, or larger than its client's window, follows late.
func TestAnswersThatGoOnAreNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := speaking(t, "")
		write(t, c, headers, data)
		if !r.writes() {
			t.Errorf("written at once: %q", r.written)
		}
		time.Sleep(2 * holdTime)
		synctest.Wait()
		large := frameOf(0, 0, string(make([]byte, heldBytes)))
		write(t, c, large)
		if !r.writes(slices.Concat(headers, data), large) {
			t.Error("more than what is held and a large message is written")
		}
		r.failNow()
		write(t, c, data)
		time.Sleep(2 * holdTime)
		synctest.Wait()
		if _, err := c.Write(data); err == nil {
			t.Error("a failure in the background is forgotten")
		}
	})
}

func TestReadingAhead(t *testing.T) {
	input := string(slices.Concat(headers, data, frameOf(0, 1, string(make([]byte, 2*aheadBytes)))))
	c, r := speaking(t, input)
	var got []byte
	for _, size := range []int{9, 1, 9, 7, 9} {
		b := make([]byte, size)
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatal(err)
		}
		got = append(got, b...)
	}
	if r.reads != 2 {
		t.Errorf("%d reads", r.reads)
	}
	rest, err := io.ReadAll(c)
	if got = append(got, rest...); err != nil || string(got) != input {
		t.Errorf("%d of %d bytes: %v", len(got), len(input), err)
	}
}

// TestOthersAreAsTheyWere: HTTP/1.1 and TLS are neither held nor read ahead.
func TestOthersAreAsTheyWere(t *testing.T) {
	r := &recorder{in: bytes.NewReader([]byte("GET / HTTP/1.1\r\n\r\n"))}
	c := &Conn{Conn: r}
	b := make([]byte, len(preface))
	for r.in.Len() > 0 {
		before := r.in.Len()
		if n, err := c.Read(b); err != nil || before-r.in.Len() != n {
			t.Error(n, err)
		}
	}
	write(t, c, headers)
	if !r.writes(headers) {
		t.Errorf("written: %q", r.written)
	}
}

// TestPrefaceToTheEnd: what net/http takes for HTTP/1 behind the first line of the preface has no frames.
func TestPrefaceToTheEnd(t *testing.T) {
	r := &recorder{in: bytes.NewReader([]byte("PRI * HTTP/2.0\r\nHost: localhost\r\n\r\n"))}
	c := &Conn{Conn: r}
	for _, n := range []int{14, 10, 100} { // as net/http reads
		if _, err := c.Read(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	if c.frames != nil {
		t.Error("the connection counts as one of HTTP/2")
	}
}
