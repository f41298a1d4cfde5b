// Package httpapi answers HTTP: checks for applications and for proxies, and the other calls of limiters, in
// JSON. An API returns what is to be decided and asks no session itself, so that any server can drive it. It
// is safe for concurrent use, an Exchange is not.
package httpapi

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
)

// Config configures a handler. Limits is required.
type Config struct {
	Limits  *namedlimit.Registry
	Reading funnel.Reading // of max_burst
	Headers Headers
	// TrustedProxies are believed about their clients' addresses, methods, paths and hosts.
	TrustedProxies []netip.Prefix
	// IPv6PrefixBits of a visitor's IPv6 address make the key of by=ip.
	IPv6PrefixBits int
	// AllowedHosts are further names in the Host header of requests without a user of their own.
	AllowedHosts []string
	// BoundTo is the listener's address; on loopback only loopback addresses are allowed hosts.
	BoundTo net.Addr
}

// API is the handler.
type API struct {
	Config
	calls     map[string]call
	date      date
	exchanges sync.Pool // of *Exchange
}

// New returns the handler of a door.
func New(c Config) *API {
	a := &API{Config: c}
	a.calls = map[string]call{
		"check": a.check, "peek": a.one(peek), "debit": a.one(debit), "refund": a.one(refund),
		"reset": a.reset, "reserve": a.reserve, "commit": a.commit, "extend": a.extend,
		"acquire": a.acquire, "release": a.release,
	}
	return a
}

// Admit looks at all of a request but its body, and sets its user. If it returns false, the request is
// refused and the Answer complete.
func (a *API) Admit(x *Exchange) bool {
	x.reset()
	err := a.admit(x)
	if err == nil {
		err = a.route(x)
	}
	if err != nil {
		a.Fail(x, err)
	}
	return err == nil
}

// TakesBody reports, after Admit, whether the request's body is to be read. Else a body is left.
func (x *Exchange) TakesBody() bool { return x.call != nil }

// Begin reads the request, and returns what is to be decided for its user. If it returns nil, the Answer is
// complete.
func (a *API) Begin(x *Exchange) decide.Ask {
	asked, err := a.start(x)
	if err != nil {
		a.Fail(x, err)
		return nil
	}
	return asked
}

func (a *API) start(x *Exchange) (decide.Ask, error) {
	if x.call == nil {
		return x.begin(a, x)
	}
	if err := x.root.parse(x.Request.Body); err != nil {
		return nil, err
	}
	return x.call(x, &x.root)
}

// Decided completes the Answer once all that Begin returned is decided.
func (a *API) Decided(x *Exchange) {
	if err := x.then(a, x); err != nil {
		a.Fail(x, err)
		return
	}
	a.Headers.write(x)
	x.forget()
}

// Fail completes the Answer with an error: one of door's, ErrLongBody, ErrBody, or another for a request that
// has ended.
func (a *API) Fail(x *Exchange, err error) {
	x.refuse(err)
	x.forget()
}

// route sets what begins the call, and refuses the other methods.
func (a *API) route(x *Exchange) error {
	path, ok := strings.CutPrefix(x.path, "/v1/")
	if !ok {
		return errNoPath
	}
	if name, ok := strings.CutPrefix(path, "check/"); ok && name != "" {
		x.begin, x.name = (*API).checkForProxy, name
		return x.gets("; POST /v1/check has the limit in its body")
	}
	if x.call = a.calls[path]; x.call != nil {
		return x.posts()
	}
	if x.begin, x.name = listOf(path); x.begin == nil {
		return errNoPath
	}
	x.lists = true
	if err := x.gets(""); err != nil {
		return err
	}
	if limit, explains := strings.CutSuffix(x.name, "/explain"); explains {
		x.begin, x.name = (*API).explain, limit
	} else if x.Request.Query != "" {
		return bad("this path takes no query")
	}
	return nil
}

// listOf returns what answers a GET of a path, and its limit.
func listOf(path string) (begin step, name string) {
	switch path {
	case "openapi.json":
		return describe, ""
	case "limits":
		return (*API).limits, ""
	}
	if name, ok := strings.CutPrefix(path, "limits/"); ok && name != "" {
		return (*API).limit, name
	}
	return nil, ""
}

// gets refuses methods other than GET and HEAD, and names the other form of a call.
func (x *Exchange) gets(other string) error {
	if x.Request.Method != http.MethodGet && x.Request.Method != http.MethodHead {
		return &refusal{status: http.StatusMethodNotAllowed, detail: "this path takes GET and HEAD" + other, allow: "GET, HEAD"}
	}
	return nil
}

// posts refuses what is not a POST with JSON.
func (x *Exchange) posts() error {
	if x.Request.Method != http.MethodPost {
		detail := "this path takes POST, with a JSON body"
		if strings.HasSuffix(x.path, "/check") {
			detail += "; GET /v1/check/LIMIT?key= has the limit in its path"
		}
		return &refusal{status: http.StatusMethodNotAllowed, detail: detail, allow: "POST"}
	}
	if x.Request.Query != "" {
		return bad("this path takes no query; send its arguments in the body")
	}
	if given, _ := x.Request.Field("Content-Type"); given != "" && given != "application/json" {
		if kind, _, err := mime.ParseMediaType(given); err != nil || kind != "application/json" {
			return bad("Content-Type must be application/json, or left out, got " + quote(given))
		}
	}
	if encoding, _ := x.Request.Field("Content-Encoding"); encoding != "" {
		return bad("the body must be sent without Content-Encoding")
	}
	return nil
}
