package metrics

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"cellserver/internal/base/buildinfo"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/server"
	"cellserver/internal/lua"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/redis/execute"
	"cellserver/internal/resp"
	"cellserver/internal/shard"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// harness is a server without listeners.
type harness struct {
	config Config
	engine *commands.Engine
	http   http.Handler
}

func newHarness(change ...func(*Config)) *harness {
	store, log := shard.New(), slog.New(slog.DiscardHandler)
	began := time.Now()
	now := func() int64 { return began.UnixNano() + int64(time.Since(began)) }
	clients := server.New(server.Config{Limits: server.Limits{MaxClients: 100}, Now: now, Log: log})
	cat, named := catalog.New(), namedlimit.New(namedlimit.Config{Log: log})
	engine, err := commands.NewEngine(commands.Config{
		Config: execute.Config{
			Store: store, Now: now, WallTime: time.Now, Databases: 16, Catalog: cat,
			MaxKeyBytes: 100, MaxReplyBytes: 1 << 20, Limits: resp.Limits{MaxArgs: 100, MaxCommandBytes: 1 << 20},
			Users: acl.NewUsers(cat.ForRules()), Scripts: lua.New(lua.Config{Now: now, Native: cat.Batched()}),
			BackgroundThreads: 2, NamedLimits: named, Log: log,
		},
		Options: admin.Options{Connections: func() admin.Connections { return admin.Connections{} }},
	})
	if err != nil {
		panic(err)
	}
	c := Config{
		Store:        store,
		Records:      engine.Records,
		Logins:       engine.Logins,
		Clients:      engine.Clients,
		NewKeys:      engine.NewKeys,
		Limits:       named,
		Now:          now,
		Server:       clients,
		Build:        buildinfo.Info{Version: "1.2.3", Revision: "abc", Go: "go1.26"},
		Ready:        func(context.Context) error { return nil },
		Alive:        func() error { return nil },
		LostLogLines: func() uint64 { return 0 },
		Access:       &Access{Log: log, Now: now},
		BoundTo:      &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 9380},
	}
	for _, f := range change {
		f(&c)
	}
	return &harness{c, engine, Handler(c)}
}

// conn notes wake-ups of a session.
type conn struct{ woken chan struct{} }

func (c conn) Wake()  { c.woken <- struct{}{} }
func (c conn) Kill()  {}
func (c conn) Evict() {}

// say sends commands from a new client.
func (h *harness) say(in string) {
	c := conn{make(chan struct{}, 1)}
	s := h.engine.NewSession(peer.Peer{Addr: "192.0.2.1:5000"}, c)
	defer s.Close()
	buf, out := []byte(in), []byte(nil)
	for {
		n, appended, status := s.Feed(buf, out)
		buf, out = buf[n:], appended
		switch status {
		case peer.More:
		case peer.Waiting:
			<-c.woken
		default:
			return
		}
	}
}

func (h *harness) get(path string, header ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.http.ServeHTTP(w, request)
	return w
}

func (h *harness) scrape(t testing.TB) string {
	t.Helper()
	answer := h.get("/metrics")
	if answer.Code != http.StatusOK {
		t.Fatalf("scrape: got %d, %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// gather returns our metric families by name, as in a scrape.
func (h *harness) gather(t testing.TB) map[string]*dto.MetricFamily {
	t.Helper()
	all, err := newRegistry(&h.config).Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*dto.MetricFamily{}
	for _, f := range all {
		byName[f.GetName()] = f
	}
	return byName
}

// value returns a counter or gauge by its label values, in the order of the label names.
func value(t testing.TB, f *dto.MetricFamily, labels ...string) float64 {
	t.Helper()
	if m := series(f, labels...); m != nil {
		return m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	t.Fatalf("no %s with %q", f.GetName(), labels)
	return 0
}

func series(f *dto.MetricFamily, labels ...string) *dto.Metric {
next:
	for _, m := range f.GetMetric() {
		for i, l := range m.GetLabel() {
			if i >= len(labels) || l.GetValue() != labels[i] {
				continue next
			}
		}
		return m
	}
	return nil
}

// figure is the expected value of a series; its name lacks "cellserver_".
type figure struct {
	name   string
	labels []string
	want   float64
}

func (h *harness) expect(t *testing.T, figures ...figure) {
	t.Helper()
	all := h.gather(t)
	for _, f := range figures {
		if got := value(t, all["cellserver_"+f.name], f.labels...); got != f.want {
			t.Errorf("%s %q: got %g, want %g", f.name, f.labels, got, f.want)
		}
	}
}
