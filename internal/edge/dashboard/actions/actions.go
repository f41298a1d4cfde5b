// Package actions lets ACL users act through the live page: they sign in with their passwords, and what they
// confirm is executed as commands of theirs. A Handler is safe for concurrent use.
package actions

import (
	"encoding/json"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"cellserver/internal/base/often"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/funnel"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// Session executes the commands of one client; see peer.Session.
type Session interface {
	Feed(in, out []byte) (consumed int, replies []byte, status peer.Status)
	Close()
}

// Config configures a Handler. All fields are required.
type Config struct {
	// NewSession returns a client's session; a nil user has yet to authenticate.
	NewSession func(p peer.Peer, conn peer.Conn, user *acl.User) Session
	Users      *acl.Users
	Limit      func(name []byte) *namedlimit.Limit // nil for an unknown one
	Reading    funnel.Reading

	Databases, MaxKeyBytes int

	Now func() int64 // Unix nanoseconds
	Log *slog.Logger
}

// Paths that a Handler serves, by POST only:
const (
	SignInPath  = "/signin"
	SignOutPath = "/signout"
	ActPath     = "/act"
)

// Bounds of requests:
const (
	maxBodyBytes = 32 << 10 // fits a key of 4 KiB with each byte escaped twice
	maxRunning   = 8        // actions
)

// Handler serves the actions.
type Handler struct {
	config   Config
	sessions sessions
	guests   guests
	running  chan struct{} // an element for each action under way

	english, chinese *words.Texts

	refused, wrong often.Counter // rate-limited log lines
}

// New returns a Handler.
func New(c Config) *Handler {
	return &Handler{
		config: c, sessions: sessions{users: c.Users}, running: make(chan struct{}, maxRunning), english: words.English(), chinese: words.Chinese(),
	}
}

// ServeHTTP answers a page's script with JSON, and its forms by a redirection to the page.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	header.Set("Connection", "close")
	q := &request{Handler: h, w: w, r: r, t: h.english, peer: peerOf(r)}
	if status, why := q.read(); why != "" {
		q.refuse(status, why)
		return
	}
	switch r.URL.Path {
	case SignInPath:
		q.signIn()
	case SignOutPath:
		q.signOut()
	case ActPath:
		q.act()
	default:
		http.NotFound(w, r)
	}
}

// request is a request under way.
type request struct {
	*Handler
	w    http.ResponseWriter
	r    *http.Request
	t    *words.Texts
	peer peer.Peer
	form url.Values
}

// read reads the form of a request that the page itself has sent, or returns why it is refused.
func (q *request) read() (status int, why string) {
	r := q.r
	if r.Method != http.MethodPost {
		q.w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, "only POST is served here"
	}
	if !isOwn(r) {
		return http.StatusForbidden, "only the live page itself may send this: a browser has to send Origin, equal to the page's, and " +
			"Sec-Fetch-Site: same-origin, which it does over HTTPS and for localhost"
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/x-www-form-urlencoded" {
		return http.StatusUnsupportedMediaType, "the body must be application/x-www-form-urlencoded"
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBodyBytes+1))
	if err == nil && len(body) > maxBodyBytes {
		return http.StatusRequestEntityTooLarge, "the body is too large"
	}
	if err == nil {
		q.form, err = url.ParseQuery(string(body))
	}
	if err != nil {
		return http.StatusBadRequest, "the body cannot be read"
	}
	if q.form.Get("lang") == "zh" {
		q.t = q.chinese
	}
	return 0, ""
}

// isOwn reports whether a browser says that the page of this address sent the request. A proxy before it may
// end TLS; Sec-Fetch-Site compares the schemes that the browser sees.
func isOwn(r *http.Request) bool {
	site, origin := r.Header.Values("Sec-Fetch-Site"), r.Header.Values("Origin")
	if !slices.Equal(site, []string{"same-origin"}) || len(origin) != 1 || r.Host == "" {
		return false
	}
	return origin[0] == "https://"+r.Host || r.TLS == nil && origin[0] == "http://"+r.Host
}

func peerOf(r *http.Request) peer.Peer {
	p := peer.Peer{Addr: r.RemoteAddr, TLS: r.TLS != nil, Door: peer.HTTP}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		p.LocalAddr = local.String()
	}
	return p
}

// logged is the message of the audit's lines.
const logged = "page action"

// Question asks to confirm an action.
type Question struct {
	Token   string      `json:"token"` // to be sent once as confirm
	Title   string      `json:"title"`
	Entries [][2]string `json:"entries"`
	Command string      `json:"command"` // to be executed
	Yes     string      `json:"yes"`
	No      string      `json:"no"`
}

// Outcome is that of an action.
type Outcome struct {
	Text   string
	Failed bool
}

// answer is what a script is told.
type answer struct {
	User  string    `json:"user,omitempty"`
	Ask   *Question `json:"ask,omitempty"`
	Done  string    `json:"done,omitempty"`
	Error string    `json:"error,omitempty"`

	problem string // of signing in
}

func (q *request) wantsJSON() bool {
	return strings.Contains(q.r.Header.Get("Accept"), "application/json")
}

// answer answers a script, or has the page show it to a browser without.
func (q *request) answer(status int, a answer) {
	if q.wantsJSON() {
		q.w.Header().Set("Content-Type", "application/json")
		q.w.WriteHeader(status)
		_ = json.NewEncoder(q.w).Encode(a)
		return
	}
	var outcome *Outcome
	if text := a.Done + a.Error; text != "" {
		outcome = &Outcome{Text: text, Failed: a.Error != ""}
	}
	q.sessions.show(tokenOf(q.r), a.Ask, outcome, q.config.Now())
	back := q.r.URL.Query() // of the page, which the form's address repeats
	back.Del("signin")
	if a.problem != "" {
		back.Set("signin", a.problem)
	}
	q.w.Header().Set("Location", "/?"+back.Encode())
	q.w.WriteHeader(http.StatusSeeOther)
}

// refuse answers what the page has not sent.
func (q *request) refuse(status int, why string) {
	if count := q.refused.Due(q.config.Now()); count > 0 {
		q.config.Log.Info(logged, "client", q.peer.Addr, "result", "refused", "reason", why, "count", count)
	}
	if q.wantsJSON() {
		q.answer(status, answer{Error: why})
		return
	}
	http.Error(q.w, why, status)
}

// State is what the page shows to a browser.
type State struct {
	User     string // empty unless signed in
	Problem  string // of signing in, for the function of this name
	Question *Question
	Outcome  *Outcome
	// IsTrusted reports whether the browser says where a request comes from, without which no action is
	// executed.
	IsTrusted bool
	// HasUsers reports whether there is a user who can sign in.
	HasUsers bool
}

// State returns what the page shows. Only one that takes an outcome is given it.
func (h *Handler) State(r *http.Request, takes bool) State {
	s := State{Problem: r.URL.Query().Get("signin"), IsTrusted: r.Header.Get("Sec-Fetch-Site") != "", HasUsers: h.config.Users.AnyPassword()}
	if token := tokenOf(r); token != "" {
		s.User, s.Question, s.Outcome = h.sessions.look(token, takes, h.config.Now())
	}
	return s
}
