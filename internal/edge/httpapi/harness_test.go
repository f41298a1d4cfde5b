package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/httpapi"
	"cellserver/internal/edge/server"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/patience"
	"cellserver/internal/wire/peer"
)

const token = "a-token-of-app-01"

// options change a harness.
type options struct {
	api    func(*httpapi.Config)
	engine []func(*commands.Config)
	door   func(*door.Config)
	server func(*server.Config)
	users  string // "" for the default one only
}

// harness is a door on loopback before an engine.
type harness struct {
	*commandstest.Harness
	door   *door.Door
	server *server.Server
	addr   string
	resp   *commandstest.Client
}

func start(t testing.TB, o options) *harness {
	t.Helper()
	h := newHarness(t, &o)
	h.resp = h.Session()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.addr = l.Addr().String()
	c := httpapi.Config{Limits: h.Config.NamedLimits, Reading: h.Config.Reading, IPv6PrefixBits: 64, BoundTo: l.Addr()}
	if o.api != nil {
		o.api(&c)
	}
	api, config := httpapi.New(c), h.doorConfig(t, &o)
	config.NewLoopSession = api.NewSession
	h.door, h.server = door.New(config, api), config.Server
	ended := make(chan error, 1)
	go func() { ended <- h.door.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := patience.Context(context.Background())
		defer cancel()
		h.door.Shutdown(ctx)
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return h
}

func newHarness(t testing.TB, o *options) *harness {
	t.Helper()
	r := commandstest.New(append([]func(*commands.Config){func(c *commands.Config) {
		c.NamedLimits = namedlimit.New(namedlimit.Config{Log: slog.New(slog.DiscardHandler), Now: c.Now})
	}}, o.engine...)...)
	if o.users != "" {
		if _, err := r.Config.Users.Load("", o.users); err != nil {
			t.Fatal(err)
		}
	}
	return &harness{Harness: r}
}

func (h *harness) doorConfig(t testing.TB, o *options) door.Config {
	t.Helper()
	tokens := &door.Tokens{}
	if err := tokens.Set([]byte(token + " app\n")); err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	of := server.Config{
		NewSession: func(p peer.Peer, conn peer.Conn) peer.Session { return h.Engine.NewSession(p, conn) },
		IOThreads:  1, Limits: server.Limits{MaxClients: 1000}, Now: h.Clock.Now, Log: quiet,
	}
	if o.server != nil {
		o.server(&of)
	}
	c := door.Config{
		Name: peer.HTTP, Server: server.New(of), Users: h.Config.Users, Tokens: tokens, Logins: &clients.Logins{},
		NewSession: func(p peer.Peer, conn peer.Conn) door.Session { return h.Engine.NewSession(p, conn) },
		Admit:      func(peer.Peer) string { return "" }, Now: h.Clock.Now, Log: quiet,
	}
	if o.door != nil {
		o.door(&c)
	}
	return c
}

// say executes commands as a Redis client.
func (h *harness) say(t testing.TB, lines ...string) string {
	t.Helper()
	return commandstest.Say(t, h.resp, strings.Join(lines, "\r\n")+"\r\n")
}

// response is a checked one.
type response struct {
	status int
	header http.Header
	body   string
}

// member returns a member of the body as text.
func (r *response) member(name string) string {
	var all map[string]any
	d := json.NewDecoder(strings.NewReader(r.body))
	d.UseNumber()
	if d.Decode(&all) != nil {
		return ""
	}
	return fmt.Sprint(all[name])
}

// send sends a request whose headers are "Name: value" each, and validates the answer.
func (h *harness) send(t testing.TB, method, path, body string, headers ...string) response {
	t.Helper()
	return h.sendBy(t, http.DefaultTransport, method, path, body, headers...)
}

func (h *harness) sendBy(t testing.TB, by http.RoundTripper, method, path, body string, headers ...string) response {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+h.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if r.Header.Add(name, value); name == "Host" {
			r.Host = value
		}
	}
	got, err := by.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	validate(t, method, r.URL.Path, []byte(body), got, text)
	return response{got.StatusCode, got.Header, string(text)}
}

func (h *harness) post(t testing.TB, call, body string) response {
	t.Helper()
	return h.send(t, "POST", "/v1/"+call, body)
}

// is checks a status and what the body contains.
func (r response) is(t testing.TB, status int, contains string) response {
	t.Helper()
	if r.status != status || !strings.Contains(r.body, contains) {
		t.Errorf("got %d, want %d: %s lacks %s", r.status, status, bytes.TrimSpace([]byte(r.body)), contains)
	}
	return r
}

// has checks a header's value, "" for none.
func (r response) has(t testing.TB, name, want string) response {
	t.Helper()
	if got := strings.Join(r.header.Values(name), "|"); got != want {
		t.Errorf("%s: got %q, want %q", name, got, want)
	}
	return r
}

func trusting(prefixes ...string) func(*httpapi.Config) {
	return func(c *httpapi.Config) {
		for _, p := range prefixes {
			c.TrustedProxies = append(c.TrustedProxies, netip.MustParsePrefix(p))
		}
	}
}
