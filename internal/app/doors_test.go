package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/httpapi"
	"cellserver/internal/edge/rls"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/edge/server"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// house has one engine behind RESP, HTTP and gRPC.
type house struct {
	*commandstest.Harness
	server  *server.Server
	tokens  door.Tokens
	refuses atomic.Bool // what Admit says
	urls    map[string]string
}

const token = "0123456789abcdef" // of the user app

const envoyRules = `
domain: matrix
descriptors:
  - key: k
    rate_limit: {unit: year, requests_per_unit: 2}
`

func (h *house) admit(peer.Peer) (refusal string) {
	if h.refuses.Load() {
		return "DENIED by protected mode"
	}
	return ""
}

func openHouse(t *testing.T, maxClients int, change func(*commands.Config)) *house {
	t.Helper()
	h := &house{urls: map[string]string{}}
	h.Harness = commandstest.New(func(c *commands.Config) {
		c.NamedLimits = namedlimit.New(namedlimit.Config{Log: c.Log})
		if change != nil {
			change(c)
		}
	})
	if err := h.tokens.Set([]byte(token + " app")); err != nil {
		t.Fatal(err)
	}
	now, log := func() int64 { return time.Now().UnixNano() }, slog.New(slog.DiscardHandler)
	h.server = server.New(server.Config{
		Now: now, Log: log, Limits: server.Limits{MaxClients: maxClients, MaxOutputBytes: 1 << 20},
		Admit:      h.admit,
		NewSession: func(p peer.Peer, c peer.Conn) peer.Session { return h.Engine.NewSession(p, c) },
	})
	rules, err := envoyconfig.RulesOf([]envoyconfig.File{{Path: "matrix.yaml", Text: []byte(envoyRules)}})
	if err != nil {
		t.Fatal(err)
	}
	ends := []func(context.Context){func(ctx context.Context) { _ = h.server.Shutdown(ctx) }}
	resp := newListener(t)
	h.urls["resp"] = resp.Addr().String()
	go func() { _ = h.server.Serve(resp) }()
	config := func(name peer.Door) door.Config {
		return door.Config{
			Name: name, Server: h.server, Users: h.Config.Users, Tokens: &h.tokens, Logins: &clients.Logins{}, Now: now, Log: log,
			NewSession: func(p peer.Peer, c peer.Conn) door.Session { return h.Engine.NewSession(p, c) },
			Admit:      h.admit,
		}
	}
	envoy := rls.New(rls.Config{Rules: func() *envoyconfig.Rules { return rules }, Calendars: h.Config.NamedLimits.Calendars(), Loading: func() bool { return false }})
	for _, d := range []*door.Door{
		door.New(config(peer.HTTP), httpapi.New(httpapi.Config{Limits: h.Config.NamedLimits, BoundTo: resp.Addr()})),
		door.NewGRPC(config(peer.GRPC), envoy.Procedures()),
	} {
		l := newListener(t)
		h.urls[d.Name.String()] = l.Addr().String()
		go func() { _ = d.Serve(l) }()
		ends = append(ends, d.Shutdown)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		for _, end := range ends {
			end(ctx)
		}
	})
	return h
}

func newListener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// byRESP returns "allowed", "limited", or the code of an error.
func (h *house) byRESP(t *testing.T, user bool, key string) string {
	t.Helper()
	nc, err := net.Dial("tcp", h.urls["resp"])
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(time.Minute))
	var in []byte
	replies := 1
	if user {
		in, replies = resptest.Append(in, "AUTH", "app", "pw"), 2
	}
	in = resptest.Append(in, "CL.QUOTA", key, "2", "YEAR", "1", "EPOCH", "COUNTDENIED")
	_, _ = nc.Write(in)
	_ = nc.(*net.TCPConn).CloseWrite()
	out, _ := io.ReadAll(nc)
	all := strings.SplitAfterN(string(out), "\r\n", replies)
	last := all[len(all)-1]
	switch {
	case strings.HasPrefix(last, "*5\r\n:0\r\n"):
		return "allowed"
	case strings.HasPrefix(last, "*5\r\n:1\r\n"):
		return "limited"
	}
	code, _, _ := strings.Cut(strings.TrimPrefix(last, "-"), " ")
	return code
}

// byHTTP returns "allowed", "limited", or the status.
func (h *house) byHTTP(t *testing.T, user bool, key string) string {
	t.Helper()
	body := `{"key": "` + key + `", "algorithm": "quota", "max_count": 2, "every": "year"}`
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+h.urls["http"]+"/v1/check", strings.NewReader(body))
	if user {
		r.Header.Set("X-Cellserver-Token", token)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return "allowed"
	case http.StatusTooManyRequests:
		return "limited"
	}
	return http.StatusText(response.StatusCode)
}

// byGRPC returns "allowed", "limited", or gRPC's code.
func (h *house) byGRPC(t *testing.T, user bool, key string) string {
	t.Helper()
	client, err := grpc.NewClient("passthrough:///"+h.urls["grpc"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	ctx := t.Context()
	if user {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	response := &rlspb.RateLimitResponse{}
	err = client.Invoke(ctx, "/"+rls.ServiceName+"/ShouldRateLimit", &rlspb.RateLimitRequest{
		Domain: "matrix", Descriptors: []*rlspb.RateLimitDescriptor{{Entries: []*rlspb.RateLimitDescriptor_Entry{{Key: "k", Value: key}}}},
	}, response)
	switch {
	case err != nil:
		return status.Code(err).String()
	case response.GetOverallCode() == rlspb.RateLimitResponse_OVER_LIMIT:
		return "limited"
	}
	return "allowed"
}

// TestAdmissionByDoor: each rule of admission has the same outcome through each door.
func TestAdmissionByDoor(t *testing.T) {
	password := func(c *commands.Config) { c.Users.SetDefaultPassword("secret") }
	users := func(rules string) func(*commands.Config) {
		return func(c *commands.Config) {
			if _, err := c.Users.Load("", "user default on nopass ~* +@all\nuser app on >pw "+rules); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name             string
		change           func(*commands.Config)
		then             func(h *house)
		user             bool
		resp, http, grpc string
	}{
		{name: "nobody needs a password", resp: "allowed", http: "allowed", grpc: "allowed"},
		{name: "no token", change: password, resp: "NOAUTH", http: "Unauthorized", grpc: "Unauthenticated"},
		{name: "a token", change: users("~* +cl.quota"), user: true, resp: "allowed", http: "allowed", grpc: "allowed"},
		{name: "no right to the command", change: users("~* +cl.throttle"), user: true, resp: "NOPERM", http: "Forbidden", grpc: "PermissionDenied"},
		{name: "no right to the key", change: users("~other +cl.quota"), user: true, resp: "NOPERM", http: "Forbidden", grpc: "PermissionDenied"},
		{name: "protected mode", then: func(h *house) { h.refuses.Store(true) }, resp: "DENIED", http: "Forbidden", grpc: "PermissionDenied"},
		{name: "a long key", change: func(c *commands.Config) { c.MaxKeyBytes = 2 }, resp: "ERR", http: "Bad Request", grpc: "InvalidArgument"},
		{name: "loading", change: keeper(t, nil, false), resp: "LOADING", http: "Service Unavailable", grpc: "Unavailable"},
		{name: "a disk that fails", change: keeper(t, errors.New("input/output error"), true), then: func(h *house) {
			for h.Config.Keeper.Gate().Refusal() == nil {
				h.byRESP(t, false, "first")
			}
		}, resp: "MISCONF", http: "Service Unavailable", grpc: "Unavailable"},
		{name: "no memory", change: func(c *commands.Config) { c.Store.(*shard.Store).SetMaxBytes(1, store.NoEviction) },
			resp: "OOM", http: "Service Unavailable", grpc: "ResourceExhausted"},
		{name: "new keys", then: func(h *house) {
			h.Engine.NewKeys.Limit(1)
			for n, last := 0, "allowed"; last == "allowed"; n++ {
				last = h.byRESP(t, false, strconv.Itoa(n))
			}
		}, resp: "ERR", http: "Service Unavailable", grpc: "ResourceExhausted"},
		{name: "a store on other machines", change: func(c *commands.Config) { c.Store = storetest.NewRemote(shard.New()) }, resp: "allowed", http: "allowed", grpc: "allowed"},
		{name: "a store that is down", change: func(c *commands.Config) {
			on := storetest.NewRemote(shard.New())
			on.Fail(store.Failure{Line: storetest.LineDown})
			c.Store = on
		}, resp: "STOREDOWN", http: "Service Unavailable", grpc: "Unavailable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := openHouse(t, 100, tt.change)
			if tt.then != nil {
				tt.then(h)
			}
			if got := h.byRESP(t, tt.user, "resp"); got != tt.resp {
				t.Errorf("RESP: %s, want %s", got, tt.resp)
			}
			if got := h.byHTTP(t, tt.user, "http"); got != tt.http {
				t.Errorf("HTTP: %s, want %s", got, tt.http)
			}
			if got := h.byGRPC(t, tt.user, "grpc"); got != tt.grpc {
				t.Errorf("gRPC: %s, want %s", got, tt.grpc)
			}
		})
	}
}

// keeper has a store persisted to a disk whose writes fail; unless it runs, it stays loading.
func keeper(t *testing.T, fails error, runs bool) func(*commands.Config) {
	return func(c *commands.Config) {
		dir, began := disktest.New(), time.Now()
		c.Now = func() int64 { return commandstest.T0 + int64(time.Since(began)) }
		k := persist.New(persist.Config{Dir: dir, Store: c.Store.(persist.Store), Now: c.Now, Timeout: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		if c.Keeper = k; !runs {
			return
		}
		ctx, end := context.WithCancel(context.Background())
		ready, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			_ = k.Run(ctx, func() { close(ready) })
		}()
		<-ready
		dir.Before = func(op disktest.Op, _ string) error {
			if op == disktest.Remove {
				return nil
			}
			return fails
		}
		t.Cleanup(func() {
			end()
			<-ended
		})
	}
}

// TestDecisionsByDoor: a third call beyond two a year is limited through each door, and a refusal for a full
// server is one of the protocol.
func TestDecisionsByDoor(t *testing.T) {
	h := openHouse(t, 100, nil)
	for n, want := range []string{"allowed", "allowed", "limited"} {
		for name, ask := range map[string]func(*testing.T, bool, string) string{"resp": h.byRESP, "http": h.byHTTP, "grpc": h.byGRPC} {
			if got := ask(t, false, name); got != want {
				t.Errorf("call %d by %s: %s, want %s", n+1, name, got, want)
			}
		}
	}
	full := openHouse(t, 1, nil)
	nc, err := net.Dial("tcp", full.urls["resp"])
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_, _ = nc.Write([]byte("PING\r\n"))
	_, _ = nc.Read(make([]byte, 7))
	for name, got := range map[string]string{
		"ERR": full.byRESP(t, false, "a"), "Service Unavailable": full.byHTTP(t, false, "a"), "ResourceExhausted": full.byGRPC(t, false, "a"),
	} {
		if got != name {
			t.Errorf("a full server: %s, want %s", got, name)
		}
	}
}
