package actions

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/test/resptest"
)

// TestRequestsOfOthers: only a form or a script of the page itself is served.
func TestRequestsOfOthers(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, tt := range []struct {
		name   string
		change func(r *http.Request)
		status int
	}{
		{"the page", func(*http.Request) {}, 200},
		{"a proxy that ends TLS", func(r *http.Request) { r.Header.Set("Origin", "https://localhost:9380") }, 200},
		{"another origin", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		{"another port", func(r *http.Request) { r.Header.Set("Origin", "http://localhost:8080") }, 403},
		{"no origin", func(r *http.Request) { r.Header.Del("Origin") }, 403},
		{"a hidden origin", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		{"two origins", func(r *http.Request) { r.Header.Add("Origin", "http://localhost:9380") }, 403},
		{"no Sec-Fetch-Site", func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") }, 403},
		{"another site", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"the same site", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		{"an address that was typed", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, 403},
		{"HTTP on a page with TLS", func(r *http.Request) { r.TLS = &tls.ConnectionState{} }, 403},
		{"no host", func(r *http.Request) { r.Host = ""; r.Header.Set("Origin", "http://") }, 403},
		{"GET", func(r *http.Request) { r.Method = http.MethodGet }, 405},
		{"HEAD", func(r *http.Request) { r.Method = http.MethodHead }, 405},
		{"PUT", func(r *http.Request) { r.Method = http.MethodPut }, 405},
		{"a text", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		{"no type", func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		{"HTTP Basic in place of a form", func(r *http.Request) { r.Body = http.NoBody; r.SetBasicAuth("ann", "secret") }, 403},
		{"an escape that is none", func(r *http.Request) { r.Body = post(SignInPath).Body; r.URL.Path = "/elsewhere" }, 404},
	} {
		r := post(SignInPath, "name", "ann", "password", "secret")
		tt.change(r)
		w := h.serve(r)
		if w.Code != tt.status || (w.Result().Header.Get("Set-Cookie") != "") != (tt.status == 200) {
			t.Errorf("%s: %d, want %d: %s", tt.name, w.Code, tt.status, w.Body)
		}
	}
	large := h.serve(post(SignInPath, "name", "ann", "password", "secret", "more", strings.Repeat("x", maxBodyBytes)))
	broken := post(SignInPath)
	broken.Body = httptest.NewRequest(http.MethodPost, "/", strings.NewReader("name=%zz")).Body
	if got := h.serve(broken); large.Code != 413 || got.Code != 400 {
		t.Errorf("too large a body: %d; a broken one: %d", large.Code, got.Code)
	}
	if got := strings.Count(h.log.String(), "result=refused"); got != 1 {
		t.Errorf("%d lines about refusals within a second: %s", got, &h.log)
	}
}

// TestCookie: only its page's requests carry it.
func TestCookie(t *testing.T) {
	t.Parallel()
	h := open(t)
	for origin, want := range map[string]string{
		"http://localhost:9380":  "cellserver-9380=TOKEN; Path=/; HttpOnly; SameSite=Strict",
		"https://localhost:9380": "__Host-cellserver-9380=TOKEN; Path=/; HttpOnly; Secure; SameSite=Strict",
		"https://cell.example":   "__Host-cellserver=TOKEN; Path=/; HttpOnly; Secure; SameSite=Strict",
	} {
		r := post(SignInPath, "name", "ann", "password", "secret")
		r.Header.Set("Origin", origin)
		_, r.Host, _ = strings.Cut(origin, "://")
		w := h.serve(r)
		cookie := w.Result().Cookies()[0]
		if got := strings.Replace(w.Header().Get("Set-Cookie"), cookie.Value, "TOKEN", 1); got != want || len(cookie.Value) < 26 {
			t.Errorf("%s: %s, want %s", origin, got, want)
		}
		seen := httptest.NewRequest(http.MethodGet, "/", nil)
		seen.Host = r.Host
		seen.AddCookie(cookie)
		if user := h.State(seen, true).User; user != "ann" {
			t.Errorf("%s: the page shows %q", origin, user)
		}
		if seen.TLS = (&tls.ConnectionState{}); strings.HasPrefix(origin, "http:") && h.State(seen, true).User != "" {
			t.Error("over TLS a cookie without a prefix is taken, which another host may have set")
		}
	}
}

// TestActions: what a user confirms is a command of that user.
func TestActions(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.say(t, "CL.LIMIT SET api 9 10 60\r\n")
	ann := h.signedIn(t, "ann", "secret")
	for _, tt := range []struct {
		before string
		fields []string
		ask    string // the command
		done   string
		after  string // a command and its reply
		want   string
	}{
		{"CL.THROTTLE a 4 1 60 5\r\n", []string{"action", Reset, "key", "a"}, "CL.RESET a", "a is reset.", "EXISTS a\r\n", ":0\r\n"},
		{"", []string{"action", Reset, "key", "a"}, "CL.RESET a", "There was nothing to reset: a has no state.", "", ""},
		{"SELECT 3\r\nCL.THROTTLE a 4 1 60 5\r\n", []string{"action", Reset, "key", "a", "db", "3"}, "CL.RESET a", "a is reset.", "SELECT 3\r\nEXISTS a\r\n", "+OK\r\n:0\r\n"},
		{"CL.THROTTLE \"\\x00 \" 4 1 60 5\r\n", []string{"action", Reset, "key", `"\x00 "`}, `CL.RESET "\x00 "`, `"\x00 " is reset.`, "DBSIZE\r\n", ":0\r\n"},
		{"CL.THROTTLE \"a b\" 4 1 60 5\r\n", []string{"action", Reset, "key", "a b"}, `CL.RESET "a b"`, "a b is reset.", "DBSIZE\r\n", ":0\r\n"},
		{"CL.THROTTLE \"\" 4 1 60 5\r\n", []string{"action", Reset, "key", `""`}, `CL.RESET ""`, `"" is reset.`, "DBSIZE\r\n", ":0\r\n"},
		{"CL.CHECK api x 7\r\n", []string{"action", Reset, "key", "x", "limit", "api"}, "CL.RESET api:x", "api:x is reset.", "EXISTS api:x\r\n", ":0\r\n"},
		{"CL.THROTTLE f 4 1 60 5\r\n", []string{"action", Refund, "key", "f", "of", limiter.Funnel.String() + " 4 1 60", "units", "2"}, "CL.REFUND f 4 1 60 2", "Refunded to f: 2 of 5 units are available.", "CL.PEEK f 4 1 60\r\n", resptest.Ints(0, 5, 2, -1, 180)},
		{"CL.FIXEDWINDOW w 5 60 5\r\n", []string{"action", Refund, "key", "w", "of", limiter.FixedWindow.String() + " 5 60", "units", "2"}, "CL.FIXEDWINDOW w 5 60 -2", "Refunded to w: 2 of 5 units are available.", "", ""},
		{"CL.SLIDINGWINDOW s 5 60 5 APPROX\r\n", []string{"action", Refund, "key", "s", "of", limiter.ApproxWindow.String() + " 5 60", "units", "2"}, "CL.SLIDINGWINDOW s 5 60 -2 APPROX", "Refunded to s: 2 of 5 units are available.", "", ""},
		{"CL.CHECK api y 9\r\n", []string{"action", Refund, "key", "y", "limit", "api", "units", "4"}, "CL.CHECK api y -4", "Refunded to api:y: 5 of 10 units are available.", "", ""},
		{"", []string{"action", Override, "key", "z", "limit", "api", "policy", "deny", "seconds", "60"}, "CL.LIMIT OVERRIDE api z deny EX 60", "The override of api:z holds.", "CL.CHECK api z\r\n", resptest.Ints(1, 0, 0, -1, 0)},
		{"", []string{"action", EndOverride, "key", "z", "limit", "api", "db", "3"}, "CL.LIMIT OVERRIDE api z DEL", "The override of api:z has ended.", "CL.CHECK api z 0\r\n", resptest.Ints(0, 10, 10, -1, 0)},
		{"", []string{"action", EndOverride, "key", "z", "limit", "api"}, "CL.LIMIT OVERRIDE api z DEL", "api:z had no override that was set by command.", "", ""},
		{"", []string{"action", Override, "key", "z", "limit", "api", "policy", "FUNNEL 4 1 60 FIXEDWINDOW 9 3600"}, "CL.LIMIT OVERRIDE api z FUNNEL 4 1 60 FIXEDWINDOW 9 3600", "The override of api:z holds.", "CL.CHECK api z 0\r\n", resptest.Ints(0, 5, 5, -1, 0)},
		{"", []string{"action", Shadow, "limit", "api"}, "CL.LIMIT SET api FUNNEL 9 10 60 SHADOW SAMERULES", "api is a shadow: it only counts.", "CL.CHECK api q 11\r\n", resptest.Ints(0, 10, 10, -1, 0)},
		{"", []string{"action", EndShadow, "limit", "api"}, "CL.LIMIT SET api FUNNEL 9 10 60 SAMERULES", "api is enforced.", "CL.CHECK api q 11\r\n", resptest.Ints(1, 10, 10, -1, 0)},
	} {
		if tt.before != "" {
			h.say(t, tt.before)
		}
		h.log.Reset()
		code, asked := ann.send(t, ActPath, tt.fields...)
		if code != 200 || asked.Ask == nil || asked.Ask.Command != tt.ask || asked.Ask.Entries[0] != [2]string{"As user", "ann"} {
			t.Errorf("%v: %d, %+v with %+v, want %s", tt.fields, code, asked, asked.Ask, tt.ask)
			continue
		}
		if h.log.Len() > 0 {
			t.Errorf("%v: before it is confirmed, the log has %s", tt.fields, &h.log)
		}
		code, done := ann.send(t, ActPath, "confirm", asked.Ask.Token)
		if code != 200 || done.Done != tt.done {
			t.Errorf("%s: %d, %+v, want %s", tt.ask, code, done, tt.done)
		}
		if tt.after == "" {
			continue
		}
		if got := h.say(t, tt.after); !strings.HasSuffix(got, tt.want) {
			t.Errorf("after %s: %q, want %q", tt.ask, got, tt.want)
		}
	}
}

// TestMistakes are told before anything is confirmed.
func TestMistakes(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.say(t, "CL.LIMIT SET api 9 10 60\r\n")
	ann := h.signedIn(t, "ann", "secret")
	for _, tt := range []struct {
		fields []string
		want   string
	}{
		{nil, "There is no such action."},
		{[]string{"action", "flush", "key", "a"}, "There is no such action."},
		{[]string{"action", Reset}, "There is no such action."},
		{[]string{"action", Reset, "key", ""}, "Enter a key"},
		{[]string{"action", Reset, "key", `"a`}, "must end with one"},
		{[]string{"action", Reset, "key", strings.Repeat("k", 4097)}, "longer than 4096 bytes"},
		{[]string{"action", Reset, "key", strings.Repeat("k", 4096), "limit", "api"}, "longer than 4092 bytes"},
		{[]string{"action", Reset, "key", "a", "db", "16"}, "from 0 to 15"},
		{[]string{"action", Reset, "key", "a", "db", "x"}, "from 0 to 15"},
		{[]string{"action", Reset, "key", "a", "limit", "nosuch"}, "There is no limit of this name."},
		{[]string{"action", Refund, "key", "a", "of", limiter.Funnel.String() + " 4 1 60"}, "Units must be"},
		{[]string{"action", Refund, "key", "a", "of", limiter.Funnel.String() + " 4 1 60", "units", "-1"}, "Units must be"},
		{[]string{"action", Refund, "key", "a", "of", limiter.Funnel.String() + " 4 1", "units", "1"}, "There is no such action."},
		{[]string{"action", Refund, "key", "a", "of", limiter.Funnel.String() + " 4 1 x", "units", "1"}, "There is no such action."},
		{[]string{"action", Refund, "key", "a", "of", limiter.Concurrency.String() + " 4", "units", "1"}, "There is no such action."},
		{[]string{"action", Refund, "key", "a", "units", "1"}, "There is no such action."},
		{[]string{"action", Override, "key", "a", "policy", "DENY"}, "There is no such action."},
		{[]string{"action", Override, "key", "a", "limit", "api", "policy", ""}, "a rule is missing"},
		{[]string{"action", Override, "key", "a", "limit", "api", "policy", "DEL"}, "unknown word 'DEL'"},
		{[]string{"action", Override, "key", "a", "limit", "api", "policy", "DENY EX 5"}, "Not understood: EX 5"},
		{[]string{"action", Override, "key", "a", "limit", "api", "policy", "DENY", "seconds", "soon"}, "Seconds must be"},
		{[]string{"action", Shadow, "key", "a"}, "There is no such action."},
	} {
		if code, a := ann.send(t, ActPath, tt.fields...); code != 400 || a.Ask != nil || !strings.Contains(a.Error, tt.want) {
			t.Errorf("%v: %d, %+v, want %q", tt.fields, code, a, tt.want)
		}
	}
}

// TestConfirmations: each is good for one session, one action, once, and for a while.
func TestConfirmations(t *testing.T) {
	t.Parallel()
	h := open(t)
	ann, other := h.signedIn(t, "ann", "secret"), h.signedIn(t, "ann", "secret")
	ask := func() string {
		_, a := ann.send(t, ActPath, "action", Reset, "key", "a")
		return a.Ask.Token
	}
	h.say(t, "CL.THROTTLE a 4 1 60 5\r\n")
	first := ask()
	refused := func(name string, by *browser, token string) {
		t.Helper()
		if code, a := by.send(t, ActPath, "confirm", token); code != 409 || a.Done != "" || !strings.HasPrefix(a.Error, "Nothing was done") {
			t.Errorf("%s: %d, %+v", name, code, a)
		}
	}
	refused("a wrong one", ann, "x")
	refused("another session", other, first)
	if got := h.say(t, "EXISTS a\r\n"); !strings.HasSuffix(got, ":1\r\n") {
		t.Errorf("a was reset: %q", got)
	}
	if code, a := ann.send(t, ActPath, "confirm", first); code != 200 || a.Done != "a is reset." {
		t.Errorf("the session's own: %d, %+v", code, a)
	}
	refused("a used one", ann, first)
	old := ask()
	h.Clock.Advance(int64(questionTime) + 1)
	refused("an old one", ann, old)
	canceled := ask()
	if code, a := ann.send(t, ActPath, "confirm", canceled, "cancel", "1"); code != 200 || a != (answer{}) {
		t.Errorf("canceled: %d, %+v", code, a)
	}
	refused("a canceled one", ann, canceled)
	many := ask()
	for range maxQuestions {
		ask()
	}
	refused("the first of many", ann, many)
}

// TestRightsAreTheCommands: a user without a right gets the command's error, and ACL LOG has it.
func TestRightsAreTheCommands(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.say(t, "CL.LIMIT SET api 9 10 60\r\nCL.THROTTLE a 4 1 60 5\r\nCL.THROTTLE mine 4 1 60 5\r\n")
	bob := h.signedIn(t, "bob", "bobs")
	for _, tt := range []struct {
		fields []string
		want   string
	}{
		{[]string{"action", Reset, "key", "mine"}, "mine is reset."},
		{[]string{"action", Reset, "key", "a"}, "NOPERM this user has no permissions to access one of the keys used as arguments"},
		{[]string{"action", Reset, "key", "mine", "db", "2"}, "NOPERM this user has no permissions to run the 'select' command"},
		{[]string{"action", Refund, "key", "a", "of", limiter.Funnel.String() + " 4 1 60", "units", "1"}, "NOPERM this user has no permissions to run the 'cl.refund' command"},
		{[]string{"action", Override, "key", "a", "limit", "api", "policy", "DENY"}, "NOPERM this user has no permissions to run the 'cl.limit|override' command"},
		{[]string{"action", Shadow, "limit", "api"}, "NOPERM this user has no permissions to run the 'cl.limit|set' command"},
	} {
		if code, a := bob.do(t, tt.fields...); a.Done+a.Error != tt.want || (code == 200) != (a.Done != "") {
			t.Errorf("%v: %d, %+v, want %s", tt.fields, code, a, tt.want)
		}
	}
	if got := h.say(t, "ACL LOG\r\n"); strings.Count(got, "username\r\n$3\r\nbob\r\n") != 5 {
		t.Errorf("ACL LOG: %q", got)
	}
	if got := h.say(t, "EXISTS a\r\n"); !strings.HasSuffix(got, ":1\r\n") {
		t.Errorf("a was reset: %q", got)
	}
	for _, line := range []string{
		`msg="page action" action=reset user=bob client=192.0.2.1:1234 key=mine db=0 command="CL.RESET mine" result=ok`,
		`msg="page action" action=refund user=bob client=192.0.2.1:1234 key=a db=0 units=1 command="CL.REFUND a 4 1 60 1" result="NOPERM `,
		`msg="page action" action=shadow user=bob client=192.0.2.1:1234 limit=api command="CL.LIMIT SET api FUNNEL 9 10 60 SHADOW SAMERULES" result="NOPERM `,
	} {
		if !strings.Contains(h.log.String(), line) {
			t.Errorf("the log lacks %s: %s", line, &h.log)
		}
	}
}

// TestRightsThatSuffice are those of docs/DEPLOY.md.
func TestRightsThatSuffice(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rights string
		fields []string
	}{
		{"+cl.reset", []string{"action", Reset, "key", "a"}},
		{"+cl.reset +select", []string{"action", Reset, "key", "a", "db", "3"}},
		{"+cl.reset +cl.refund", []string{"action", Refund, "key", "f", "of", limiter.Funnel.String() + " 4 1 60", "units", "2"}},
		{"+cl.reset +cl.fixedwindow", []string{"action", Refund, "key", "w", "of", limiter.FixedWindow.String() + " 5 60", "units", "2"}},
		{"+cl.reset +cl.check", []string{"action", Refund, "key", "y", "limit", "api", "units", "4"}},
		{"+cl.limit|override", []string{"action", Override, "key", "z", "limit", "api", "policy", "DENY"}},
		{"+cl.limit|override", []string{"action", EndOverride, "key", "z", "limit", "api"}},
		{"+cl.limit|set", []string{"action", Shadow, "limit", "api"}},
		{"+cl.limit|set", []string{"action", EndShadow, "limit", "api"}},
	} {
		h := open(t)
		h.say(t, "CL.LIMIT SET api 9 10 60\r\n")
		h.load(t, users+"user some on >secret ~* "+tt.rights+"\nuser less on >secret ~other* "+tt.rights+"\n")
		if code, a := h.signedIn(t, "some", "secret").do(t, tt.fields...); code != 200 {
			t.Errorf("%s: %v: %d, %+v", tt.rights, tt.fields, code, a)
		}
		if code, a := h.signedIn(t, "less", "secret").do(t, tt.fields...); code != 409 && tt.rights != "+cl.limit|set" || a.Error != "" && !strings.HasPrefix(a.Error, "NOPERM ") {
			t.Errorf("another key, %s: %v: %d, %+v", tt.rights, tt.fields, code, a)
		}
	}
}

// TestRulesThatChanged: a shadow is of the rules that the user saw.
func TestRulesThatChanged(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.say(t, "CL.LIMIT SET api 9 10 60\r\n")
	ann := h.signedIn(t, "ann", "secret")
	_, asked := ann.send(t, ActPath, "action", Shadow, "limit", "api")
	h.say(t, "CL.LIMIT SET api 1 1 60\r\n")
	if code, a := ann.send(t, ActPath, "confirm", asked.Ask.Token); code != 409 || a.Error != "ERR the limit 'api' does not have these rules; nothing was changed" {
		t.Errorf("%d, %+v", code, a)
	}
	if l := h.Config.NamedLimits.Lookup([]byte("api")); l.Shadow || l.Rules[0].Capacity != 2 {
		t.Errorf("the limit is %+v", l.Definition)
	}
}
