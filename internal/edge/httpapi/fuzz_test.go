package httpapi

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"log/slog"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/http1"
)

func newAPI() *API {
	return New(Config{Limits: namedlimit.New(namedlimit.Config{Log: slog.New(slog.DiscardHandler)})})
}

// FuzzBody: what is accepted is one JSON object, and what it holds is that of encoding/json.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"limit":"api","key":"u"}`, `{"key":"\ud83d\ude00","algorithm":"funnel","max_burst":15,"count":30,"period":"1m"}`, `{"key":"\\ud800","limit":"a"}`,
		`{"key":"k","algorithm":"quota","max_count":5,"every":"week","time_zone":"Europe/Berlin","start":"1","epoch":false}`, `{"checks":[{"limit":"a","key":"b"}],"each":true}`,
		`{"key":"k","algorithm":"sliding_window","max_count":5,"period":60}`, `{"key":"\ud800\udbff"}`, `{"late":{"period":1}}`,
		`{"checks":[1,[2.5e-3,{}],null,true,"\u00e9\n\/"]}`, ` {"key" : [ ] , "id":-0}`, `{"key":"k"}x`, `{"key":01}`, `{"key":tru}`, "{\"key\":\"\t\"}",
	} {
		f.Add([]byte(seed))
	}
	a := newAPI()
	f.Fuzz(func(t *testing.T, body []byte) {
		agrees(t, body)
		if _, err := parse(body); err != nil {
			return
		}
		for _, do := range []verb{ask, peek, debit, refund} {
			o, err := parse(body)
			if err != nil {
				t.Fatal(err)
			}
			var c decide.Request
			_, err = a.readCheck(&c, new([]byte), o, do)
			if err != nil {
				if strings.ContainsAny(err.Error(), "\r\n") {
					t.Errorf("more than a line: %q", err)
				}
				continue
			}
			var want struct{ Key string }
			if err := json.Unmarshal(body, &want); err != nil || string(c.Key) != want.Key {
				t.Errorf("read %q of %s: %v", c.Key, body, err)
			}
			if words := decide.Words(c.Command, c.Limit, c.Key, &c.Spec, c.Quantity, false); len(words) < 4 {
				t.Errorf("%s makes %q", body, words)
			}
		}
	})
}

// FuzzQuery: a query that is accepted has each parameter once.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"key=u&quantity=1&denied=403", "by=ip,header:X-Api-Key", "key=%41+b", "a&a", "&&=&", "key=%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := readQuery(raw)
		if err != nil {
			return
		}
		n := p.n
		for range n {
			name := p.names[0]
			if _, ok := p.take(name); !ok {
				t.Errorf("%q: %q is lost", raw, name)
			}
			if _, again := p.take(name); again {
				t.Errorf("%q: %q is there twice", raw, name)
			}
		}
	})
}

// FuzzForwarded: an address that is told is one, of no trusted proxy unless all are, and the key can be taken
// apart again.
func FuzzForwarded(f *testing.F) {
	f.Add("192.0.2.1, 10.0.0.1", "192.0.2.1", "for=192.0.2.1, for=10.0.0.1", "/a?b", "http://h/a", "a")
	f.Add("[::1]:1,::ffff:10.0.0.1", "10.0.0.1", `proto=a;For="[::1]:_b";host="a\"b"`, "a", "/a", "1:2,3:")
	f.Add(",", "", ";,=", "?", "://", "")
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, forwardedFor, realIP, node, uri, url, host string) {
		r := &http1.Request{}
		for name, value := range map[string]string{"X-Forwarded-For": forwardedFor, "X-Real-Ip": realIP, "Forwarded": node, "X-Original-Uri": uri, "X-Original-Url": url, "X-Forwarded-Host": host} {
			r.Fields = append(r.Fields, http1.Field{Name: name, Value: value})
		}
		by := forwarded{r, nil, &Config{TrustedProxies: trusted}}
		if visitor, err := by.hop(); err == nil && visitor.IsValid() {
			if visitor.Zone() != "" || visitor.Is4In6() {
				t.Errorf("%q tells %s", forwardedFor, visitor)
			}
		}
		if visitor, err := by.hopOfForwarded(); err == nil && visitor.IsValid() && (visitor.Zone() != "" || visitor.Is4In6()) {
			t.Errorf("%q tells %s", node, visitor)
		}
		if path, ok := pathOf(uri); ok && strings.ContainsAny(path, "?#") {
			t.Errorf("%q has the path %q", uri, path)
		}
		if name, ok := hostOf(host); ok && (name == "" || strings.Contains(name, "/")) {
			t.Errorf("%q has the host %q", host, name)
		}
		_, _ = pathOf(url)
		_, _ = hostOfURL(url)
		a := API{Config: Config{AllowedHosts: []string{"a"}}}
		_ = a.allows(host)
	})
}
