package actions

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/wire/acl"
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

// guest is somebody who signs in. The name is cut, as it may be long.
type guest struct{ host, name string }

// guests counts the sign-ins under way.
type guests struct {
	mu sync.Mutex // rank 90: guards in
	in map[circle]int
}

// circle is a bound, and the guests that it is for: all, those of a host, or those of a name from it.
type circle struct {
	most int
	of   guest
}

func (of guest) circles() [3]circle {
	return [3]circle{{maxGuests, guest{}}, {maxGuestsPerHost, guest{host: of.host}}, {maxGuestsPerName, of}}
}

func (g *guests) enter(of guest) (ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range of.circles() {
		if g.in[c] >= c.most {
			return false
		}
	}
	if g.in == nil {
		g.in = map[circle]int{}
	}
	for _, c := range of.circles() {
		g.in[c]++
	}
	return true
}

func (g *guests) leave(of guest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range of.circles() {
		if g.in[c]--; g.in[c] == 0 {
			delete(g.in, c)
		}
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
	reply, err := q.run(q.peer, nil, []string{"AUTH", name, password})
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
	q.sessions.end(tokenOf(q.r), q.config.Now())
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
	if user := q.sessions.end(tokenOf(q.r), q.config.Now()); user != nil {
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

// tokenOf returns the session's token from the cookie, or "".
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

// Bounds of sessions:
const (
	maxSessions        = 128
	maxSessionsPerUser = 8
	maxQuestions       = 8 // of a session that wait for their confirmation

	idleTime     = 15 * time.Minute // from the last action to the end of a session
	lifeTime     = 8 * time.Hour
	questionTime = 5 * time.Minute
)

// digest is the hash of a token, so that memory holds none that is worth reading.
type digest = [sha256.Size]byte

// sessions are those of users that have signed in.
type sessions struct {
	users *acl.Users

	mu   sync.Mutex // rank 85: guards all below
	open map[digest]*session
}

// session is a user's. A browser knows its token.
type session struct {
	user             *acl.User
	password         digest // with which the user signed in
	openedNs, usedNs int64
	questions        []question // oldest first
	shown            *Question  // by the page, for a browser without scripts
	outcome          *Outcome   // shown once, to such a browser
}

// question is an action that waits for its confirmation.
type question struct {
	token   digest
	askedNs int64
	action  action
}

// begin opens a session and returns its token. Beyond a bound it ends the one that has been idle for longest.
func (s *sessions) begin(user *acl.User, password digest, nowNs int64) (token string) {
	token = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.open, func(_ digest, of *session) bool { return !s.isValid(of, nowNs) })
	s.endOldestLocked(maxSessionsPerUser, func(of *session) bool { return of.user == user })
	s.endOldestLocked(maxSessions, func(*session) bool { return true })
	if s.open == nil {
		s.open = map[digest]*session{}
	}
	s.open[sha256.Sum256([]byte(token))] = &session{user: user, password: password, openedNs: nowNs, usedNs: nowNs}
	return token
}

// endOldestLocked makes room for another session of those that are meant.
func (s *sessions) endOldestLocked(most int, isMeant func(*session) bool) {
	var meant []digest
	for token, of := range s.open {
		if isMeant(of) {
			meant = append(meant, token)
		}
	}
	if len(meant) >= most {
		delete(s.open, slices.MinFunc(meant, func(a, b digest) int { return cmp.Compare(s.open[a].usedNs, s.open[b].usedNs) }))
	}
}

// isValid reports whether a session has not ended: by time, or as its user could not sign in again.
func (s *sessions) isValid(of *session, nowNs int64) bool {
	user := of.user
	return nowNs-of.usedNs <= int64(idleTime) && nowNs-of.openedNs <= int64(lifeTime) &&
		s.users.Lookup(user.Name()) == user && user.Enabled() && user.NeedsPassword() && user.HasPassword(of.password)
}

// findLocked returns a session, or nil.
func (s *sessions) findLocked(token string, nowNs int64) *session {
	id := sha256.Sum256([]byte(token))
	of := s.open[id]
	if of != nil && !s.isValid(of, nowNs) {
		delete(s.open, id)
		return nil
	}
	return of
}

// with does something with a session, if there is one.
func (s *sessions) with(token string, nowNs int64, do func(of *session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.findLocked(token, nowNs); of != nil {
		do(of)
	}
}

// use returns the user of a session, or nil, and starts its idle time anew.
func (s *sessions) use(token string, nowNs int64) (user *acl.User) {
	s.with(token, nowNs, func(of *session) {
		of.usedNs, of.shown, of.outcome = nowNs, nil, nil
		user = of.user
	})
	return user
}

// end ends a session, and returns its user or nil.
func (s *sessions) end(token string, nowNs int64) (user *acl.User) {
	s.with(token, nowNs, func(of *session) {
		delete(s.open, sha256.Sum256([]byte(token)))
		user = of.user
	})
	return user
}

// ask keeps an action until it is confirmed with the token that ask returns.
func (s *sessions) ask(token string, a action, nowNs int64) (confirmation string) {
	confirmation = rand.Text()
	s.with(token, nowNs, func(of *session) {
		if n := len(of.questions); n >= maxQuestions {
			of.questions = slices.Delete(of.questions, 0, n-maxQuestions+1)
		}
		of.questions = append(of.questions, question{sha256.Sum256([]byte(confirmation)), nowNs, a})
	})
	return confirmation
}

// confirmed returns the action of a session's question, once.
func (s *sessions) confirmed(token, confirmation string, nowNs int64) (a action, ok bool) {
	id := sha256.Sum256([]byte(confirmation))
	s.with(token, nowNs, func(of *session) {
		if i := slices.IndexFunc(of.questions, func(q question) bool { return q.token == id }); i >= 0 {
			a, ok = of.questions[i].action, nowNs-of.questions[i].askedNs <= int64(questionTime)
			of.questions = slices.Delete(of.questions, i, i+1)
		}
	})
	return a, ok
}

// show has the page show a question, or an outcome once.
func (s *sessions) show(token string, q *Question, o *Outcome, nowNs int64) {
	s.with(token, nowNs, func(of *session) { of.shown, of.outcome = q, o })
}

// look returns what the page shows. It does not count as use.
func (s *sessions) look(token string, takes bool, nowNs int64) (user string, q *Question, o *Outcome) {
	s.with(token, nowNs, func(of *session) {
		user, q, o = of.user.Name(), of.shown, of.outcome
		if takes {
			of.outcome = nil
		}
	})
	return user, q, o
}
