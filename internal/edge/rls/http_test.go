package rls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/server"
	"cellserver/internal/test/patience"
	"cellserver/internal/wire/peer"
)

// serveHTTP serves a handler by a door on the house's engine, and returns its address.
func (h *house) serveHTTP(t *testing.T, name peer.Door, handler http.Handler) (url string, at *door.Door) {
	t.Helper()
	at = door.New(door.Config{
		Name: name, Server: h.server, Users: h.Config.Users, Tokens: &h.tokens, Logins: &clients.Logins{}, Now: h.Clock.Now, Log: slog.New(slog.DiscardHandler),
		NewSession: func(p peer.Peer, c peer.Conn) door.Session { return h.Engine.NewSession(p, c) },
		Admit:      func(peer.Peer) string { return h.refuse },
	}, handler)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- at.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := patience.Context(context.Background())
		defer cancel()
		at.Shutdown(ctx)
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String(), at
}

// said is an answer of HTTP.
type said struct {
	code       int
	kind, text string
}

// sayHTTP sends a request, with headers as "Name: value".
func sayHTTP(t *testing.T, method, url, body string, headers ...string) said {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	got, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return said{got.StatusCode, got.Header.Get("Content-Type"), string(text)}
}

// TestJSON has the answers of there: 200, 429, and 400 for whatever is wrong.
func TestJSON(t *testing.T) {
	h := open(t, Config{Headers: true, Metadata: true, Rules: rulesOf(t, "domain: d\ndescriptors: [{key: a, metadata: {m: 1}, rate_limit: {unit: minute, requests_per_unit: 1, name: n}}]\n")}, server.Limits{MaxClients: 10})
	url, at := h.serveHTTP(t, peer.RatelimitHTTP, NewHTTP(h.service))
	const call = `{"domain":"d","descriptors":[{"entries":[{"key":"a","value":"1"}]}]}`
	bad := said{400, "text/plain; charset=utf-8", "Bad Request\n"}
	for _, tt := range []struct {
		method, body string
		headers      []string
		want         said
	}{
		{"POST", call, nil, said{200, "application/json", `{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":1,"unit":"MINUTE","name":"n"},` +
			`"durationUntilReset":"40s"}],"responseHeadersToAdd":[{"key":"RateLimit-Limit","value":"1"},{"key":"RateLimit-Remaining","value":"0"},` +
			`{"key":"RateLimit-Reset","value":"40"},{"key":"x-ratelimit-near","value":"\"n\""}],` +
			`"dynamicMetadata":{"descriptors":[{"entries":["a=1"]}],"domain":"d","metadata":{"m":1},"near":["n"]}}`}},
		{"PUT", call, nil, said{429, "application/json", `"overallCode":"OVER_LIMIT"`}}, // no method is checked
		{"POST", `{"domain":"d","descriptors":[{"entries":[{"key":"b"}],"limit":{"requests_per_unit":5,"unit":"HOUR"},"hitsAddend":"2"}],"hits_addend":3}`, nil,
			said{200, "application/json", `"limitRemaining":3`}},
		{"POST", `{"domain":"nosuch","descriptors":[{}]}`, nil, said{200, "application/json", `"overallCode":"OK"`}},
		{"POST", "", nil, bad},
		{"GET", "", nil, bad},
		{"POST", "}", nil, bad},
		{"POST", `{"domain":"d"}`, nil, bad},
		{"POST", `{"descriptors":[{}]}`, nil, bad},
		{"POST", `{"domain":"d","descriptors":[{}],"unknown":1}`, nil, bad},
		{"POST", `{"domain":"d","descriptors":[null]}`, nil, bad},
		{"POST", `{"domain":"\ud800","descriptors":[{}]}`, nil, bad},
		{"POST", `{"domain":"d","descriptors":[{"limit":{"unit":"FORTNIGHT"}}]}`, nil, bad},
		{"POST", `{"domain":"d","descriptors":[` + strings.Repeat("{},", maxDescriptors) + `{}]}`, nil, bad},
		{"POST", `{"domain":"d","descriptors":[{"entries":[` + strings.Repeat("{},", maxEntries) + `{}]}]}`, nil, bad},
		{"POST", `{"domain":"d","descriptors":[` + strings.Repeat("{},", maxFields) + `{}]}`, nil, bad},
		{"POST", strings.Repeat("[", maxFields), nil, bad},
		{"POST", `{"domain":"` + strings.Repeat("x", door.MaxMessageBytes) + `"}`, nil, bad},
		{"POST", call, []string{"Origin: http://localhost"}, bad},
		{"POST", call, []string{"Sec-Fetch-Site: cross-site"}, bad},
		{"POST", call, []string{"Host: site.example"}, bad},
		{"POST", call, []string{"Host: site.example:8080"}, bad},
		{"POST", call, []string{"Host: LOCALHOST:8080"}, said{429, "application/json", "OVER_LIMIT"}},
		{"POST", call, []string{"Host: [::1]:8080"}, said{429, "application/json", "OVER_LIMIT"}},
		{"POST", call, []string{"Authorization: Bearer wrong"}, bad},
		{"POST", call, []string{"Authorization: Basic x"}, bad},
	} {
		got := sayHTTP(t, tt.method, url+"/json", tt.body, tt.headers...)
		if got.kind == "application/json" {
			got.text = compact(t, got.text)
		}
		if got.code != tt.want.code || got.kind != tt.want.kind || !strings.Contains(got.text, tt.want.text) {
			t.Errorf("%s %.100q %q: got %+v, want %+v", tt.method, tt.body, tt.headers, got, tt.want)
		}
	}
	if got := sayHTTP(t, "POST", url+"/nosuch", "x"); got.code != http.StatusNotFound {
		t.Errorf("an unknown path: %+v", got)
	}
	counts := at.Stats.Counts()
	if got := fmt.Sprint(counts.Of(door.Allowed), counts.Of(door.Limited), counts.Of(door.Refused), counts.Of(door.Failed)); got != "3 3 20 0" {
		t.Errorf("outcomes: %s", got)
	}
}

// compact writes JSON without spaces, of which protojson makes some at random.
func compact(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	var all any
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	inText := false
	for i := range len(text) {
		if c := text[i]; c == '"' && text[i-1] != '\\' {
			inText = !inText
		} else if c == ' ' && !inText {
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// TestHTTPUsers: who may call over gRPC may over HTTP, and nobody else; the health is for everybody.
func TestHTTPUsers(t *testing.T) {
	unready, loading := errors.New("shutting down"), false
	h := open(t, Config{Ready: func() error { return unready }, Loading: func() bool { return loading }}, server.Limits{MaxClients: 10})
	if err := h.tokens.Set([]byte(token + " envoy\n" + strings.Repeat("f", 16) + " other\n")); err != nil {
		t.Fatal(err)
	}
	url, _ := h.serveHTTP(t, peer.RatelimitHTTP, NewHTTP(h.service))
	const call = `{"domain":"d","descriptors":[{"entries":[{"key":"a"}],"limit":{"requestsPerUnit":1000,"unit":"HOUR"}}]}`
	for _, tt := range []struct {
		users, token, refuse string
		loading              bool
		want                 int
	}{
		{"user default on nopass ~* +@all", "", "", false, 200},
		{"user default on nopass ~* +@all", "", "protected", false, 400},
		{"user default on nopass ~* +@all", token, "protected", false, 200},
		{"user default on nopass ~* +@all", strings.Repeat("f", 16), "", false, 400},
		{"user default on >pw ~* +@all", "", "", false, 400},
		{"user default on >pw ~* +@all", token, "", false, 200},
		{"user default on >pw ~* +@all", token, "", true, 400},
	} {
		if _, err := h.Config.Users.Load("", tt.users+"\nuser envoy on nopass ~rls:* +cl.quota\nuser other on nopass ~o:* +cl.quota"); err != nil {
			t.Fatal(err)
		}
		h.refuse, loading, unready = tt.refuse, tt.loading, nil
		var headers []string
		if tt.token != "" {
			headers = append(headers, "Authorization: Bearer "+tt.token)
		}
		if got := sayHTTP(t, "POST", url+"/json", call, headers...); got.code != tt.want {
			t.Errorf("%+v: got %+v", tt, got)
		}
		if got := sayHTTP(t, "GET", url+"/healthcheck", ""); got.code != 200 || got.text != "OK" {
			t.Errorf("%+v: health %+v", tt, got)
		}
		unready = errors.New("shutting down")
		if got := sayHTTP(t, "GET", url+"/healthcheck", ""); got.code != 500 || got.text != "" {
			t.Errorf("%+v: health of one that shuts down %+v", tt, got)
		}
	}
}

// TestFullHTTP: a client too many is refused, and still told the health.
func TestFullHTTP(t *testing.T) {
	h := open(t, Config{}, server.Limits{MaxClients: 0})
	url, _ := h.serveHTTP(t, peer.RatelimitHTTP, NewHTTP(h.service))
	debug, _ := h.serveHTTP(t, peer.RatelimitDebug, NewDebug(h.service, DebugConfig{}))
	for path, want := range map[string]int{url + "/json": 400, url + "/healthcheck": 200, debug + "/stats": 403} {
		if got := sayHTTP(t, "POST", path, "{}", "Connection: close"); got.code != want {
			t.Errorf("%s: got %+v", path, got)
		}
	}
}

// TestDebug: the debug port has the paths of there that have a counterpart, and lists them.
func TestDebug(t *testing.T) {
	rules := rulesOf(t, "domain: d\ndescriptors: [{key: ip, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 1}}]\n")
	loaded := false
	h := open(t, Config{Rules: func() *envoyconfig.Rules {
		if !loaded {
			return nil
		}
		return rules()
	}}, server.Limits{MaxClients: 10})
	dumps := 0
	dump := func(w io.Writer, r *envoyconfig.Rules) error {
		dumps++
		_, err := fmt.Fprintln(w, len(r.Domains), "domains")
		return err
	}
	url, _ := h.serveHTTP(t, peer.RatelimitDebug, NewDebug(h.service, DebugConfig{Dump: dump}))
	profiled, _ := h.serveHTTP(t, peer.RatelimitDebug, NewDebug(h.service, DebugConfig{Dump: dump, Profiles: true}))
	const list = "/rlconfig: print out the currently loaded configuration for debugging\n/stats: print out stats\n"
	expect := func(url string, code int, text string, headers ...string) {
		t.Helper()
		got := sayHTTP(t, "GET", url, "", headers...)
		if got.code != code || got.text != text && text != "*" || !strings.HasPrefix(got.kind, "text/plain") {
			t.Errorf("%s: got %+v, want %d %q", url, got, code, text)
		}
	}
	expect(url+"/", 200, list)
	expect(url+"/nosuch", 200, list)
	expect(url+"/debug/pprof/profile", 200, list)
	expect(url+"/rlconfig", 200, "")
	loaded = true
	expect(url+"/rlconfig", 200, "1 domains\n")
	expect(url+"/rlconfig", 200, "1 domains\n")
	if dumps != 1 {
		t.Errorf("one configuration is computed %d times", dumps)
	}
	for _, ip := range []string{"ip=192.0.2.1", "ip=192.0.2.1", "ip=::1|2"} {
		if _, err := h.ask(t, requestOf(t, "d "+ip), ""); err != nil {
			t.Fatal(err)
		}
	}
	expect(url+"/stats", 200, `ratelimit.service.global_shadow_mode: 0
ratelimit.service.rate_limit.d.ip_192_0_2_1.near_limit: 1
ratelimit.service.rate_limit.d.ip_192_0_2_1.over_limit: 1
ratelimit.service.rate_limit.d.ip_192_0_2_1.shadow_mode: 0
ratelimit.service.rate_limit.d.ip_192_0_2_1.total_hits: 2
ratelimit.service.rate_limit.d.ip_192_0_2_1.within_limit: 1
ratelimit.service.rate_limit.d.ip___1_2.near_limit: 1
ratelimit.service.rate_limit.d.ip___1_2.over_limit: 0
ratelimit.service.rate_limit.d.ip___1_2.shadow_mode: 0
ratelimit.service.rate_limit.d.ip___1_2.total_hits: 1
ratelimit.service.rate_limit.d.ip___1_2.within_limit: 1
`)
	expect(profiled+"/debug/pprof/goroutine?debug=1", 200, "*")
	expect(profiled+"/debug/pprof/cmdline", 200, "/debug/pprof/: root of various pprof endpoints. hit for help.\n/debug/pprof/profile: CPU profiling endpoint\n/debug/pprof/trace: trace endpoint\n"+list)
	expect(url+"/rlconfig", 403, "requests of web pages are refused\n", "Host: site.example")
	if _, err := h.Config.Users.Load("", "user default on nopass ~* +@all -flushall"); err != nil {
		t.Fatal(err)
	}
	expect(profiled+"/debug/pprof/goroutine?debug=1", 403, "profiles are for users who may do everything\n")
	expect(profiled+"/rlconfig", 200, "1 domains\n")
	h.refuse = "protected"
	expect(url+"/stats", 403, "protected\n")
}

// FuzzJSON: whatever a text has, what it becomes is bounded, and is refused for what it is.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		`{"domain":"d","descriptors":[{"entries":[{"key":"a","value":"\"{"}],"limit":{"unit":"DAY","requestsPerUnit":1}}],"hitsAddend":2}`,
		`{"descriptors":[{},{"hits_addend":"18446744073709551615","isNegativeHits":true}]}`, `[[[`, `"\`, "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := decodeJSON(text)
		if err != nil {
			if bad := requestError(""); !errors.As(err, &bad) {
				t.Errorf("got %v", err)
			}
			return
		}
		entries := 0
		for _, d := range r.Descriptors {
			entries += len(d.Entries)
		}
		if len(r.Descriptors) > maxDescriptors || entries > maxEntries {
			t.Errorf("%d descriptors, %d entries", len(r.Descriptors), entries)
		}
	})
}
