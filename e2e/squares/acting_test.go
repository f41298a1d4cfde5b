package squares

import (
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"cellserver/internal/edge/dashboard/actions"
	"cellserver/internal/test/patience"
)

// actingUsers are of a page with actions.
const actingUsers = "user default on nopass ~* &* +@all\nuser ann on >secret ~* &* +@all\n"

// acting is a user of the page.
type acting struct{ site string }

// told is what the page answers an action.
type told struct {
	Ask *struct{ Token, Command string }
	Done,
	Error string
}

// act signs in, as time may have passed, asks for an action and confirms it. It returns the command that the
// page has shown.
func (a *acting) act(t *testing.T, fields ...string) (command string, ok bool) {
	t.Helper()
	jar, _ := cookiejar.New(nil) // never fails
	browser := http.Client{Jar: jar}
	defer browser.CloseIdleConnections()
	post := func(path string, fields ...string) (got told) {
		form := url.Values{}
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		ctx, cancel := patience.Context(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.site+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Origin": a.site, "Sec-Fetch-Site": "same-origin", "Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded",
		} {
			r.Header.Set(name, value)
		}
		answer, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
			t.Fatalf("%s %v: %v", path, fields, err)
		}
		return got
	}
	post(actions.SignInPath, "name", "ann", "password", "secret")
	asked := post(actions.ActPath, fields...)
	if asked.Ask == nil {
		t.Fatalf("%v: %+v", fields, asked)
	}
	return asked.Ask.Command, post(actions.ActPath, "confirm", asked.Ask.Token).Error == ""
}

// changes gives a command about a limit to the server, now and then by the page, by the fields of its action.
func (r *run) changes(name, want string, words, fields []string) {
	r.t.Helper()
	h, is := r.system.(*house)
	if !is || h.page == nil || r.limit(name) == nil || !r.often(25) {
		r.expect(want, words...)
		return
	}
	r.note("page: %s -> %s", strings.Join(words, " "), want)
	r.table.count([]string{"override by command"}, "page", r.also)
	command, ok := h.page.act(r.t, fields...)
	if command != strings.Join(words, " ") || ok != (want != "-") {
		r.fail("the page: %s, %t, want %s -> %s", command, ok, strings.Join(words, " "), want)
	}
}
