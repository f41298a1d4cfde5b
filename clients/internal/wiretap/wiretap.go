// Package wiretap is a proxy that records which commands a client sends before its user's first command, and which of them
// the server refuses. A Tap is safe for concurrent use.
package wiretap

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// usersCommand ends a connection's handshake: it is the first command that a program sends itself.
const usersCommand = "CL.THROTTLE"

// Tap is a proxy on loopback.
type Tap struct {
	Port int

	listener net.Listener
	server   string
	passing  sync.WaitGroup

	mu       sync.Mutex // guards all below
	conns    map[net.Conn]struct{}
	closed   bool
	commands []string
	refused  []string
}

// Listen forwards connections to the server's port until Close.
func Listen(ctx context.Context, serverPort int) (*Tap, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("wiretap: listen: %w", err)
	}
	t := &Tap{
		Port: l.Addr().(*net.TCPAddr).Port, listener: l,
		server: net.JoinHostPort("127.0.0.1", strconv.Itoa(serverPort)), conns: map[net.Conn]struct{}{},
	}
	t.passing.Go(func() { t.accept(ctx) })
	return t, nil
}

// Close closes all connections.
func (t *Tap) Close() {
	_ = t.listener.Close()
	t.mu.Lock()
	t.closed = true
	for conn := range t.conns {
		_ = conn.Close()
	}
	t.mu.Unlock()
	t.passing.Wait()
}

// Handshake returns each command seen, once and in order, and those that the server refused.
func (t *Tap) Handshake() (commands, refused []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.commands), slices.Clone(t.refused)
}

func (t *Tap) accept(ctx context.Context) {
	for {
		client, err := t.listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.server)
		if err != nil || !t.keep(client, server) {
			_ = client.Close()
			continue
		}
		pending := make(chan string, 1024) // commands whose replies are pending
		t.passing.Go(func() {
			t.requests(client, server, pending)
			_ = server.Close() // whose replies end, too
		})
		t.passing.Go(func() {
			t.replies(server, client, pending)
			_ = client.Close()
			for range pending { // none waits for a reply any more
			}
		})
	}
}

// keep notes connections for Close, and says no if that has come already.
func (t *Tap) keep(conns ...net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, conn := range conns {
		if t.closed {
			_ = conn.Close()
			continue
		}
		t.conns[conn] = struct{}{}
	}
	return !t.closed
}

// requests forwards commands, and records those before the user's first. A PING is recorded only if another command
// follows: rueidis may or may not send one before it closes a connection.
func (t *Tap) requests(client io.Reader, server io.Writer, pending chan<- string) {
	in := bufio.NewReader(io.TeeReader(client, server))
	var last string
	for {
		v, err := readValue(in, 0)
		if err != nil {
			break
		}
		name := commandName(v)
		if last == "PING" {
			t.record(&t.commands, last)
		}
		if name == usersCommand {
			break
		}
		if name != "PING" {
			t.record(&t.commands, name)
		}
		pending <- name
		last = name
	}
	close(pending)
	_, _ = io.Copy(io.Discard, in) // the data was forwarded when it was read
}

// replies forwards replies, and records errors in reply to the handshake.
func (t *Tap) replies(server io.Reader, client io.Writer, pending <-chan string) {
	in := bufio.NewReader(io.TeeReader(server, client))
	for {
		v, err := readValue(in, 0)
		if err != nil {
			break
		}
		if v.typ == '>' { // a push message, not a reply
			continue
		}
		name, ok := <-pending
		if !ok {
			break
		}
		if v.typ == '-' || v.typ == '!' {
			t.record(&t.refused, name)
		}
	}
	_, _ = io.Copy(io.Discard, in)
}

func (t *Tap) record(list *[]string, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}

// commandName returns a command with its subcommand or another word that distinguishes its uses, without secrets.
func commandName(v value) string {
	if len(v.elements) == 0 {
		return strings.ToUpper(v.text)
	}
	name := strings.ToUpper(v.elements[0].text)
	var words int
	switch name {
	case "HELLO", "CLIENT", "COMMAND", "CONFIG", "INFO", "SLOWLOG", "LATENCY", "SCRIPT", "CLUSTER", "SENTINEL", "MODULE", "SELECT":
		words = 1
	}
	if len(v.elements) > 2 && name == "CLIENT" && strings.EqualFold(v.elements[1].text, "SETINFO") {
		words = 2
	}
	parts := []string{name}
	for _, element := range v.elements[1:min(len(v.elements), 1+words)] {
		parts = append(parts, strings.ToUpper(element.text))
	}
	return strings.Join(parts, " ")
}
