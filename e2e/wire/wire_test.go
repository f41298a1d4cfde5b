package wire

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
)

// wireCase is the input of a connection and the expected output.
type wireCase struct {
	name   string
	send   string
	flood  int           // further bytes after send
	pace   time.Duration // a pause after each byte
	want   string        // all replies
	closed bool          // by the server; else it must answer a PING
	half   bool          // an incomplete command: the client disconnects

	// locked are the replies before authentication, if they differ; lockedCloses reports that only the
	// client's connection closes.
	locked       string
	lockedCloses bool

	pong string // the reply to the PING, if it differs
}

const noAuth = "-NOAUTH Authentication required.\r\n"

func protocolReply(reason string) string { return "-ERR Protocol error: " + reason + "\r\n" }

func wireCases() []wireCase {
	manyLocked, longLocked := protocolReply("unauthenticated multibulk length"), protocolReply("unauthenticated bulk length")
	cases := []wireCase{
		{name: "inline", send: "PING\r\n", want: "+PONG\r\n", locked: noAuth},
		{name: "inline without CR", send: "PING\n", want: "+PONG\r\n", locked: noAuth},
		{name: "quotes", send: "ECHO \"a b\\n\\x41\\\"\"\r\nECHO 'it\\'s'\r\n", want: "$6\r\na b\nA\"\r\n$4\r\nit's\r\n", locked: noAuth + noAuth},
		{name: "quote in a word", send: "ECHO a\"b c\"\r\n", want: "$4\r\nab c\r\n", locked: noAuth},
		{name: "unbalanced quote", send: "\"\r\n", want: protocolReply("unbalanced quotes in request"), closed: true},
		{name: "Tile38's form", send: "$3 abc\r\n", want: "-ERR unknown command '$3', with args beginning with: 'abc' \r\n"},
		{name: "inline too long", flood: 70_000, send: "A", want: protocolReply("too big inline request"), closed: true},
		{name: "header too long", flood: 70_000, send: "*1", want: protocolReply("too big mbulk count string"), closed: true},
		{name: "bulk header too long", flood: 70_000, send: "*1\r\n$", want: protocolReply("too big bulk count string"), closed: true},
		{name: "no dollar", send: "*1\r\nfoo\r\n", want: protocolReply("expected '$', got 'f'"), closed: true},
		{name: "no dollar but a line end", send: "*1\r\n\r\n", want: protocolReply(`expected '$', got '\r'`), closed: true},
		{name: "post", send: "POST / HTTP/1.1\r\nHost: x\r\n\r\nCL.THROTTLE web 0 1 60\r\n", closed: true},
		{name: "host", send: "Host: localhost\r\nCL.THROTTLE web 0 1 60\r\n", closed: true},
		{name: "two billion arguments", send: "*2147483647\r\n$4\r\n", want: protocolReply("invalid multibulk length"), closed: true, locked: manyLocked},
		{name: "a million arguments", send: "*1048576\r\n$4\r\nPING\r\n", half: true, locked: manyLocked, lockedCloses: true},
		{name: "300 MB behind a broken header", send: "*2\r\n$4\r\nPING\r\n$2000000000\r\n", flood: 300 << 20,
			want: protocolReply("invalid bulk length"), closed: true, locked: longLocked},
		{name: "half a command", send: "*2\r\n$4\r\nECHO\r\n$5\r\nhel", half: true},
		{name: "slow", send: "*1\r\n$4\r\nPING\r\n", pace: 50 * time.Millisecond, want: "+PONG\r\n", locked: noAuth},
		{name: "bulk without CRLF", send: "*1\r\n$4\r\nPINGxx", want: protocolReply("expected CRLF after a bulk string"), closed: true},
		{name: "forged reply", send: "*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$9\r\n1\r\n+OK\r\n:\r\n$1\r\n1\r\n$1\r\n1\r\n*1\r\n$7\r\nno\r\n+OK\r\n",
			want: "-Cell error: Store error: Couldn't parse as integer: 1\\r\\n+OK\\r\\n:\r\n" +
				"-ERR unknown command 'no\\r\\n+OK', with args beginning with: \r\n",
			locked: noAuth + "-ERR unknown command 'no\\r\\n+OK', with args beginning with: \r\n"},
		{name: "command too long", send: "*2\r\n$4\r\nECHO\r\n$4194304\r\n", want: protocolReply("too big command, more than 4194304 bytes"), closed: true, locked: longLocked},
		{name: "bulk too long", send: "*2\r\n$4\r\nECHO\r\n$4194305\r\n", want: protocolReply("invalid bulk length"), closed: true, locked: longLocked},
		{name: "key too long", send: "CL.THROTTLE " + strings.Repeat("k", 4097) + " 1 1 1\r\nDEL " + strings.Repeat("k", 4097) + "\r\n",
			want: strings.Repeat("-ERR key is longer than 4096 bytes, the limit of --max-key-bytes\r\n", 2), locked: noAuth + noAuth},
	}
	for _, ignored := range []string{"*0\r\n", "*-1\r\n", "*-10\r\n", "\r\n", "\n\n"} {
		cases = append(cases, wireCase{name: "ignored", send: ignored})
	}
	for _, n := range []string{"2147483648", "9223372036854775807", "99999999999999999999", "abc", "\x00", "\x00\r\n", "+1", "01", "", "-0", "1048577"} {
		c := wireCase{name: "multibulk length", send: "*" + n + "\r\n", want: protocolReply("invalid multibulk length"), closed: true}
		if most, err := strconv.Atoi(n); err == nil && most > 10 {
			c.locked = manyLocked // precedes every other check
		}
		cases = append(cases, c)
	}
	for _, n := range []string{"-10", "-2", "-1", "blabla", "2000000000", "9223372036854775807", "99999999999999999999", "003", "+3", "3 abc", ""} {
		c := wireCase{name: "bulk length", send: "*1\r\n$" + n + "\r\n", want: protocolReply("invalid bulk length"), closed: true}
		if most, err := strconv.Atoi(n); err == nil && most > 16<<10 {
			c.locked = longLocked
		}
		cases = append(cases, c)
	}
	return cases
}

// beforeAuth adapts the case to a server with a password.
func (c wireCase) beforeAuth() wireCase {
	if c.locked != "" {
		c.want = c.locked
	}
	c.closed = c.closed || c.lockedCloses
	c.pong = noAuth
	return c
}

func (c wireCase) run(t *testing.T, p *harness.Process) {
	nc := p.Dial(t)
	defer nc.Close()
	sent := make(chan error, 1)
	go func() { sent <- c.write(nc) }()
	if !c.closed {
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if !c.half {
			harness.Exchange(t, nc, "PING\r\n", c.want+cmp.Or(c.pong, "+PONG\r\n"))
		}
		return
	}
	got, err := io.ReadAll(nc)
	if string(got) != c.want || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%.60q: got %q, %v, want %q", c.send, got, err, c.want)
	}
	t.Logf("the client could write its last byte: %v", <-sent == nil)
}

func (c wireCase) write(nc net.Conn) error {
	if c.pace == 0 {
		_, err := io.WriteString(nc, c.send)
		for block := bytes.Repeat([]byte("A"), 1<<16); c.flood > 0 && err == nil; c.flood -= len(block) {
			_, err = nc.Write(block)
		}
		return err
	}
	for i := range c.send {
		if _, err := nc.Write([]byte{c.send[i]}); err != nil {
			return err
		}
		time.Sleep(c.pace)
	}
	return nil
}

// TestWire sends hostile input, each case on a new connection, beside an undisturbed client. Memory and
// goroutines must return to their initial level.
func TestWire(t *testing.T) {
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t)
		before := p.Dial(t)
		harness.Exchange(t, before, "PING\r\n", "+PONG\r\n")
		p.Metric(t, "go_goroutines") // opens the web server's connection
		memory, goroutines := p.RSS(t), p.Metric(t, "go_goroutines")

		t.Run("cases", func(t *testing.T) {
			for _, c := range wireCases() {
				t.Run(c.name, func(t *testing.T) { c.run(t, p) })
			}
		})
		harness.Exchange(t, before, "EXISTS web k\r\nDBSIZE\r\n", ":0\r\n:0\r\n")
		p.Eventually(t, "give back its goroutines", func() bool {
			return p.Metric(t, "go_goroutines") <= goroutines
		})
		p.Eventually(t, "give back its memory", func() bool { return p.RSS(t) <= memory+32<<20 })
		harness.Exchange(t, before, "PING\r\n", "+PONG\r\n")
		if n := p.Metric(t, "cellserver_panics_total"); n != 0 {
			t.Errorf("%v panics", n)
		}
		p.Logged(t, "possible attack")
	})
}

func TestWireCutAtEveryByte(t *testing.T) {
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t)
		stream := "*0\r\n*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$1\r\n0\r\n$1\r\n1\r\n$4\r\n3600\r\n" +
			"ECHO \"a b\"\r\n\r\n*2\r\n$4\r\nECHO\r\n$2\r\n\r\n\r\nDEL k\r\n"
		want := "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:3600\r\n$3\r\na b\r\n$2\r\n\r\n\r\n:1\r\n"
		for cut := range len(stream) {
			nc := p.Dial(t)
			harness.Send(t, nc, stream[:cut])
			time.Sleep(time.Millisecond)
			harness.Exchange(t, nc, stream[cut:], want)
			nc.Close()
		}
	})
}

func TestWireSplitCommandCostsLinearTime(t *testing.T) {
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t)
		nc := p.Dial(t)
		argument := strings.Repeat("x", 4_000_000)
		command := fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", len(argument), argument)
		const allocated = "go_memstats_alloc_bytes_total"
		before := p.Metric(t, allocated)
		for rest := command; len(rest) > 0; {
			n := min(len(rest), 400)
			harness.Send(t, nc, rest[:n])
			rest = rest[n:]
		}
		harness.Exchange(t, nc, "", fmt.Sprintf("$%d\r\n%s\r\n", len(argument), argument))
		// A buffer growing at each of 10,000 reads would take 20 GB in all. A test of the decoder covers
		// rescanning.
		used := p.Metric(t, allocated) - before
		t.Logf("allocated %.1f MB", used/1e6)
		if most := 64 * float64(len(command)); used > most { // for TLS and the race detector
			t.Errorf("for a command in 10,000 pieces the server allocated %.0f MB, want %.0f at most", used/1e6, most/1e6)
		}
	})
}

// TestWireBeforeAuth sends the cases to servers that require a password, by --requirepass and by an aclfile
// without a default user.
func TestWireBeforeAuth(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	users := harness.WriteFile(t, "user default off\nuser app on >secret ~* +@all\n")
	for _, by := range []struct {
		name, auth string
		args       []string
	}{
		{"requirepass", "AUTH secret\r\n", []string{"--requirepass", "secret"}},
		{"aclfile", "AUTH app secret\r\n", []string{"--aclfile", users}},
	} {
		t.Run(by.name, func(t *testing.T) {
			t.Parallel()
			harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
				p := startServer(t, by.args...)
				silent, early := p.Dial(t), p.Dial(t)
				harness.Exchange(t, early, by.auth, "+OK\r\n")
				t.Run("cases", func(t *testing.T) { testWireBeforeAuth(t, p, by.auth) })
				t.Run("pending replies", func(t *testing.T) { testPendingBeforeAuth(t, p) })
				t.Run("handshake", func(t *testing.T) { testHandshake(t, silent, early, by.auth) })
				inside := p.Dial(t)
				harness.Exchange(t, inside, by.auth, "+OK\r\n")
				harness.Exchange(t, inside, "EXISTS web k\r\nDBSIZE\r\n", ":0\r\n:0\r\n")
				if n := p.Metric(t, "cellserver_panics_total"); n != 0 {
					t.Errorf("%v panics", n)
				}
			})
		})
	}
}

func testWireBeforeAuth(t *testing.T, p *harness.Process, auth string) {
	cases := []wireCase{
		{name: "arguments", send: "*11\r\n", want: protocolReply("unauthenticated multibulk length"), closed: true},
		{name: "bytes", send: "*2\r\n$4\r\nAUTH\r\n$16385\r\n", want: protocolReply("unauthenticated bulk length"), closed: true},
		{name: "at the bound", send: "*2\r\n$4\r\nECHO\r\n$16384\r\n" + strings.Repeat("x", 16384) + "\r\n" + auth, want: noAuth + "+OK\r\n"},
	}
	for _, c := range wireCases() {
		cases = append(cases, c.beforeAuth())
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, p) })
	}
}

// testHandshake waits until the server has closed a silent client, and then has one log in again that did so
// in time.
func testHandshake(t *testing.T, silent, early net.Conn, auth string) {
	if got, _ := io.ReadAll(silent); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	harness.Exchange(t, early, "RESET\r\n", "+RESET\r\n")
	harness.Exchange(t, early, "PING\r\n", noAuth)
	harness.Exchange(t, early, auth+"PING\r\n", "+OK\r\n+PONG\r\n")
}

func testPendingBeforeAuth(t *testing.T, p *harness.Process) {
	nc := p.Dial(t)
	pings := strings.Repeat("PING\r\n", 10_000)
	var err error
	for total := 0; total < 1<<30 && err == nil; total += len(pings) { // replies are never read
		_, err = io.WriteString(nc, pings)
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the client could leave replies unread without end: %v", err)
	}
}

func TestWireLimitsAreSettable(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t, "--max-args", "16", "--max-command-bytes", "1024", "--max-key-bytes", "8")
		for _, c := range []wireCase{
			{name: "arguments", send: "*17\r\n", want: protocolReply("invalid multibulk length"), closed: true},
			{name: "bulk", send: "*1\r\n$1025\r\n", want: protocolReply("invalid bulk length"), closed: true},
			{name: "command", send: "*1\r\n$1020\r\n", want: protocolReply("too big command, more than 1024 bytes"), closed: true},
			{name: "key", send: "EXISTS 123456789\r\n", want: "-ERR key is longer than 8 bytes, the limit of --max-key-bytes\r\n"},
		} {
			t.Run(c.name, func(t *testing.T) { c.run(t, p) })
		}
		silent := startServer(t, "--timeout", "1s")
		t.Run("silence", func(t *testing.T) { wireCase{closed: true}.run(t, silent) })
	})
}

func TestWireMaxClients(t *testing.T) {
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t, "--maxclients", "2")
		first, second := p.Dial(t), p.Dial(t)
		harness.Exchange(t, first, "PING\r\n", "+PONG\r\n")
		harness.Exchange(t, second, "PING\r\n", "+PONG\r\n")
		refused := wireCase{want: "-ERR max number of clients reached\r\n", closed: true}
		if p.TLS != nil {
			refused.want = "" // as in Redis: no reply precedes the handshake
		}
		refused.run(t, p)
	})
}

// TestNoFilesLeft exhausts the server's descriptors: it must survive and recover. A test of the accept loop
// covers spinning.
func TestNoFilesLeft(t *testing.T) {
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		prlimit := processtest.Need(t, "prlimit")
		p := startServer(t)
		nc := p.Dial(t)
		harness.Exchange(t, nc, "PING\r\n", "+PONG\r\n")
		limit := func(n string) {
			if out, err := processtest.Command(t, prlimit, "--pid", strconv.Itoa(p.Cmd.Process.Pid), "--nofile="+n+":").CombinedOutput(); err != nil {
				t.Fatalf("prlimit: %v: %s", err, out)
			}
		}
		limit("3")
		waiting := p.Dial(t) // the kernel completes the handshake; accept fails
		p.Logged(t, "cannot accept connections")
		harness.Exchange(t, nc, "PING\r\n", "+PONG\r\n")
		limit("1000")
		harness.Exchange(t, waiting, "PING\r\n", "+PONG\r\n")
	})
}
