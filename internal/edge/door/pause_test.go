package door_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"cellserver/internal/decide/clients"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/server"
	"cellserver/internal/wire/peer"
)

// noted is a body that notes how many wrong tokens were counted when it was closed.
type noted struct {
	io.ReadCloser
	logins *clients.Logins
	at     []uint64
}

func (n *noted) Close() error {
	total, _ := n.logins.Total()
	n.at = append(n.at, total)
	return n.ReadCloser.Close()
}

// TestPausesHoldNoBody: what a stream has sent is dropped before a wrong token's pause. A body of HTTP/1 is
// not read ahead, and closing it would wait for the rest.
func TestPausesHoldNoBody(t *testing.T) {
	h := open(t, server.Limits{MaxClients: 10})
	logins := &clients.Logins{}
	d := door.New(door.Config{
		Name: peer.HTTP, Server: h.server, Users: h.Config.Users, Tokens: &h.tokens, Logins: logins, Now: h.Clock.Now, Log: slog.New(slog.DiscardHandler),
		NewSession: func(p peer.Peer, c peer.Conn) door.Session { return h.Engine.NewSession(p, c) },
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := &noted{ReadCloser: r.Body, logins: logins}
		r.Body = body
		_, err := door.ConnOf(r).User(r, "wrong")
		_, _ = fmt.Fprint(w, errors.Is(err, door.ErrToken), body.at)
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = d.Serve(l) }()
	t.Cleanup(func() { d.Shutdown(t.Context()) })
	for _, tt := range []struct {
		http2 bool
		want  string
	}{{true, "true [0]"}, {false, "true []"}} {
		response, err := newClient(t, tt.http2).Post("http://"+l.Addr().String(), "", strings.NewReader(strings.Repeat("x", 10_000)))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if string(got) != tt.want {
			t.Errorf("HTTP/2 %t: got %s, want %s", tt.http2, got, tt.want)
		}
	}
}
