package dashboard

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/actions"
	"cellserver/internal/edge/dashboard/ask"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

// actingPage is a page with actions and a limit.
func actingPage(t *testing.T, change func(s *Source)) *Page {
	t.Helper()
	limits := namedlimit.New(namedlimit.Config{Log: slog.New(slog.DiscardHandler)})
	if err := limits.Set(namedlimit.Definition{Name: "api", Near: 1, Policy: namedlimit.Policy{Rules: []namedlimit.Rule{{Capacity: 5, Count: 1, PeriodSec: 60}}}}); err != nil {
		t.Fatal(err)
	}
	s := testSource(nil)
	s.State = func(int64, store.Key) (limiter.State, bool, error) { return limiter.State{}, false, nil }
	s.Limits = limits.All
	users := acl.NewUsers(catalog.New().ForRules())
	users.SetDefaultPassword("secret")
	s.Actions = actions.New(actions.Config{Users: users, Now: s.Now, Limit: limits.Lookup})
	change(&s)
	return New(s)
}

// TestActionsOfThePage: a browser is shown how to act, or why it cannot.
func TestActionsOfThePage(t *testing.T) {
	replica := func(s *Source) {
		s.Replication = func() replicas.Status { return replicas.Status{Role: replicas.Replica} }
	}
	nothing := func(*Source) {}
	for _, tt := range []struct {
		name   string
		change func(s *Source)
		query  string
		header []string
		want   string // empty for no actions at all
	}{
		{"no key", nothing, "", nil, ""},
		{"no actions", func(s *Source) { s.Actions = nil }, "key=a", []string{"Sec-Fetch-Site", "none"}, ""},
		{"a key", nothing, "key=a", []string{"Sec-Fetch-Site", "none"}, `action="/signin?key=a"`},
		{"a key of a limit", nothing, "key=a&limit=api&lang=zh", []string{"Sec-Fetch-Site", "same-origin"}, `action="/signin?key=a&amp;lang=zh&amp;limit=api"`},
		{"a limit", nothing, "limit=api&signin=open", []string{"Sec-Fetch-Site", "same-origin"}, "This user has no password"},
		{"a text of an address", nothing, "limit=api&signin=Call+us", []string{"Sec-Fetch-Site", "same-origin"}, "Sign in as a user"},
		{"HTTP to another host", nothing, "key=a", nil, "Actions require HTTPS or localhost"},
		{"no user with a password", func(s *Source) { s.Actions = actions.New(actions.Config{Users: &acl.Users{}, Now: s.Now}) }, "key=a", []string{"Sec-Fetch-Site", "none"}, "No user has a password, so nobody can sign in"},
		{"a replica", replica, "key=a", []string{"Sec-Fetch-Site", "none"}, "This server is a read-only replica"},
		{"a cookie that is none", nothing, "key=a", []string{"Sec-Fetch-Site", "none", "Cookie", "cellserver=x; __Host-cellserver=y"}, "Sign in as a user"},
	} {
		page := get(t, actingPage(t, tt.change), "/?"+tt.query, append(tt.header, "Accept-Language", "en")...).Body.String()
		if got := strings.Contains(page, `<section class="acts"`); got != (tt.want != "") || !strings.Contains(page, tt.want) {
			t.Errorf("%s: actions %t, and the page lacks %q", tt.name, got, tt.want)
		}
		noMarkup(t, page)
		if strings.Contains(page, "Call us") {
			t.Errorf("%s: the page shows a text of its address", tt.name)
		}
	}
}

// keyOf is a key that can be acted on.
func keyOf(name string, db uint16, kind limiter.Kind, limit *namedlimit.Limit) *ask.Answer {
	a := &ask.Answer{Kind: kind, Limit: limit}
	a.Name, a.DB = []byte(name), db
	return a
}

// TestFormsOfTheirUser: the forms name what the drawer shows.
func TestFormsOfTheirUser(t *testing.T) {
	p := actingPage(t, func(*Source) {})
	r := newRequest("/?key=api:x%22&lang=en&filter=z&by=throttle+4+1+60")
	r.Method = http.MethodGet
	v := p.view(r)
	v.acting = actions.State{User: "ann<", IsTrusted: true, Question: &actions.Question{
		Token: "tok", Title: "Reset <img>?", Entries: [][2]string{{"As user", "<b>"}}, Command: "CL.RESET <x>", Yes: "Reset", No: "Cancel",
	}, Outcome: &actions.Outcome{Text: "<script>", Failed: true}}
	for name, tt := range map[string]struct {
		target *ask.Answer
		want   []string
		lacks  []string
	}{
		"a limit's key": {keyOf(`api:x"`, 3, limiter.Named, p.view(newRequest("/")).asker.LimitOf("api")),
			[]string{`name="key" value="x&#34;"`, `name="db" value="3"`, `name="limit" value="api"`, `data-act="end-override"`, `data-act="refund"`}, nil},
		"any key": {keyOf("\x00", 0, limiter.Funnel, nil), []string{`name="key" value="&#34;\x00&#34;"`, `data-act="reset"`}, []string{"override"}},
		"a value": {keyOf("v", 0, limiter.Value, nil), []string{`data-act="reset"`}, []string{`data-act="refund"`}},
	} {
		html, err := render(v.keyActions(tt.target))
		if err != nil {
			t.Fatal(err)
		}
		wantText(t, html, append(tt.want, "Signed in as ann&lt;", `name="confirm" value="tok"`, "Reset &lt;img&gt;?", "&lt;script&gt;", "filter=z")...)
		lacksText(t, html, append(tt.lacks, "<img", "<b>")...)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	one, _ := render(v.keyActions(keyOf("a", 0, limiter.Funnel, nil)))
	other, _ := render(v.keyActions(keyOf("a", 1, limiter.Funnel, nil)))
	wantText(t, one, `data-k="acts 0:a"`)
	wantText(t, other, `data-k="acts 1:a"`) // which keeps nothing that was typed for the first
	file := *p.view(newRequest("/")).asker.LimitOf("api")
	file.Source, file.Shadow = namedlimit.ByFile, true
	for limit, want := range map[*namedlimit.Limit]string{p.view(newRequest("/")).asker.LimitOf("api"): `data-act="shadow"`, &file: "This limit is defined in --limits-file"} {
		html, _ := render(v.limitActions(limit))
		wantText(t, html, want, `data-act="override"`)
	}
}

// TestActionsOverAStore: over a store on other machines overrides are in the file.
func TestActionsOverAStore(t *testing.T) {
	p := actingPage(t, func(s *Source) { s.Remote = func() store.Health { return store.Health{} } })
	v := p.view(newRequest("/?lang=en"))
	v.acting = actions.State{User: "ann", IsTrusted: true}
	ofLimit, _ := render(v.limitActions(p.view(newRequest("/")).asker.LimitOf("api")))
	ofKey, _ := render(v.keyActions(keyOf("api:x", 0, limiter.Named, p.view(newRequest("/")).asker.LimitOf("api"))))
	for _, html := range []string{ofLimit, ofKey} {
		wantText(t, html, "overrides are in --limits-file only")
		lacksText(t, html, `data-act="override"`, `data-act="end-override"`)
	}
}
