package dashboard

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/store"
)

// namedSource is a server with the limit api of a funnel, a window and a quota, and keys under its name.
func namedSource(t *testing.T) (Source, *namedlimit.Registry) {
	t.Helper()
	r := limitsOf(t, definition("api", perPeriod(6, 6, 60), namedlimit.Rule{Algorithm: namedlimit.FixedWindow, Capacity: 10, PeriodSec: 3600},
		namedlimit.Rule{Algorithm: namedlimit.Quota, Capacity: 1000, Calendar: calendar.Spec{Every: calendar.Day}}))
	shadow := definition("shadow", perPeriod(1, 1, 60))
	shadow.Shadow = true
	if err := r.Set(shadow); err != nil {
		t.Fatal(err)
	}
	override(t, r, "out", namedlimit.Policy{Constant: limiter.Deny})
	override(t, r, "vip", namedlimit.Policy{Constant: limiter.Unlimited})
	override(t, r, "big", namedlimit.Policy{Rules: []namedlimit.Rule{{Algorithm: namedlimit.TokenBucket, Capacity: 100, Count: 1, PeriodSec: 1}}})
	s := testSource(nil)
	s.Limits, s.Calendars = r.All, r.Calendars()
	s.State = statesOf(map[string]limiter.State{
		"api:half":   stateOf(t, r, "api", "half", 3),
		"api:full":   stateOf(t, r, "api", "full", 4, 2),
		"api:":       stateOf(t, r, "api", "", 1),
		"shadow:k":   stateOf(t, r, "shadow", "k", 1),
		"api:\x00":   stateOf(t, r, "api", "\x00", 2),
		"api:funnel": {ExpiresNs: testNowNs + 1e9},
	})
	return s, r
}

// TestLookByName checks that the name of a limit is enough, in place of its numbers: which override decides,
// a drawing of each funnel, and a table of all rules.
func TestLookByName(t *testing.T) {
	s, _ := namedSource(t)
	p := New(s)
	for _, tt := range []struct {
		query string
		want  []string
	}{
		{"limit=api&key=half", []string{"State of <bdi", ">api:half</bdi>", "The next call is allowed", "The key has no override",
			"<h4>6 at once, 6 per minute</h4>", "50\u00a0%", "3 of 6 units", "6 every 60 s", "in 30\u00a0s", `y="60" height="50"`,
			"<h4>10 per hour, fixed</h4>", "7 of 10 units", "<h4>1,000 a day (UTC)</h4>", "997 of 1,000 units",
			`<th scope="row">6 at once, 6 per minute</th><td>3</td><td>6</td><td>–</td><td>in 30` + "\u00a0s</td>",
			`<th scope="row">10 per hour, fixed</th><td>7</td><td>10</td><td>–</td><td>in 1h0m0s</td>`,
			`<th scope="row">1,000 a day (UTC)</th><td>997</td><td>1,000</td><td>–</td><td>in `,
			"<dt>CL.CHECK with quantity 1 would reply</dt><dd><code>0 6 2 -1 40</code>"}},
		{"limit=api&key=full", []string{"The next call is limited", "6 of 6 units", "in 10\u00a0s",
			`<th scope="row">6 at once, 6 per minute</th><td>0</td><td>6</td><td>in 10` + "\u00a0s</td>", "<code>1 6 0 10 60</code>"}},
		{"limit=api&key=nobody", []string{"The next call is allowed", "has no state for this key", "0 of 6 units", "<dd>now</dd>"}},
		{`limit=api&key=""`, []string{">api:</bdi>", "1 of 6 units"}},
		{`limit=api&key="\x00"`, []string{`value="&#34;\x00&#34;"`, `<bdi class="key">&#34;api:\x00&#34;</bdi>`, "2 of 6 units"}},
		{"limit=+api+&key=half", []string{"3 of 6 units"}},
		{"limit=shadow&key=k", []string{"The next call is allowed", "The limit is a shadow, else the next call would be limited."}},
		{"limit=api&key=out", []string{"The next call is limited", "An override decides: <code>command: DENY</code>", "<p>denied</p>"}},
		{"limit=api&key=vip", []string{"The next call is allowed", "<code>command: UNLIMITED</code>", "<p>unlimited</p>"}},
		{"limit=api&key=big", []string{"<code>command: TOKENBUCKET 100 1 1</code>", "<h4>100 at once, 1 per second</h4>"}},
		{"limit=api&key=" + hostile, []string{">api:&lt;img src=x onerror=alert(1)&gt;</bdi>"}},
		{"limit=api&key=half&lang=zh", []string{"该 Key 没有例外", "<h4>一次最多 6 个，每分钟 6 个</h4>", "命名限额"}},
	} {
		page := body(t, p, "lang=en&kind=named&db=0&"+strings.ReplaceAll(tt.query, " ", "+"))
		if strings.Contains(tt.query, "lang=zh") {
			page = body(t, p, "kind=named&db=0&"+tt.query)
		}
		wantText(t, page, tt.want...)
		noMarkup(t, page)
	}
	lacksText(t, body(t, p, "kind=named&limit=api&key=out"), "<svg viewBox", "<h4>")
}

// TestLookByNameErrors checks what is said of a wrong form, and of what is not filled in.
func TestLookByNameErrors(t *testing.T) {
	s, _ := namedSource(t)
	failing := s
	failing.State = func(int64, store.Key) (limiter.State, bool, error) {
		return limiter.State{}, false, errors.New("the store " + hostile)
	}
	for _, tt := range []struct {
		source Source
		query  string
		want   string
	}{
		{s, "limit=api&key=", "Enter a key"},
		{s, "limit=&key=k", "Enter the name of a limit."},
		{s, "limit=no+such&key=k", "There is no limit of this name."},
		{s, "limit=" + hostile + "&key=k", `value="&lt;img src=x`},
		{s, "limit=api&key=k&db=16", "from 0 to 15"},
		{s, "limit=api&key=" + strings.Repeat("a", 97), "longer than 96 bytes"},
		{s, "limit=api&key=funnel", "The key holds the state of another command"},
		{failing, "limit=api&key=k", "the store &lt;img"},
	} {
		page := body(t, New(tt.source), "lang=en&kind=named&"+strings.ReplaceAll(tt.query, " ", "+"))
		wantText(t, page, tt.want, `class="problem"`)
		lacksText(t, page, `class="verdict`)
		noMarkup(t, page)
	}
	page := body(t, New(s), "lang=en&kind=named&key=k")
	wantText(t, page, `<option value="named" selected>CL.CHECK</option>`, `name="limit" value="" required`, `list="suggested-limit"`,
		`<datalist id="suggested-limit"><option value="api"></option><option value="shadow"></option></datalist>`, `aria-describedby="hint-limit"`)
	lacksText(t, page, "aria-invalid=", `class="verdict`, `name="max_burst"`)
	lacksText(t, body(t, New(testSource(nil)), ""), `value="named"`)
	wantText(t, body(t, New(testSource(nil)), "lang=en&kind=named&limit=api&key=k"), "cannot be inspected here")
}

// TestLookByNameChargesNothing checks that a look changes neither the state nor the counts.
func TestLookByNameChargesNothing(t *testing.T) {
	s, r := namedSource(t)
	state, _, _ := s.State(testNowNs, store.Key{Name: []byte("api:half")})
	before := slices.Clone(state.Payload)
	for range 3 {
		body(t, New(s), "kind=named&limit=api&key=half")
	}
	if !slices.Equal(before, state.Payload) {
		t.Error("a look changes the state")
	}
	if got := r.Lookup([]byte("api")).Counts(); got != (namedlimit.Counts{}) {
		t.Errorf("a look is counted: %+v", got)
	}
}

// TestOutlookOfNamedFunnels compares with the outlook of the funnel itself.
func TestOutlookOfNamedFunnels(t *testing.T) {
	for _, rule := range []namedlimit.Rule{perPeriod(6, 6, 60), perPeriod(1, 1, 3600), perPeriod(1_000_000, 1_000_000, 1), perPeriod(100, 7, 3)} {
		limit, err := funnel.NewLimit(funnel.Capacity, rule.Capacity, rule.Count, rule.PeriodSec)
		if err != nil {
			t.Fatal(err)
		}
		r := limitsOf(t, definition("a", rule))
		for quantity := int64(0); quantity <= rule.Capacity; quantity += max(1, rule.Capacity/7) {
			state := stateOf(t, r, "a", "k", quantity)
			for _, afterNs := range []int64{0, 1, 1_234_567, 333_333_333} {
				by := r.Lookup([]byte("a")).Explain([]byte("k"), r.Now, funnel.Burst)
				got := ruleLooks(words.English(), &by, &state, testNowNs+afterNs)[0].outlook
				want := limit.Outlook(max(state.ExpiresNs, testNowNs+afterNs), testNowNs+afterNs)
				const ms = 1_000_000
				level := got.Level - want.Level
				if got.EmptyNs-want.EmptyNs > ms || got.FreeNs-want.FreeNs > ms || level < -1 || level > 1 || level > ms/float64(limit.IntervalNs())+1e-9 {
					t.Errorf("%+v, %d units, after %d ns: got %+v, want %+v", rule, quantity, afterNs, got, want)
				}
			}
		}
	}
}

// TestNamedLinks checks that a hot key of CL.CHECK leads to its limit.
func TestNamedLinks(t *testing.T) {
	s, _ := namedSource(t)
	v := New(s).view(httptest.NewRequest(http.MethodGet, "/?lang=zh", nil))
	named := limiter.Terms{Kind: limiter.Named}
	for _, tt := range []struct {
		name  string
		terms limiter.Terms
		want  string
	}{
		{"api:user:1", named, "/?db=0&key=user%3A1&kind=named&lang=zh&limit=api#look"},
		{"api:", named, "/?db=0&key=%22%22&kind=named&lang=zh&limit=api#look"},
		{"api:\xff", named, "/?db=0&key=%22%5Cxff%22&kind=named&lang=zh&limit=api#look"},
		{"gone:user", named, "/?db=0&key=gone%3Auser&kind=named&lang=zh#look"},
		{"api", named, "/?db=0&key=api&kind=named&lang=zh#look"},
		{"k", limiter.Terms{Kind: limiter.Quota, Numbers: limiter.Numbers{5}}, "/?db=0&key=k&kind=quota&lang=zh&max_count=5#look"},
		{"k", limiter.Terms{Kind: limiter.Concurrency, Numbers: limiter.Numbers{5}}, "/?db=0&key=k&kind=other&lang=zh#look"},
	} {
		if got := v.lookLink(tt.name, "0", tt.terms); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestLookAtQuota checks the words of a window, as CL.QUOTA takes them.
func TestLookAtQuota(t *testing.T) {
	const toMidnight, toTheHour = "6400", "2800" // from 2023-11-14T22:13:20Z, the time of the tests
	p := New(testSource(nil))
	for _, tt := range []struct{ query, want string }{
		{"max_count=5&window=DAY", "<dt>CL.QUOTA with quantity 1 would reply</dt><dd><code>0 5 4 -1 " + toMidnight + "</code>"},
		{"max_count=5&window=day+tz+Europe/Berlin", "<code>0 5 4 -1 " + toTheHour + "</code>"},
		{"max_count=5&window=+DAY++START+23:00+", "<code>0 5 4 -1 " + toTheHour + "</code>"},
		{"max_count=5&window=HOUR+EPOCH", "<code>0 5 4 -1 " + toTheHour + "</code>"},
		{"max_count=5&window=", "Enter a window"},
		{"max_count=0&window=DAY", "It must be at least 1."},
		{"max_count=x&window=DAY", "Enter a whole number."},
		{"max_count=5&window=FORTNIGHT", "must be SECOND, MINUTE"},
		{"max_count=5&window=DAY+TZ+Europe/Nowhere", "unknown time zone &#39;Europe/Nowhere&#39;"},
		{"max_count=5&window=DAY+TZ", "TZ of QUOTA needs a value"},
		{"max_count=5&window=DAY+START+24:00", "HH:MM"},
		{"max_count=5&window=DAY+5", "Unexpected: 5"},
		{"max_count=5&window=DAY+QUOTA+5+DAY", "Unexpected: "},
		{"max_count=5&window=" + strings.Repeat("DAY+", 1000), "Unexpected: DAY DAY"},
		{"max_count=5", `name="window" value="" required`},
	} {
		wantText(t, body(t, p, "lang=en&kind=quota&key=a&"+tt.query), tt.want, `<option value="quota" selected>CL.QUOTA</option>`)
	}
	lacksText(t, body(t, p, "lang=en&kind=quota&key=a&max_count=5"), "aria-invalid=", `class="verdict`) // a hot key's link
	wantText(t, body(t, p, "lang=en&kind=quota&key=a&max_count=5&window=DAY"), "4 of 5 units", `class="verdict allowed"`)
}
