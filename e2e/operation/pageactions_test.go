package operation

import (
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
)

const actingUsers = "user default on nopass ~* &* +@all\nuser ann on >secret ~* &* +@all\nuser bob on >bobs ~mine* +cl.reset\n"

// browser is one without scripts: it sends a page's forms.
type browser struct {
	http.Client
	site, user, password string // the password of the page itself, if any
}

func newBrowser(p *harness.Process) *browser {
	jar, _ := cookiejar.New(nil) // never fails
	return &browser{Client: http.Client{Jar: jar}, site: "http://" + p.Metrics}
}

func (b *browser) do(t *testing.T, method, path, body string, headers ...string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequest(method, b.site+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		r.Header.Set("Origin", b.site)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if b.user != "" {
		r.SetBasicAuth(b.user, b.password)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := b.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(got)
}

var (
	aForm    = regexp.MustCompile(`(?s)<form [^>]*data-act="([a-z-]+)"[^>]* action="([^"]*)"[^>]*>(.*?)</form>`)
	anInput  = regexp.MustCompile(`<(?:input|button)[^>]*>`)
	nameOf   = regexp.MustCompile(` name="([^"]*)"`)
	valueOf  = regexp.MustCompile(` value="([^"]*)"`)
	signedIn = []string{"name", "ann", "password", "secret"}
)

// submit sends the page's form of a name with some inputs filled in, and returns the next page.
func (b *browser) submit(t *testing.T, page, name string, filled ...string) (next string) {
	t.Helper()
	for _, m := range aForm.FindAllStringSubmatch(page, -1) {
		if m[1] != name {
			continue
		}
		fields := url.Values{}
		for _, input := range anInput.FindAllString(m[3], -1) {
			if n, v := nameOf.FindStringSubmatch(input), valueOf.FindStringSubmatch(input); n != nil && v != nil && n[1] != "cancel" {
				fields.Set(html.UnescapeString(n[1]), html.UnescapeString(v[1]))
			}
		}
		for i := 0; i < len(filled); i += 2 {
			fields.Set(filled[i], filled[i+1])
		}
		status, next := b.do(t, http.MethodPost, html.UnescapeString(m[2]), fields.Encode())
		if status != http.StatusOK {
			t.Fatalf("%s led to %d: %s", name, status, next)
		}
		return next
	}
	t.Fatalf("the page has no form %s; its drawer: %s", name, drawer(page))
	return ""
}

// replies expects that a reply begins so.
func replies(t *testing.T, nc net.Conn, command, want string) {
	t.Helper()
	if got := harness.Reply(t, nc, command); !strings.HasPrefix(got, want) {
		t.Errorf("%s: %q, want %q", command, got, want)
	}
}

func (b *browser) open(t *testing.T, path string) string {
	t.Helper()
	_, page := b.do(t, http.MethodGet, path, "")
	return page
}

// drawer returns the part of a page that tests are about.
func drawer(page string) string {
	_, from, _ := strings.Cut(page, `id="drawer"`)
	part, _, _ := strings.Cut(from, "<template")
	return part
}

func has(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, html.EscapeString(text)) {
			t.Errorf("the page lacks %q; its drawer: %s", text, drawer(page))
		}
	}
}

// TestPageActions: without scripts, a user signs in on the page and acts by its forms; MONITOR shows the
// commands, the log who gave them, and a restart keeps what they did.
func TestPageActions(t *testing.T) {
	file := harness.WriteFile(t, "limits:\n  filed: {rules: [{algorithm: fixed_window, max_count: 5, period: 1m}]}\n")
	dir := t.TempDir()
	args := []string{"--page-actions", "--aclfile", harness.WriteFile(t, actingUsers), "--limits-file", file, "--data-dir", dir}
	p := harness.StartServer(t, args...)
	nc, monitor := p.Dial(t), p.Dial(t)
	harness.Exchange(t, nc, "CL.LIMIT SET api 4 5 60\r\n", "+OK\r\n")
	replies(t, nc, "CL.THROTTLE \"a \" 4 1 3600 5", "*5 :0 :5 :0")
	b := newBrowser(p)
	const key = "/?key=%22a+%22"
	has(t, b.open(t, key), "Sign in as a user")
	has(t, b.submit(t, b.open(t, key), "signin", "name", "ann", "password", "no"), "Wrong name or password")
	page := b.submit(t, b.open(t, key), "signin", signedIn...)
	has(t, page, "Signed in as ann")
	harness.Exchange(t, monitor, "MONITOR\r\n", "+OK\r\n")
	page = b.submit(t, page, "reset")
	has(t, page, `CL.RESET "a "`)
	harness.Exchange(t, nc, "EXISTS \"a \"\r\n", ":1\r\n")
	has(t, b.submit(t, page, "confirm"), `"a " is reset.`)
	harness.Exchange(t, nc, "EXISTS \"a \"\r\n", ":0\r\n")
	if again := b.open(t, key); strings.Contains(again, "is reset") || strings.Contains(again, `data-act="confirm"`) {
		t.Errorf("the outcome is shown again: %s", drawer(again))
	}
	harness.Exchange(t, nc, "PING seen\r\n", "$4\r\nseen\r\n")
	if got := harness.ReadTo(t, monitor, "\"PING\" \"seen\"\r\n"); !regexp.MustCompile(` http:127\.0\.0\.1:\d+\] "CL\.RESET" "a "`).MatchString(got) {
		t.Errorf("MONITOR shows %q", got)
	}
	replies(t, nc, "CL.THROTTLE f 4 1 3600 5", "*5 :0 :5 :0")
	has(t, b.submit(t, b.submit(t, b.open(t, "/?key=f&by=throttle+4+1+3600"), "refund", "units", "3"), "confirm"), "Refunded to f: 3 of 5 units are available.")
	has(t, b.submit(t, b.submit(t, b.open(t, "/?limit=api&key=x"), "override", "policy", "DENY"), "confirm"), "The override of api:x holds.")
	has(t, b.submit(t, b.submit(t, b.open(t, "/?limit=api"), "override", "key", "y", "policy", "UNLIMITED", "seconds", "3600"), "confirm"), "The override of api:y holds.")
	has(t, b.submit(t, b.submit(t, b.open(t, "/?limit=api&key=y"), "end-override"), "confirm"), "The override of api:y has ended.")
	has(t, b.submit(t, b.submit(t, b.open(t, "/?limit=api"), "shadow"), "confirm"), "api is a shadow")
	has(t, b.open(t, "/?limit=filed"), "This limit is defined in --limits-file")
	if status, text := b.do(t, http.MethodPost, "/act", "action=shadow&limit=filed", "Accept", "application/json"); status != 200 {
		t.Errorf("a limit of the file: %d, %s", status, text)
	} else {
		token := regexp.MustCompile(`"token":"(\w+)"`).FindStringSubmatch(text)[1]
		if _, text = b.do(t, http.MethodPost, "/act", "confirm="+token, "Accept", "application/json"); !strings.Contains(text, "the limit 'filed' is defined in ") {
			t.Errorf("a limit of the file: %s", text)
		}
	}
	p.Logged(t, `"msg":"page action","action":"reset","user":"ann","client":"127.0.0.1:`)
	p.Logged(t, `"key":"\"a \"","db":0,"command":"CL.RESET \"a \"","result":"ok"`)
	p.Stop(t, syscall.SIGTERM)
	p = harness.StartServer(t, args...)
	nc = p.Dial(t)
	replies(t, nc, "CL.CHECK api x", "*5 :0 :0 :0") // denied, but for the shadow
	replies(t, nc, "CL.CHECK api z 9", "*5 :0")
	if b.site = "http://" + p.Metrics; strings.Contains(b.open(t, key), "Signed in") {
		t.Error("the session has outlived the server")
	}
}

// TestPageActionsOfOthers: who lacks a right, comes from another page, or has only the page's own password,
// changes nothing.
func TestPageActionsOfOthers(t *testing.T) {
	p := harness.StartServer(t, "--page-actions", "--aclfile", harness.WriteFile(t, actingUsers), "--metrics-token-file", harness.WriteFile(t, "page"))
	nc := p.Dial(t)
	replies(t, nc, "CL.THROTTLE a 4 1 3600 5", "*5 :0 :5 :0")
	b := newBrowser(p)
	b.user, b.password = "ops", "page"
	const reset = "action=reset&key=a"
	if status, text := b.do(t, http.MethodPost, "/act", reset, "Accept", "application/json"); status != 401 || !strings.Contains(text, "You are not signed in") {
		t.Errorf("by the page's password: %d, %s", status, text)
	}
	b.user, b.password = "ann", "secret"
	if status, _ := b.do(t, http.MethodPost, "/act", reset); status != 401 {
		t.Errorf("by HTTP Basic: %d", status)
	}
	b.user, b.password = "ops", "page"
	has(t, b.submit(t, b.open(t, "/?key=a"), "signin", "name", "default", "password", ""), "This user has no password")
	page := b.submit(t, b.open(t, "/?key=a"), "signin", "name", "bob", "password", "bobs")
	has(t, b.submit(t, b.submit(t, page, "reset"), "confirm"), "NOPERM this user has no permissions to access one of the keys used as arguments")
	for _, tt := range []struct {
		name    string
		headers []string
	}{
		{"another origin", []string{"Origin", "http://evil.example"}},
		{"another port of the host", []string{"Origin", "http://127.0.0.1:1"}},
		{"another site", []string{"Sec-Fetch-Site", "cross-site"}},
		{"an old browser", []string{"Sec-Fetch-Site", ""}},
	} {
		if status, text := b.do(t, http.MethodPost, "/act", reset, tt.headers...); status != 403 || !strings.Contains(text, "only the live page itself") {
			t.Errorf("%s: %d, %s", tt.name, status, text)
		}
	}
	if _, page := b.do(t, http.MethodGet, "/?key=a", "", "Sec-Fetch-Site", ""); !strings.Contains(page, "Actions require HTTPS or localhost") {
		t.Error("a browser that cannot act is not told")
	}
	if status, _ := b.do(t, http.MethodGet, "/act?"+reset, ""); status != 405 {
		t.Errorf("GET: %d", status)
	}
	harness.Exchange(t, nc, "EXISTS a\r\n", ":1\r\n")
	p.Logged(t, `"user":"bob","client":"127.0.0.1:`)
	p.Logged(t, `"command":"CL.RESET a","result":"NOPERM `)
}

// TestPageWithoutActions: by default there are none, and a replica has none.
func TestPageWithoutActions(t *testing.T) {
	p := harness.StartServer(t)
	b := newBrowser(p)
	for _, path := range []string{"/act", "/signin", "/signout"} {
		if status, _ := b.do(t, http.MethodPost, path, "action=reset&key=a"); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	if page := b.open(t, "/?key=a"); strings.Contains(page, `data-k="act-`) {
		t.Errorf("the page has forms: %s", drawer(page))
	}
	replica := harness.StartServer(t, "--page-actions", "--replica-of", "127.0.0.1:"+p.Port())
	has(t, newBrowser(replica).open(t, "/?key=a"), "This server is a read-only replica")
}

// TestPageActionsAreLoggedAtEveryLevel: who signed in, acted and was refused is on record.
func TestPageActionsAreLoggedAtEveryLevel(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"warn", "error"} {
		addr := processtest.FreeAddr(t)
		p := harness.Start(t, harness.Command(t, "--addr", "127.0.0.1:0", "--metrics-addr", addr, "--log-format", "json", "--log-level", level,
			"--page-actions", "--aclfile", harness.WriteFile(t, actingUsers)))
		p.Metrics = addr
		p.Eventually(t, "listen", func() bool {
			nc, err := net.Dial("tcp", addr)
			if err == nil {
				_ = nc.Close()
			}
			return err == nil || p.HasExited()
		})
		b := newBrowser(p)
		b.do(t, http.MethodPost, "/act", "action=reset&key=a", "Origin", "http://evil.example")
		has(t, b.submit(t, b.open(t, "/?key=a"), "signin", "name", "ann", "password", "no"), "Wrong name or password")
		page := b.submit(t, b.open(t, "/?key=a"), "signin", signedIn...)
		has(t, b.submit(t, b.submit(t, page, "reset"), "confirm"), "a has no state")
		b.submit(t, b.open(t, "/?key=a"), "signout")
		for _, want := range []string{
			`"level":"INFO","msg":"page action","client":"127.0.0.1:`, `"result":"refused","reason":"only the live page itself`,
			`"action":"signin","user":"ann","client":"127.0.0.1:`, `"result":"wrong","count":1`, `"action":"reset","user":"ann","client":"127.0.0.1:`,
			`"command":"CL.RESET a","result":"ok"`, `"action":"signout","user":"ann"`,
		} {
			p.Logged(t, want)
		}
		if log := p.Log.String(); strings.Contains(log, `"msg":"ready"`) {
			t.Errorf("at the level %s the log has other lines, too: %s", level, log)
		}
	}
}

// TestPageActionsWithoutUsers: where nobody can sign in, the log and the page say so and what to do, until
// somebody can.
func TestPageActionsWithoutUsers(t *testing.T) {
	const warning, nobody = "nobody can sign in on the live page", "No user has a password, so nobody can sign in to act here."
	shows := func(b *browser, hasForm bool) {
		t.Helper()
		for _, path := range []string{"/?key=a", "/?limit=api"} {
			page := b.open(t, path+"&lang=en")
			if got := strings.Contains(page, `data-act="signin"`); got != hasForm || strings.Contains(page, nobody) == hasForm {
				t.Errorf("%s: the form is shown: %t, want %t; its drawer: %s", path, got, hasForm, drawer(page))
			}
		}
		if page := b.open(t, "/?key=a&lang=zh"); strings.Contains(page, "没有任何用户设有密码，因此无人能登录操作。") == hasForm {
			t.Errorf("in Chinese: %s", drawer(page))
		}
	}
	file := harness.WriteFile(t, "limits:\n  api: {deny: true}\n")
	for _, args := range [][]string{nil, {"--aclfile", harness.WriteFile(t, "user default on nopass ~* +@all\nuser ann off >secret ~* +@all\nuser bob on ~* +@all\n")}} {
		p := harness.StartServer(t, append(args, "--page-actions", "--limits-file", file)...)
		p.Logged(t, warning)
		b := newBrowser(p)
		shows(b, false)
		if args == nil {
			harness.Exchange(t, p.Dial(t), "CONFIG SET requirepass secret\r\n", "+OK\r\n")
			shows(b, true)
			continue
		}
		load := func(users string) {
			if err := os.WriteFile(args[1], []byte(users), 0o600); err != nil {
				t.Fatal(err)
			}
			harness.Exchange(t, p.Dial(t), "ACL LOAD\r\n", "+OK\r\n")
		}
		load(actingUsers)
		shows(b, true)
		has(t, b.submit(t, b.open(t, "/?key=a&lang=en"), "signin", signedIn...), "Signed in as ann")
		load("user default on nopass ~* +@all\n")
		shows(b, false)
	}
	p := harness.StartServer(t, "--page-actions", "--aclfile", harness.WriteFile(t, actingUsers))
	if log := p.Logged(t, "ready"); strings.Contains(log, warning) {
		t.Errorf("with users it logs %s", log)
	}
}
