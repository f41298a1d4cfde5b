package wiretap

import (
	"bufio"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// answerer is a server that answers each request with the next reply.
func answerer(t *testing.T, replies ...string) (port int) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		in := bufio.NewReader(conn)
		for _, reply := range replies {
			if _, err := readValue(in, 0); err != nil {
				return
			}
			_, _ = io.WriteString(conn, reply)
		}
		_, _ = io.Copy(io.Discard, in)
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func array(words ...string) string {
	var b strings.Builder
	b.WriteString("*" + string(rune('0'+len(words))) + "\r\n")
	for _, word := range words {
		b.WriteString("$" + string(rune('0'+len(word))) + "\r\n" + word + "\r\n")
	}
	return b.String()
}

func TestHandshake(t *testing.T) {
	exchanges := []exchange{
		{array("HELLO", "3", "AUTH", "default", "secret"), "%1\r\n+proto\r\n:3\r\n"},
		{array("client", "setinfo", "LIB-NAME", "x"), ">2\r\n+push\r\n_\r\n-ERR unknown\r\n"},
		{array("AUTH", "secret"), "|1\r\n+a\r\n:1\r\n+OK\r\n"},
		{array("AUTH", "secret"), "!5\r\nERR x\r\n"},
		{array("GET", "a"), "$-1\r\n"},
		{array("PING"), "+PONG\r\n"},
		{"*2\r\n$11\r\ncl.throttle\r\n$1\r\na\r\n", "*2\r\n:0\r\n:1\r\n"},
		{array("GET", "b"), "-ERR not a part of the handshake\r\n"},
	}
	commands, refused := handshake(t, exchanges)
	if want := []string{"HELLO 3", "CLIENT SETINFO LIB-NAME", "AUTH", "GET", "PING"}; !slices.Equal(commands, want) {
		t.Errorf("commands %q, want %q", commands, want)
	}
	if want := []string{"CLIENT SETINFO LIB-NAME", "AUTH"}; !slices.Equal(refused, want) {
		t.Errorf("refused %q, want %q", refused, want)
	}
}

func TestPingAtTheEnd(t *testing.T) {
	commands, _ := handshake(t, []exchange{{array("AUTH", "x"), "+OK\r\n"}, {array("PING"), "+PONG\r\n"}})
	if want := []string{"AUTH"}; !slices.Equal(commands, want) {
		t.Errorf("commands %q, want %q", commands, want)
	}
}

// exchange is a request and the reply to it.
type exchange struct{ request, reply string }

// handshake expects the tap to forward the exchanges, and returns what it records.
func handshake(t *testing.T, exchanges []exchange) (commands, refused []string) {
	t.Helper()
	var replies []string
	for _, e := range exchanges {
		replies = append(replies, e.reply)
	}
	tap, err := Listen(t.Context(), answerer(t, replies...))
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", tap.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, e := range exchanges {
		if _, err := io.WriteString(conn, e.request); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(e.reply))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != e.reply {
			t.Fatalf("%q came as %q, %v", e.reply, got, err)
		}
	}
	tap.Close()
	return tap.Handshake()
}

// FuzzReadValue: input that is not RESP is an error, and the same bytes in pieces give the same value.
func FuzzReadValue(f *testing.F) {
	for _, seed := range []string{
		"+OK\r\n", "-ERR\r\n", ":1\r\n", "$3\r\nabc\r\n", "$-1\r\n", "*-1\r\n", "*1\r\n*1\r\n:1\r\n", "%1\r\n+a\r\n_\r\n",
		"|1\r\n+a\r\n:1\r\n>1\r\n#t\r\n", "*1048577\r\n", "$99999999999999999999\r\n", "\n", "+a\n", "$-2\r\n",
		strings.Repeat("*1\r\n", 100), strings.Repeat("|0\r\n", 100),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := readValue(bufio.NewReader(strings.NewReader(string(b))), 0)
		again, errAgain := readValue(bufio.NewReaderSize(io.MultiReader(strings.NewReader(string(b[:len(b)/2])), strings.NewReader(string(b[len(b)/2:]))), 16), 0)
		if (err == nil) != (errAgain == nil) || v.typ != again.typ || v.text != again.text || len(v.elements) != len(again.elements) {
			t.Errorf("%q: %v, %v; in two pieces %v, %v", b, v, err, again, errAgain)
		}
	})
}
