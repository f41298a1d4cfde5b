package servers

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cellserver/internal/store"
	"cellserver/internal/test/resptest"
)

// fake is a server with settable answers that cuts or holds connections at any byte.
type fake struct {
	addr string
	// answer returns a reply on the wire for each command after HELLO.
	answer func(words []string) string
	// readMax and writeMax are the bytes read and written on a connection; negative is unlimited. Then it is
	// closed, or stalls if hang.
	readMax, writeMax int
	hang              bool

	mu       sync.Mutex
	executed map[string]int // commands by their last word
	total    [2]int         // bytes read and written
}

func startFake(t *testing.T, f *fake) *fake {
	t.Helper()
	f.executed = map[string]int{}
	f.addr = resptest.Serve(t, func(conn net.Conn) {
		f.serve(conn)
		if f.hang {
			<-t.Context().Done()
		}
	})
	return f
}

func (f *fake) serve(conn net.Conn) {
	r := bufio.NewReader(&counted{Reader: conn, max: f.readMax, n: &f.total[0], mu: &f.mu})
	left := f.writeMax
	for {
		words, err := resptest.ReadCommand(r)
		if err != nil {
			return
		}
		reply := "*2\r\n$5\r\nproto\r\n:2\r\n"
		if words[0] != "hello" {
			f.mu.Lock()
			f.executed[words[len(words)-1]]++
			f.mu.Unlock()
			reply = f.answer(words)
		}
		if f.writeMax >= 0 {
			reply = reply[:min(len(reply), left)]
			left -= len(reply)
		}
		f.mu.Lock()
		f.total[1] += len(reply)
		f.mu.Unlock()
		if _, err := conn.Write([]byte(reply)); err != nil {
			return
		}
		if f.writeMax >= 0 && left == 0 && !f.hang {
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, r) // a reset for unread bytes would drop replies
			return
		}
	}
}

func (f *fake) executions(key string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.executed[key]
}

// counted ends after max bytes.
type counted struct {
	io.Reader
	max int
	n   *int
	mu  *sync.Mutex
	own int
}

func (c *counted) Read(b []byte) (int, error) {
	if c.max >= 0 {
		if b = b[:min(len(b), c.max-c.own)]; len(b) == 0 {
			return 0, io.EOF
		}
	}
	n, err := c.Reader.Read(b)
	c.own += n
	c.mu.Lock()
	*c.n += n
	c.mu.Unlock()
	return n, err
}

var nothing = NewScript("nothing")

// exchangeWith sends five calls, whose only argument is their number, in a pipeline.
func exchangeWith(t *testing.T, f *fake, timeout time.Duration) []*Call {
	t.Helper()
	p := open(t, Config{URL: "redis://" + f.addr})
	var calls []*Call
	for i := range 5 {
		calls = append(calls, &Call{Script: nothing, Keys: []string{"k"}, Args: []any{strconv.Itoa(i)}})
	}
	s, err := p.Of(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	p.Send(deadline(t, timeout), s, calls, 0)
	return calls
}

// echo replies with a call's number, in each form of a reply.
func echo(words []string) string {
	n := words[len(words)-1]
	return [...]string{":" + n, "$1\r\n" + n, "*1\r\n:" + n, "$-1", ":0"}[n[0]-'0'] + "\r\n"
}

func echoed(i int) string { return [...]string{"0", "1", "[2]", "<nil>", "0"}[i] }

// check holds Failed to its promise.
func check(t *testing.T, f *fake, calls []*Call) (answered, maybe int) {
	t.Helper()
	for i, c := range calls {
		failed := asFailed(c.Err)
		executed := f.executions(strconv.Itoa(i))
		switch {
		case executed > 1:
			t.Errorf("call %d was executed %d times", i, executed)
		case c.Err == nil && (executed != 1 || fmt.Sprint(c.Reply) != echoed(i)):
			t.Errorf("call %d is answered by %v, and executed %d times", i, c.Reply, executed)
		case c.Err != nil && failed == nil:
			t.Errorf("call %d has the error %v", i, c.Err)
		case c.Err != nil && c.Reply != nil:
			t.Errorf("call %d has failed and is answered by %v", i, c.Reply)
		case c.Err != nil && failed.Executed == No && executed != 0:
			t.Errorf("call %d was executed, though %+v", i, failed)
		case c.Err == nil:
			answered++
		case failed.Executed == Maybe:
			maybe++
		}
	}
	return answered, maybe
}

func TestConnectionEndsAtAnyByte(t *testing.T) {
	t.Parallel()
	whole := startFake(t, &fake{answer: echo, readMax: -1, writeMax: -1})
	if n, _ := check(t, whole, exchangeWith(t, whole, 10*time.Second)); n != 5 {
		t.Fatalf("%d calls are answered", n)
	}
	whole.mu.Lock()
	total := whole.total
	whole.mu.Unlock()
	handshake := len("*2\r\n$5\r\nproto\r\n:2\r\n")
	replies := len(":0\r\n") + len("$1\r\n1\r\n") + len("*1\r\n:2\r\n") + len("$-1\r\n") + len(":0\r\n")
	if total[1] != handshake+replies {
		t.Fatalf("%d bytes are written", total[1])
	}
	for n := range total[0] {
		f := startFake(t, &fake{answer: echo, readMax: n, writeMax: -1})
		check(t, f, exchangeWith(t, f, 10*time.Second))
	}
	for n := range total[1] {
		f := startFake(t, &fake{answer: echo, readMax: -1, writeMax: n})
		calls := exchangeWith(t, f, 10*time.Second)
		answered, maybe := check(t, f, calls)
		if want := wholeReplies(n - handshake); n >= handshake && (answered != want || maybe != 5-want) {
			t.Errorf("after %d bytes of replies %d calls are answered and %d may have been executed, want %d answered",
				n-handshake, answered, maybe, want)
		}
	}
}

// wholeReplies returns the number of complete replies in n bytes.
func wholeReplies(n int) (whole int) {
	for i := range 5 {
		if n -= len(echo([]string{strconv.Itoa(i)})); n < 0 {
			break
		}
		whole++
	}
	return whole
}

func TestServerHangsAtAnyByte(t *testing.T) {
	t.Parallel()
	for n := 0; n < 60; n += 3 {
		f := startFake(t, &fake{answer: echo, readMax: -1, writeMax: n, hang: true})
		calls := exchangeWith(t, f, 20*time.Millisecond)
		check(t, f, calls)
		if failed := asFailed(calls[4].Err); n < 30 && (failed == nil || failed.Reason != Timeout) {
			t.Errorf("a server that hangs after %d bytes gives %v", n, calls[4].Err)
		}
	}
}

func TestErrorReplies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reply    string
		want     store.Reason
		executed Executed
		again    bool
		redirect string
	}{
		{"MOVED 1 10.0.0.1:7", Cluster, No, true, "10.0.0.1:7 false"},
		{"MOVED 1 :7", Cluster, No, true, "127.0.0.1:7 false"},
		{"ASK 1 [::1]:7", Cluster, No, true, "[::1]:7 true"},
		{"TRYAGAIN Multiple keys request during rehashing of slot", Cluster, No, true, ""},
		{"CLUSTERDOWN The cluster is down", Cluster, No, true, ""},
		{"LOADING Redis is loading the dataset in memory", Loading, No, true, ""},
		{"BUSY Redis is busy running a script.", Loading, No, true, ""},
		{"READONLY You can't write against a read only replica.", ReadOnly, No, true, ""},
		{"READONLY You can't write against a read only replica. script: f, on @user_script:1.", ReadOnly, No, true, ""},
		{"ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -READONLY You can't write", ReadOnly, No, true, ""},
		{"MASTERDOWN Link with MASTER is down", ReadOnly, No, true, ""},
		{"OOM command not allowed when used memory > 'maxmemory'.", OutOfMemory, No, false, ""},
		{"OOM command not allowed when used memory > 'maxmemory'. script: f, on @user_script:1.", OutOfMemory, No, false, ""},
		{"NOPERM this user has no permissions to run the 'evalsha' command", NoScripting, No, false, ""},
		{"ERR unknown command `evalsha`, with args beginning with: `f`, ", NoScripting, No, false, ""},
		{"NOPERM this user has no permissions to access one of the keys used as arguments", Auth, No, false, ""},
		{"NOAUTH Authentication required.", Auth, No, false, ""},
		{"NOSCRIPT No matching script. Please use EVAL.", NoScripting, No, false, ""},
		{"WRONGTYPE Operation against a key holding the wrong kind of value", WrongType, No, false, ""},
		{"MISCONF Redis is configured to save RDB snapshots", Refused, No, false, ""},
		{"NOREPLICAS Not enough good replicas to write.", Refused, No, false, ""},
		{"ERR user_script:1: attempt to index a nil value", Refused, Maybe, false, ""},
	} {
		f := startFake(t, &fake{readMax: -1, writeMax: -1, answer: func(words []string) string {
			if words[len(words)-1] == "2" || words[0] == "script" {
				return "-" + tt.reply + "\r\n"
			}
			return echo(words)
		}})
		calls := exchangeWith(t, f, 10*time.Second)
		failed := asFailed(calls[2].Err)
		if failed == nil || failed.Reason != tt.want || failed.Executed != tt.executed || failed.Again() != tt.again {
			t.Errorf("%s gives %+v", tt.reply, failed)
			continue
		}
		if !strings.HasPrefix(failed.Text, f.addr+": ") {
			t.Errorf("%s has the text %q", tt.reply, failed.Text)
		}
		redirect := ""
		if r := failed.Redirect; r != nil {
			redirect = fmt.Sprint(r.Addr, " ", r.Asking)
		}
		if redirect != tt.redirect {
			t.Errorf("%s redirects to %q", tt.reply, redirect)
		}
		for i, c := range calls {
			if i != 2 && (c.Err != nil || fmt.Sprint(c.Reply) != echoed(i)) {
				t.Errorf("beside %s, call %d is answered by %v, %v", tt.reply, i, c.Reply, c.Err)
			}
		}
	}
}

// TestRefusedHandshake reports the server's reason, and that no call was executed.
func TestRefusedHandshake(t *testing.T) {
	t.Parallel()
	f := startFake(t, &fake{readMax: -1, writeMax: -1, answer: func([]string) string {
		return "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	}})
	p := open(t, Config{URL: "redis://:hunter2@" + f.addr + "/1"})
	c := &Call{Script: nothing, Args: []any{"0"}}
	err := p.Do(deadline(t, 10*time.Second), "k", c, 0)
	failed := asFailed(err)
	if failed == nil || failed.Reason != Auth || failed.Executed != No || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a wrong password gives %+v", failed)
	}
}
