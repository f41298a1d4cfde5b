package actions

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

const users = "user default on >pw ~* +@all\nuser ann on >secret ~* +@all\nuser bob on >bobs ~mine* +cl.throttle +cl.reset\nuser open on nopass ~* +@all\nuser gone off >secret ~* +@all\n"

// house is a handler with an engine of its own.
type house struct {
	*commandstest.Harness
	*Handler
	log bytes.Buffer
}

func open(t *testing.T) *house {
	t.Helper()
	h := &house{Harness: commandstest.New(func(c *commands.Config) {
		c.NamedLimits = namedlimit.New(namedlimit.Config{Now: c.Now, Log: slog.New(slog.DiscardHandler)})
	})}
	h.load(t, users)
	h.Handler = New(Config{
		NewSession: func(p peer.Peer, c peer.Conn, user *acl.User) Session { return h.Engine.NewSessionAs(p, c, user) },
		Users:      h.Config.Users, Limit: h.Config.NamedLimits.Lookup, Reading: funnel.Burst,
		Databases: 16, MaxKeyBytes: 4096, Now: h.Clock.Now, Log: slog.New(slog.NewTextHandler(&h.log, nil)),
	})
	return h
}

// load replaces the users.
func (h *house) load(t *testing.T, rules string) {
	t.Helper()
	if _, err := h.Config.Users.Load("", rules); err != nil {
		t.Fatal(err)
	}
}

// say has a client with all rights send commands, and returns their replies.
func (h *house) say(t *testing.T, commands string) string {
	t.Helper()
	s := h.Session()
	defer s.Close()
	replies, _, _ := commandstest.Converse(t, s, "AUTH pw\r\n"+commands)
	return replies
}

// post returns a request as a browser's script sends it from the page.
func post(path string, fields ...string) *http.Request {
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Host = "localhost:9380"
	for name, value := range map[string]string{
		"Origin": "http://localhost:9380", "Sec-Fetch-Site": "same-origin", "Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded",
	} {
		r.Header.Set(name, value)
	}
	return r
}

func (h *house) serve(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func told(t *testing.T, w *httptest.ResponseRecorder) (a answer) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatalf("%d, %q: %v", w.Code, w.Body, err)
	}
	return a
}

// browser keeps a cookie.
type browser struct {
	*house
	cookie *http.Cookie
}

func (b *browser) send(t *testing.T, path string, fields ...string) (int, answer) {
	t.Helper()
	r := post(path, fields...)
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	w := b.serve(r)
	for _, c := range w.Result().Cookies() {
		b.cookie = c
	}
	return w.Code, told(t, w)
}

func (h *house) signedIn(t *testing.T, name, password string) *browser {
	t.Helper()
	b := &browser{house: h}
	if code, a := b.send(t, SignInPath, "name", name, "password", password); code != http.StatusOK || a.User != name {
		t.Fatalf("%s: %d, %+v", name, code, a)
	}
	return b
}

// do asks for an action and confirms it.
func (b *browser) do(t *testing.T, fields ...string) (int, answer) {
	t.Helper()
	code, a := b.send(t, ActPath, fields...)
	if a.Ask == nil {
		return code, a
	}
	return b.send(t, ActPath, "confirm", a.Ask.Token)
}
