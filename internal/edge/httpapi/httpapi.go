// Package httpapi answers HTTP: checks for applications and for proxies, and the other calls of limiters, in
// JSON. Its handler asks the session of a door's connection and is safe for concurrent use.
package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/door"
	"cellserver/internal/funnel"
	"cellserver/internal/wire/acl"
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
	noStore   []string  // values of headers, shared by all answers
	noSniff   []string
	json      []string
	problem   []string
}

// call answers a POST with a body.
type call func(q *request, body *object) (answer, error)

// list answers a GET, about a limit if name is not empty.
type list func(q *request, name string) (answer, error)

// New returns the handler of a door.
func New(c Config) *API {
	a := &API{
		Config: c, noStore: []string{"no-store"}, noSniff: []string{"nosniff"},
		json: []string{"application/json"}, problem: []string{"application/problem+json"},
	}
	a.calls = map[string]call{
		"check": a.check, "peek": a.one(peek), "debit": a.one(debit), "refund": a.one(refund),
		"reset": a.reset, "reserve": a.reserve, "commit": a.commit, "acquire": a.acquire, "release": a.release,
	}
	return a
}

// request is a request under way.
type request struct {
	*http.Request
	conn *door.Conn
	path string    // after a token
	user *acl.User // nil for the default user
}

// answer is a response.
type answer struct {
	status  int
	body    []byte
	problem bool   // else JSON
	rates   rates  // for the headers
	retryMs int64  // of Retry-After; negative for none
	allow   string // of Allow
	login   bool   // a token is missing
	close   bool   // the connection
	outcome door.Outcome
}

// done returns the answer to what was done.
func done(body []byte) answer {
	return answer{status: http.StatusOK, body: body, retryMs: -1, outcome: door.Allowed}
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := request{Request: r, conn: door.ConnOf(r), path: r.URL.Path}
	beganNs := q.conn.Now()
	to, err := a.serve(w, &q)
	if err != nil {
		to = refuse(err)
	}
	to.close = to.close || door.LeavesBody(r)
	a.write(w, &to)
	q.conn.Count(to.outcome, beganNs)
}

func (a *API) serve(w http.ResponseWriter, q *request) (answer, error) {
	if err := a.admit(q); err != nil {
		return answer{}, err
	}
	path, ok := strings.CutPrefix(q.path, "/v1/")
	if !ok {
		return answer{}, errNoPath
	}
	if name, ok := strings.CutPrefix(path, "check/"); ok && name != "" {
		if err := q.gets("; POST /v1/check has the limit in its body"); err != nil {
			return answer{}, err
		}
		return a.checkForProxy(q, name)
	}
	if f := a.calls[path]; f != nil {
		body, err := q.posted(w)
		if err != nil {
			return answer{}, err
		}
		return f(q, body)
	}
	f, name := a.listOf(path)
	if f == nil {
		return answer{}, errNoPath
	}
	if err := q.gets(""); err != nil {
		return answer{}, err
	}
	if limit, explains := strings.CutSuffix(name, "/explain"); explains {
		return a.explain(q, limit)
	}
	if q.URL.RawQuery != "" {
		return answer{}, bad("this path takes no query")
	}
	return f(q, name)
}

// listOf returns what answers a GET of a path, and its limit.
func (a *API) listOf(path string) (f list, name string) {
	switch path {
	case "openapi.json":
		return describe, ""
	case "limits":
		return a.limits, ""
	}
	if name, ok := strings.CutPrefix(path, "limits/"); ok && name != "" {
		return a.limit, name
	}
	return nil, ""
}

// gets refuses methods other than GET and HEAD, and names the other form of a call.
func (q *request) gets(other string) error {
	if q.Method != http.MethodGet && q.Method != http.MethodHead {
		return &refusal{status: http.StatusMethodNotAllowed, detail: "this path takes GET and HEAD" + other, allow: "GET, HEAD"}
	}
	return nil
}
