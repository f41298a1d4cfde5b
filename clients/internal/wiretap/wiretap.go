// Package wiretap passes connections on to a server and notes which commands a client sends before its user's first
// one, and which of them the server refuses. A Tap is for several goroutines.
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

// usersCommand ends a connection's handshake: it is the first that a program sends of its own.
const usersCommand = "CL.THROTTLE"

// Tap listens on loopback.
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

// Listen passes what comes on to the server's port until Close.
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

// Close ends all connections.
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

// Handshake is each command that was seen, once and in order, and those that the server refused.
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
		pending := make(chan string, 1024) // commands that were sent, for the replies to come
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

// requests passes commands on, and notes them until the user's first. A PING is noted when something follows it: rueidis
// may or may not take leave of a connection with one.
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
			t.note(&t.commands, last)
		}
		if name == usersCommand {
			break
		}
		if name != "PING" {
			t.note(&t.commands, name)
		}
		pending <- name
		last = name
	}
	close(pending)
	_, _ = io.Copy(io.Discard, in) // what is read there has passed on
}

// replies passes replies on, and notes the errors among those to the handshake.
func (t *Tap) replies(server io.Reader, client io.Writer, pending <-chan string) {
	in := bufio.NewReader(io.TeeReader(server, client))
	for {
		v, err := readValue(in, 0)
		if err != nil {
			break
		}
		if v.kind == '>' { // a message out of turn
			continue
		}
		name, ok := <-pending
		if !ok {
			break
		}
		if v.kind == '-' || v.kind == '!' {
			t.note(&t.refused, name)
		}
	}
	_, _ = io.Copy(io.Discard, in)
}

func (t *Tap) note(list *[]string, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}

// commandName is a command with its subcommand or what else tells apart its uses, and without anything secret.
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
