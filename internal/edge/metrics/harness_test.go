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
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/store"
)

// harness is a server without listeners.
type harness struct {
	config Config
	engine *commandstest.Harness
	http   http.Handler
}

func newHarness(change ...func(*Config)) *harness {
	log := slog.New(slog.DiscardHandler)
	began := time.Now()
	now := func() int64 { return began.UnixNano() + int64(time.Since(began)) }
	engine := commandstest.New(commandstest.WithTimeLimit(50*time.Millisecond), func(c *commands.Config) {
		c.Now, c.NamedLimits = now, namedlimit.New(namedlimit.Config{Log: log})
	})
	c := Config{
		Store:        engine.Config.Store,
		Records:      engine.Engine.Records,
		Logins:       engine.Engine.Logins,
		Clients:      engine.Engine.Clients,
		NewKeys:      engine.Engine.NewKeys,
		Limits:       engine.Config.NamedLimits,
		Spent:        engine.Config.Store.(store.Spender).Spent,
		Now:          now,
		Server:       server.New(server.Config{Limits: server.Limits{MaxClients: 100}, Now: now, Log: log}),
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

// say sends commands from a new client.
func (h *harness) say(t testing.TB, in string) {
	t.Helper()
	s := h.engine.Session()
	defer s.Close()
	commandstest.Converse(t, s, in)
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
