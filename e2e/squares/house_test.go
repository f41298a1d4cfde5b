package squares

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/histogram"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard"
	"cellserver/internal/edge/dashboard/actions"
	"cellserver/internal/edge/dashboard/ask"
	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/httpapi"
	"cellserver/internal/edge/server"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/store"
	"cellserver/internal/test/patience"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// house is an engine behind all doors, on a clock that the test sets.
type house struct {
	*commandstest.Harness
	file  string // of limits
	doors []way
	admin *client
	local bool // keys are in memory
	envoy *envoy
	page  *acting // nil where commands change nothing
}

func openHouse(t *testing.T, text string, on store.Store) *house {
	t.Helper()
	_, isRemote := on.(store.Remote)
	h := &house{local: !isRemote, file: filepath.Join(t.TempDir(), "limits.yml")}
	h.write(t, text)
	quiet := slog.New(slog.DiscardHandler)
	h.Harness = commandstest.New(func(c *commands.Config) {
		c.NamedLimits = limitsfile.New(limitsfile.Config{File: h.file, Reading: c.Reading, Now: c.Now, Log: quiet})
		if on != nil {
			c.Store, c.StoreTimeout = on, patience.Forever
		}
	})
	h.countSpent()
	if err := h.Config.NamedLimits.Reload(); err != nil {
		t.Fatal(err)
	}
	resp := server.New(server.Config{
		Now: h.Clock.Now, Log: quiet, Limits: server.Limits{MaxClients: 100, MaxOutputBytes: 1 << 20}, Admit: func(peer.Peer) string { return "" },
		NewSession: func(p peer.Peer, c peer.Conn) peer.Session { return h.Engine.NewSession(p, c) },
	})
	l := listen(t)
	go func() { _ = resp.Serve(l) }()
	web := door.New(door.Config{
		Name: peer.HTTP, Server: resp, Users: h.Config.Users, Tokens: &door.Tokens{}, Logins: &clients.Logins{}, Now: h.Clock.Now, Log: quiet,
		NewSession: func(p peer.Peer, c peer.Conn) door.Session { return h.Engine.NewSession(p, c) },
		Admit:      func(peer.Peer) string { return "" },
	}, httpapi.New(httpapi.Config{Limits: h.Config.NamedLimits, Reading: h.Config.Reading, BoundTo: l.Addr()}))
	of, ended := listen(t), make(chan error, 1)
	go func() { ended <- web.Serve(of) }()
	page := h.openPage(t, quiet)
	t.Cleanup(func() {
		page.Close()
		http.DefaultClient.CloseIdleConnections()
		ctx, cancel := patience.Context(context.Background())
		defer cancel()
		web.Shutdown(ctx)
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		_ = resp.Shutdown(ctx)
	})
	h.doors = append(append(redisDoors(t, l.Addr().String(), isRemote), httpDoors("http://"+of.Addr().String())...), pageDoor(page.URL))
	if h.local {
		h.page = &acting{page.URL}
	}
	h.envoy = h.openEnvoy(t, resp, quiet)
	h.admin = newClient(t, l.Addr().String(), "2")
	return h
}

// openPage returns the live page with its actions.
func (h *house) openPage(t *testing.T, quiet *slog.Logger) *httptest.Server {
	t.Helper()
	if _, err := h.Config.Users.Load("", actingUsers); err != nil {
		t.Fatal(err)
	}
	acts := actions.New(actions.Config{
		NewSession: func(p peer.Peer, c peer.Conn, user *acl.User) actions.Session {
			return h.Engine.NewSessionAs(p, c, user)
		},
		Users: h.Config.Users, Limit: h.Config.NamedLimits.Lookup, Reading: h.Config.Reading, Databases: h.Config.Databases,
		MaxKeyBytes: h.Config.MaxKeyBytes, Now: h.Clock.Now, Log: quiet,
	})
	site := http.NewServeMux()
	site.Handle(actions.SignInPath, acts)
	site.Handle(actions.ActPath, acts)
	site.Handle("/", dashboard.New(dashboard.Source{
		Actions: acts,
		Source: ask.Source{
			Now: h.Clock.Now, State: h.Config.Store.State, Limits: h.Config.NamedLimits.All, Calendars: h.Config.NamedLimits.Calendars(),
			Reading: h.Config.Reading, Databases: h.Config.Databases, MaxKeyBytes: h.Config.MaxKeyBytes,
		},
		Facts: func() dashboard.Facts { return dashboard.Facts{} }, Sample: func() history.Sample { return history.Sample{} },
		Refused: func() []dashboard.Refusal { return nil }, Latency: histogram.NewScale().NewDurations,
		Top:       func(topkeys.Ranking, int) []topkeys.Entry { return nil },
		Overrides: func(string) ([]namedlimit.KeyOverride, []namedlimit.Override) { return nil, nil },
	}))
	return httptest.NewServer(site)
}

func (h *house) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(h.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
