package door_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/decide/clients"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/server"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/patience"
	"cellserver/internal/wire/peer"
)

// house is a door whose requests name their call in the path, and its engine.
type house struct {
	*commandstest.Harness
	door    *door.Door
	server  *server.Server
	tokens  door.Tokens
	refuses atomic.Bool // what Admit says
	waiting atomic.Int64
	url     string
	client  *http.Client
}

func open(t *testing.T, limits server.Limits) *house {
	t.Helper()
	h := &house{Harness: commandstest.New()}
	now := func() int64 { return time.Now().UnixNano() }
	log := slog.New(slog.DiscardHandler)
	h.server = server.New(server.Config{Now: now, Log: log, Limits: limits, NewSession: func(p peer.Peer, c peer.Conn) peer.Session { return h.Engine.NewSession(p, c) }})
	h.door = door.New(door.Config{
		Name: peer.HTTP, Server: h.server, Users: h.Config.Users, Tokens: &h.tokens, Logins: &clients.Logins{}, Now: now, Log: log,
		NewSession: func(p peer.Peer, c peer.Conn) door.Session {
			return &waitingSession{Session: h.Engine.NewSession(p, c), now: &h.waiting}
		},
		Admit: func(peer.Peer) string {
			if h.refuses.Load() {
				return "DENIED"
			}
			return ""
		},
	}, http.HandlerFunc(answer))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.door.Serve(l) }()
	h.url, h.client = "http://"+l.Addr().String()+"/", newClient(t, false)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		h.door.Shutdown(ctx)
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the door ended with %v", err)
		}
		until(t, "all connections have left", func() bool { return h.server.Stats().Connected == 0 && h.Engine.Clients.Len() == 0 })
	})
	return h
}

func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	if !patience.Until(cond) {
		t.Errorf("it never happened that %s", what)
	}
}

func newClient(t *testing.T, http2 bool) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// slow is a call that waits until its request ends.
const slow = "CL.THROTTLE,slow,15,30,60"

// waitingSession has it wait, as a store that does not answer would.
type waitingSession struct {
	door.Session
	now     *atomic.Int64 // that wait
	waiting bool
}

func (s *waitingSession) Ask(a decide.Ask) peer.Status {
	if r, ok := a.(*decide.Requests); ok && len(r.All) > 0 && string(r.All[0].Key) == "slow" {
		s.waiting = true
		s.now.Add(1)
		return peer.Waiting
	}
	return s.Session.Ask(a)
}

func (s *waitingSession) Close() {
	if s.waiting {
		s.now.Add(-1)
	}
	s.Session.Close()
}

// answer asks for the call in a request's path, with its token.
func answer(w http.ResponseWriter, r *http.Request) {
	c := door.ConnOf(r)
	user, err := c.User(r, r.Header.Get("Token"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	call := strings.Split(r.URL.Path[1:], ",")
	twice := &decide.Requests{}
	if q, ok := commandstest.Request(call...); ok {
		twice.All = []decide.Request{q, q}
	}
	if err := c.Ask(r.Context(), user, twice); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for _, q := range twice.All {
		if q.Err != nil {
			_, _ = fmt.Fprint(w, q.Err)
		}
		_, _ = fmt.Fprint(w, q.Result.Remaining, ";")
	}
}

func (h *house) get(t *testing.T, client *http.Client, call, token string) string {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+call, http.NoBody)
	if token != "" {
		r.Header.Set("Token", token)
	}
	response, err := client.Do(r)
	if err != nil {
		return "failed"
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return strings.TrimSpace(string(body))
}

const throttle = "CL.THROTTLE,k,15,30,60"

func TestConnectionsAreClients(t *testing.T) {
	h := open(t, server.Limits{MaxClients: 2})
	if got := h.get(t, h.client, throttle, ""); got != "15;14;" {
		t.Errorf("got %s", got)
	}
	operator := h.Session()
	defer operator.Close()
	if list := commandstest.Say(t, operator, "CLIENT LIST\r\n"); !strings.Contains(list, "name=http") {
		t.Errorf("CLIENT LIST: %s", list)
	}
	if got := h.server.Stats(); got.Connected != 1 || got.Accepted != 1 {
		t.Errorf("%+v", got)
	}
	if got := h.get(t, newClient(t, true), throttle, ""); !strings.HasPrefix(got, "13;") {
		t.Errorf("a second connection got %s", got)
	}
	if got := h.get(t, newClient(t, false), throttle, ""); !strings.Contains(got, "--maxclients") {
		t.Errorf("beyond the maximum a client got %s", got)
	}
	if got := h.server.Stats(); got.Refused != 1 || got.Connected != 2 {
		t.Errorf("%+v", got)
	}
}

func TestTokens(t *testing.T) {
	h := open(t, server.Limits{MaxClients: 10})
	if _, err := h.Config.Users.Load("", "user default on nopass ~* +@all\nuser app on nopass ~mine* +@all\nuser gone off nopass ~* +@all"); err != nil {
		t.Fatal(err)
	}
	if err := h.tokens.Set([]byte("# those of the team\n\n0123456789abcdef app\n0123456789abcdeg gone\n0123456789abcdeh nobody\n")); err != nil {
		t.Fatal(err)
	}
	h.refuses.Store(true)
	for _, tt := range []struct{ token, want string }{
		{"", "DENIED"}, {"wrong", "the token is unknown"}, {"0123456789abcdeg", "the token is unknown"}, {"0123456789abcdeh", "the token is unknown"},
		{"0123456789abcdef", "NOPERM"},
	} {
		if got := h.get(t, h.client, throttle, tt.token); !strings.HasPrefix(got, tt.want) {
			t.Errorf("token %q: %s, want %s", tt.token, got, tt.want)
		}
	}
	if got := h.get(t, h.client, "CL.THROTTLE,mine,15,30,60", "0123456789abcdef"); got != "15;14;" {
		t.Errorf("got %s", got)
	}
	h.refuses.Store(false)
	if got := h.get(t, h.client, throttle, ""); got != "15;14;" {
		t.Errorf("after a request of another user: %s", got)
	}
}

func TestTokenFiles(t *testing.T) {
	for text, want := range map[string]string{
		"0123456789abcdef":     "line 1: want a token and the name of an ACL user, separated by a space",
		"\nshort app":          "line 2: the token is shorter than 16 characters, and could be guessed",
		"0123456789abcde/ app": "line 1: a token may have letters, digits and -._~ only, as it may stand in a path",
		"0123456789abcdef app\n0123456789abcdef other": "line 2: the token stands in an earlier line, too",
		"0123456789abcdef app extra":                   "line 1: want a token and the name of an ACL user, separated by a space",
		"  0123456789abcdef\tapp  \r\n#\n\n":           "",
	} {
		var tokens door.Tokens
		err := tokens.Set([]byte("0123456789abcdef before"))
		if err == nil {
			err = tokens.Set([]byte(text))
		}
		if got := fmt.Sprint(err); want != "" && got != want || want == "" && err != nil {
			t.Errorf("%q: %v", text, err)
		}
		user := "app"
		if want != "" {
			user = "before"
		}
		if got := tokens.User("0123456789abcdef"); got != user {
			t.Errorf("%q: the user is %q", text, got)
		}
	}
}

// TestWaitingEndsWithItsRequest: a client that leaves cancels its turn, and its connection goes on.
func TestWaitingEndsWithItsRequest(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		h := open(t, server.Limits{MaxClients: 10})
		client := newClient(t, http2)
		h.get(t, client, throttle, "")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, h.url+slow, http.NoBody)
			if response, err := client.Do(r); err == nil {
				response.Body.Close()
				t.Error("the second turn came")
			}
		}()
		until(t, "the client waits", func() bool { return h.waiting.Load() == 1 })
		cancel()
		<-ended
		until(t, "nobody waits", func() bool { return h.waiting.Load() == 0 })
		if got := h.get(t, client, throttle, ""); !strings.HasPrefix(got, "13;") {
			t.Errorf("then: %s", got)
		}
	}
}

// TestParallelRequests of one connection have a session each.
func TestParallelRequests(t *testing.T) {
	h := open(t, server.Limits{MaxClients: 1})
	client := newClient(t, true)
	h.get(t, client, "CL.THROTTLE,a,9999,1,3600", "")
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for range 20 {
				h.get(t, client, "CL.THROTTLE,a,9999,1,3600", "")
			}
		})
	}
	all.Wait()
	if got := h.get(t, client, "CL.THROTTLE,a,9999,1,3600,0", ""); got != "8718;8718;" {
		t.Errorf("left: %s", got)
	}
	if n := h.server.Stats().Connected; n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestKilledConnections: CLIENT KILL and eviction close a connection of a door.
func TestKilledConnections(t *testing.T) {
	h := open(t, server.Limits{MaxClients: 10})
	h.get(t, h.client, throttle, "")
	operator := h.Session()
	commandstest.Say(t, operator, "CLIENT SETNAME operator\r\n")
	for _, c := range h.Engine.Clients.All(func(c *clients.Client) bool { return c.Peer.Door != peer.RESP }) {
		c.Conn.Evict()
	}
	until(t, "the connection is closed", func() bool { return h.server.Stats().Closed["memory"] == 1 })
	if got := h.get(t, h.client, throttle, ""); !strings.HasPrefix(got, "13;") {
		t.Errorf("then: %s", got)
	}
	operator.Close()
}
