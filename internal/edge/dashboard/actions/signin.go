package actions

import (
	"crypto/sha256"
	"net"
	"net/http"
	"strings"
	"sync"

	"cellserver/internal/edge/dashboard/words"
)

// Problems of signing in, by their names in an address:
const (
	problemWrong    = "wrong"
	problemOpen     = "open"
	problemBusy     = "busy"
	problemUnknown  = "unknown"
	problemSignedIn = "ended"
)

// Problem returns the text of a problem of signing in by its name in an address, or "".
func Problem(t *words.Texts, name string) string {
	return map[string]string{
		problemWrong: t.SignInWrong, problemOpen: t.SignInOpen, problemBusy: t.SignInBusy, problemUnknown: t.SignInFailed, problemSignedIn: t.SignInEnded,
	}[name]
}

// Bounds of sign-ins under way. A wrong password is answered late, which slows down guessing.
const (
	maxGuests = 64
	// maxGuestsPerHost is wide, as everybody behind a proxy is one host. A closed connection counts until its
	// answer is due: else closing it early would end the pause.
	maxGuestsPerHost = 16
	// maxGuestsPerName bounds those of one name from one host, which may be a proxy.
	maxGuestsPerName = 2
)

// guest is who signs in. The name is cut, as it may be long.
type guest struct{ host, name string }

// guests counts the sign-ins under way.
type guests struct {
	mu     sync.Mutex // rank 90: guards all below
	all    int
	byHost map[string]int
	byName map[guest]int
}

func (g *guests) enter(of guest) (ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all >= maxGuests || g.byHost[of.host] >= maxGuestsPerHost || g.byName[of] >= maxGuestsPerName {
		return false
	}
	if g.byName == nil {
		g.byHost, g.byName = map[string]int{}, map[guest]int{}
	}
	g.all++
	g.byHost[of.host]++
	g.byName[of]++
	return true
}

func (g *guests) leave(of guest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all--
	if g.byHost[of.host]--; g.byHost[of.host] == 0 {
		delete(g.byHost, of.host)
	}
	if g.byName[of]--; g.byName[of] == 0 {
		delete(g.byName, of)
	}
}

// signIn checks a name and a password by AUTH, with its delays and log.
func (q *request) signIn() {
	name, password := q.form.Get("name"), q.form.Get("password")
	of := guest{q.peer.Network(), name[:min(len(name), 64)]}
	if !q.guests.enter(of) {
		q.notSignedIn(http.StatusTooManyRequests, problemBusy, name)
		return
	}
	defer q.guests.leave(of)
	user := q.config.Users.Lookup(name)
	if user != nil && user.Enabled() && !user.NeedsPassword() {
		q.notSignedIn(http.StatusForbidden, problemOpen, name)
		return
	}
	reply, err := q.run(q.peer, nil, [][]byte{[]byte("AUTH"), []byte(name), []byte(password)})
	switch {
	case err != nil:
		q.notSignedIn(http.StatusServiceUnavailable, problemUnknown, name)
		return
	case failure(reply) != "":
		q.notSignedIn(http.StatusForbidden, problemWrong, name)
		return
	}
	sum := sha256.Sum256([]byte(password))
	if user = q.config.Users.Lookup(name); user == nil || !user.HasPassword(sum) { // changed meanwhile
		q.notSignedIn(http.StatusForbidden, problemWrong, name)
		return
	}
	q.sessions.end(q.token(), q.config.Now())
	http.SetCookie(q.w, q.cookie(q.sessions.begin(user, sum, q.config.Now()), 0))
	q.config.Log.Info(logged, "action", "signin", "user", name, "client", q.peer.Addr, "result", "ok")
	q.answer(http.StatusOK, answer{User: name})
}

func (q *request) notSignedIn(status int, problem, name string) {
	if count := q.wrong.Due(q.config.Now()); count > 0 {
		if q.config.Users.Lookup(name) == nil {
			name = "" // it may be a password in the wrong field
		}
		q.config.Log.Info(logged, "action", "signin", "user", name, "client", q.peer.Addr, "result", problem, "count", count)
	}
	q.answer(status, answer{Error: Problem(q.t, problem), problem: problem})
}

func (q *request) signOut() {
	if user := q.sessions.end(q.token(), q.config.Now()); user != nil {
		q.config.Log.Info(logged, "action", "signout", "user", user.Name(), "client", q.peer.Addr, "result", "ok")
	}
	http.SetCookie(q.w, q.cookie("", -1))
	q.answer(http.StatusOK, answer{})
}

// cookie returns the session's cookie. It is Secure where the browser speaks TLS, be it to a proxy.
func (q *request) cookie(token string, maxAge int) *http.Cookie {
	secure := strings.HasPrefix(q.r.Header.Get("Origin"), "https:")
	return &http.Cookie{
		Name: cookieName(q.r, secure), Value: token, MaxAge: maxAge,
		Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
}

// cookieName has the port, as browsers send a host's cookies to all of its ports.
func cookieName(r *http.Request, secure bool) string {
	name := "cellserver"
	if _, port, err := net.SplitHostPort(r.Host); err == nil && strings.Trim(port, "0123456789") == "" {
		name += "-" + port
	}
	if secure {
		name = "__Host-" + name
	}
	return name
}

// token returns the session's token from the cookie, or "".
func (q *request) token() string { return tokenOf(q.r) }

func tokenOf(r *http.Request) string {
	c, err := r.Cookie(cookieName(r, true))
	if err != nil && r.TLS == nil && !strings.HasPrefix(r.Header.Get("Origin"), "https:") {
		c, err = r.Cookie(cookieName(r, false))
	}
	if err != nil {
		return ""
	}
	return c.Value
}
