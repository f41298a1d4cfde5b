package actions

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

func TestSignIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		for _, tt := range []struct {
			name, password string
			want           string // the error; empty for none
		}{
			{"my-passphrase", "", "Wrong name"},
			{"ann", "secret", ""},
			{"default", "pw", ""},
			{"ann", "wrong", "Wrong name or password, or the user is disabled."},
			{"ann", "", "Wrong name"},
			{"nobody", "secret", "Wrong name"},
			{"", "pw", "Wrong name"},
			{"gone", "secret", "Wrong name"},
			{"open", "", "This user has no password, so anybody could act as it. Give it one in --aclfile, and send ACL LOAD or SIGHUP;"},
			{"open", "any", "This user has no password"},
			{strings.Repeat("n", 20_000), "secret", "Wrong name"},
		} {
			b := browser{house: h}
			code, a := b.send(t, SignInPath, "name", tt.name, "password", tt.password)
			if (code == 200) != (tt.want == "") || !strings.HasPrefix(a.Error, tt.want) || (b.cookie != nil) != (tt.want == "") {
				t.Errorf("%.20s, %q: %d, %+v", tt.name, tt.password, code, a)
			}
		}
		if got := h.say(t, "ACL LOG\r\n"); strings.Count(got, "reason\r\n$4\r\nauth") == 0 {
			t.Errorf("ACL LOG: %q", got)
		}
		log := h.log.String()
		if strings.Contains(log, "secret") || strings.Contains(log, "passphrase") || strings.Contains(log, "any") || strings.Count(log, "result=ok") != 2 || strings.Count(log, "result=wrong") != 1 {
			t.Errorf("the log: %s", log)
		}
	})
}

// TestFloodOfSignIns: wrong passwords take longer and longer, and a host's few at once keep others out of
// nothing.
func TestFloodOfSignIns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		const guesses = 40
		var mu sync.Mutex
		codes := map[int]int{}
		var all sync.WaitGroup
		began := time.Now()
		for range guesses {
			all.Go(func() {
				w := h.serve(post(SignInPath, "name", "ann", "password", "guess"))
				mu.Lock()
				defer mu.Unlock()
				codes[w.Code]++
			})
		}
		synctest.Wait()
		r := post(SignInPath, "name", "ann", "password", "secret")
		r.RemoteAddr = "198.51.100.7:1"
		if w := h.serve(r); w.Code != 200 {
			t.Errorf("another host meanwhile: %d, %s", w.Code, w.Body)
		}
		if w := h.serve(post(SignInPath, "name", "bob", "password", "bobs")); w.Code != 200 {
			t.Errorf("another user of the host meanwhile: %d, %s", w.Code, w.Body)
		}
		all.Wait()
		if codes[http.StatusForbidden] != maxGuestsPerName || codes[http.StatusTooManyRequests] != guesses-maxGuestsPerName {
			t.Errorf("answers by status: %v", codes)
		}
		if took := time.Since(began); took < 50*time.Millisecond {
			t.Errorf("wrong passwords were answered after %s", took)
		}
		for range 6 {
			h.serve(post(SignInPath, "name", "ann", "password", "guess"))
		}
		began = time.Now()
		h.serve(post(SignInPath, "name", "ann", "password", "guess"))
		if took := time.Since(began); took < 1600*time.Millisecond {
			t.Errorf("the ninth was answered after %s", took)
		}
		if got := strings.Count(h.log.String(), "\n"); got > 4 {
			t.Errorf("the log has %d lines: %s", got, &h.log)
		}
	})
}

// TestGuestsAreBounded: in all, and those of a host and of a name from it. Who leaves makes room.
func TestGuestsAreBounded(t *testing.T) {
	t.Parallel()
	var g guests
	for range 2 {
		var in []guest
		for i := range 2 * maxGuests {
			of := guest{strconv.Itoa(i / (2 * maxGuestsPerHost)), strconv.Itoa(i % (2 * maxGuestsPerHost))}
			if g.enter(of) {
				in = append(in, of)
			}
		}
		hosts := map[string]int{}
		for _, of := range in {
			hosts[of.host]++
		}
		if len(in) != maxGuests || len(hosts) != maxGuests/maxGuestsPerHost || hosts["0"] != maxGuestsPerHost {
			t.Errorf("%d guests of %d hosts, %d of the first", len(in), len(hosts), hosts["0"])
		}
		if g.enter(guest{"more", ""}) {
			t.Error("sign-ins are not bounded")
		}
		for _, of := range in {
			g.leave(of)
		}
		if len(g.in) != 0 {
			t.Errorf("all have left: %+v", &g)
		}
	}
}

// TestFloodOfNames: wrong passwords of one host under ever new names, whose connections are closed at once,
// keep no other host out.
func TestFloodOfNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		gone, leave := context.WithCancel(t.Context())
		leave()
		var tried atomic.Int32
		var all sync.WaitGroup
		for i := range 2 * maxGuests {
			all.Go(func() {
				if h.serve(post(SignInPath, "name", strconv.Itoa(i), "password", "guess").WithContext(gone)).Code == http.StatusForbidden {
					tried.Add(1)
				}
			})
		}
		synctest.Wait()
		r := post(SignInPath, "name", "ann", "password", "secret")
		r.RemoteAddr = "198.51.100.7:1"
		if w := h.serve(r); w.Code != http.StatusOK {
			t.Errorf("another host meanwhile: %d, %s", w.Code, w.Body)
		}
		all.Wait()
		if n := tried.Load(); n != maxGuestsPerHost {
			t.Errorf("%d passwords were tried at once", n)
		}
		if w := h.serve(post(SignInPath, "name", "ann", "password", "secret")); w.Code != http.StatusOK {
			t.Errorf("the same host afterwards: %d, %s", w.Code, w.Body)
		}
	})
}

// TestEndOfSessions: by time, and by any change after which the user could not sign in again.
func TestEndOfSessions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		do    func(t *testing.T, h *house, ann *browser)
		still bool
	}{
		{"nothing", func(*testing.T, *house, *browser) {}, true},
		{"almost idle", func(_ *testing.T, h *house, _ *browser) { h.Clock.Advance(int64(idleTime)) }, true},
		{"idle", func(_ *testing.T, h *house, _ *browser) { h.Clock.Advance(int64(idleTime) + 1) }, false},
		{"looked at", func(_ *testing.T, h *house, ann *browser) {
			h.Clock.Advance(int64(idleTime))
			r := httptest.NewRequest(http.MethodGet, "/live.json", nil)
			r.Host = "localhost:9380"
			r.AddCookie(ann.cookie)
			if user := h.State(r, false).User; user != "ann" {
				t.Errorf("the page shows %q", user)
			}
			h.Clock.Advance(1)
		}, false},
		{"used for long", func(t *testing.T, h *house, ann *browser) {
			for range lifeTime / idleTime {
				h.Clock.Advance(int64(idleTime))
				ann.send(t, ActPath, "action", Reset, "key", "a")
			}
		}, true},
		{"used for too long", func(t *testing.T, h *house, ann *browser) {
			for range lifeTime / idleTime {
				h.Clock.Advance(int64(idleTime))
				ann.send(t, ActPath, "action", Reset, "key", "a")
			}
			h.Clock.Advance(1)
		}, false},
		{"signed out", func(t *testing.T, _ *house, ann *browser) {
			token := ann.cookie
			ann.send(t, SignOutPath)
			ann.cookie = token // of a copy
		}, false},
		{"signed in again", func(t *testing.T, _ *house, ann *browser) {
			token := ann.cookie
			ann.send(t, SignInPath, "name", "ann", "password", "secret")
			ann.cookie = token
		}, false},
		{"another password", func(t *testing.T, h *house, _ *browser) {
			h.load(t, strings.Replace(users, "ann on >secret", "ann on >new", 1))
		}, false},
		{"a further password", func(t *testing.T, h *house, _ *browser) {
			h.load(t, strings.Replace(users, "ann on", "ann on >new", 1))
		}, true},
		{"no password", func(t *testing.T, h *house, _ *browser) {
			h.load(t, strings.Replace(users, "ann on >secret", "ann on nopass", 1))
		}, false},
		{"disabled", func(t *testing.T, h *house, _ *browser) { h.load(t, strings.Replace(users, "ann on", "ann off", 1)) }, false},
		{"deleted", func(t *testing.T, h *house, _ *browser) { h.load(t, strings.Replace(users, "user ann", "user eve", 1)) }, false},
		{"deleted and made anew", func(t *testing.T, h *house, _ *browser) {
			h.load(t, strings.Replace(users, "user ann", "user eve", 1))
			h.load(t, users)
		}, false},
		{"the same aclfile", func(t *testing.T, h *house, _ *browser) { h.load(t, users) }, true},
		{"many others of the user", func(t *testing.T, h *house, _ *browser) {
			h.Clock.Advance(1)
			for range maxSessionsPerUser {
				h.signedIn(t, "ann", "secret")
			}
		}, false},
		{"many of another user", func(t *testing.T, h *house, _ *browser) {
			for range 2 * maxSessionsPerUser {
				h.signedIn(t, "default", "pw")
			}
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.say(t, "CL.THROTTLE a 4 1 60 5\r\n")
			ann := h.signedIn(t, "ann", "secret")
			_, asked := ann.send(t, ActPath, "action", Reset, "key", "a")
			tt.do(t, h, ann)
			code, _ := ann.send(t, ActPath, "action", Reset, "key", "a")
			if want := map[bool]int{true: 200, false: 401}[tt.still]; code != want {
				t.Errorf("a question: %d, want %d", code, want)
			}
			if _, a := ann.send(t, ActPath, "confirm", asked.Ask.Token); !tt.still && a.Done != "" {
				t.Errorf("a confirmation: %+v", a)
			}
		})
	}
}

// TestSessionsAreBounded: there is a most of all users together.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	h := open(t)
	var rules strings.Builder
	for i := range 2 * maxSessions {
		rules.WriteString("user u" + strings.Repeat("x", i) + " on >secret\n")
	}
	h.load(t, users+rules.String())
	for i := range 2 * maxSessions {
		h.signedIn(t, "u"+strings.Repeat("x", i), "secret")
	}
	if n := len(h.sessions.open); n != maxSessions {
		t.Errorf("%d sessions", n)
	}
	h.Clock.Advance(int64(idleTime) + 1)
	h.signedIn(t, "ann", "secret")
	if n := len(h.sessions.open); n != 1 {
		t.Errorf("%d sessions after a while", n)
	}
}

// TestWithoutScripts: the page asks and tells, an outcome once.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.say(t, "CL.THROTTLE a 4 1 60 5\r\n")
	b := &browser{house: h}
	send := func(path string, fields ...string) string {
		r := post(path+"?key=a&signin=wrong", fields...)
		r.Header.Set("Accept", "text/html,application/xhtml+xml")
		if b.cookie != nil {
			r.AddCookie(b.cookie)
		}
		w := h.serve(r)
		for _, c := range w.Result().Cookies() {
			b.cookie = c
		}
		if w.Code != http.StatusSeeOther {
			t.Errorf("%s %v: %d", path, fields, w.Code)
		}
		return w.Header().Get("Location")
	}
	state := func() State {
		r := httptest.NewRequest(http.MethodGet, "/?key=a", nil)
		r.Host = "localhost:9380"
		r.AddCookie(b.cookie)
		return h.State(r, true)
	}
	if to := send(SignInPath, "name", "ann", "password", "wrong"); to != "/?key=a&signin=wrong" {
		t.Errorf("a wrong password leads to %s", to)
	}
	if to := send(ActPath, "action", Reset, "key", "a"); to != "/?key=a&signin=ended" {
		t.Errorf("without a session: %s", to)
	}
	if to := send(SignInPath, "name", "ann", "password", "secret"); to != "/?key=a" || state().User != "ann" {
		t.Errorf("signed in: %s, %+v", to, state())
	}
	send(ActPath, "action", Reset, "key", "a")
	asked := state().Question
	if asked == nil || asked.Command != "CL.RESET a" || state().Question == nil {
		t.Fatalf("asked %+v, and no longer when loaded again", asked)
	}
	send(ActPath, "confirm", asked.Token)
	first, second := state(), state()
	if first.Question != nil || first.Outcome == nil || *first.Outcome != (Outcome{Text: "a is reset."}) || second.Outcome != nil {
		t.Errorf("then %+v and %+v", first, second)
	}
	send(ActPath, "confirm", asked.Token)
	if o := state().Outcome; o == nil || !o.Failed {
		t.Errorf("confirmed twice: %+v", o)
	}
	send(SignOutPath)
	if b.cookie.MaxAge >= 0 || state().User != "" {
		t.Errorf("signed out: %+v, %+v", b.cookie, state())
	}
}

// deaf is a session that never answers.
type deaf struct{ closed *atomic.Int32 }

func (deaf) Feed(_, out []byte) (int, []byte, peer.Status) { return 0, out, peer.Waiting }

func (d deaf) Close() { d.closed.Add(1) }

// TestNoAnswer: an outcome that is not known is told as such, and those that wait for theirs are few.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		ann := h.signedIn(t, "ann", "secret")
		ask := func() string {
			_, a := ann.send(t, ActPath, "action", Reset, "key", "a")
			return a.Ask.Token
		}
		var closed atomic.Int32
		var conns []peer.Conn
		h.config.NewSession = func(_ peer.Peer, c peer.Conn, _ *acl.User) Session {
			conns = append(conns, c)
			return deaf{&closed}
		}
		var all sync.WaitGroup
		for range maxRunning {
			token := ask()
			all.Go(func() {
				if code, a := ann.send(t, ActPath, "confirm", token); code != 504 || !strings.HasPrefix(a.Error, "There was no answer, so the outcome is not known") {
					t.Errorf("%d, %+v", code, a)
				}
			})
			synctest.Wait()
		}
		if code, a := ann.send(t, ActPath, "confirm", ask()); code != 503 || !strings.Contains(a.Error, "Nothing was done") {
			t.Errorf("one more: %d, %+v", code, a)
		}
		conns[0].Kill() // as CLIENT KILL does
		conns[0].Evict()
		all.Wait()
		if code, a := ann.send(t, SignInPath, "name", "ann", "password", "secret"); code != 503 || a.User != "" {
			t.Errorf("a sign-in: %d, %+v", code, a)
		}
		if n := closed.Load(); n != maxRunning+1 || strings.Count(h.log.String(), "result=unknown") != maxRunning+1 {
			t.Errorf("%d sessions closed; the log: %s", n, &h.log)
		}
	})
}
