package dashboard

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/topkeys"
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
		"gone:x":     stateOf(t, r, "api", "x", 1),
		"api:funnel": {ExpiresNs: testNowNs + 1e9},
	})
	return s, r
}

// TestLookByName checks that the name of a limit is enough, in place of its numbers: which override decides,
// and a drawing and the figures of each rule.
func TestLookByName(t *testing.T) {
	s, _ := namedSource(t)
	p := New(s)
	for _, tt := range []struct {
		query string
		want  []string
	}{
		{"limit=api&key=half", []string{`>api:half</bdi>`, "✓ Allowed: 3 at once", `By the named limit <a class="in" href="/?lang=en&amp;limit=api">api</a>`,
			"<h3>✓ 6 at once, 6 per minute</h3>", "50\u00a0%", "3 of 6 units", "6 every 60 s", "in 30\u00a0s", `y="60" height="50"`,
			"<h3>✓ 10 per hour, fixed</h3>", "<dt>Used</dt><dd>3 of 10 units</dd></div><div><dt>Available</dt><dd>7</dd>", "in 1h0m0s",
			"<h3>✓ 1,000 a day (UTC)</h3>", "3 of 1,000 units",
			"<dt>CL.CHECK with quantity 1 would reply</dt><dd><code>0 6 2 -1 40</code>"}},
		{"key=api:half", []string{"3 of 6 units", "By the named limit"}},
		{"limit=api&key=full", []string{"✕ Limited; allowed in 10\u00a0s", "<h3>✕ 6 at once, 6 per minute</h3>", "6 of 6 units", "in 10\u00a0s",
			"<h3>✓ 10 per hour, fixed</h3>", "<code>1 6 0 10 60</code>"}},
		{"limit=api&key=nobody", []string{"✓ Allowed: 6 at once", "has no state for this key", "0 of 6 units", "<dd>now</dd>"}},
		{"key=cl.check+api+half", []string{"3 of 6 units"}},
		{"key=api:nobody", []string{"✓ Allowed: 6 at once"}},
		{`limit=api&key=""`, []string{">api:</bdi>", "1 of 6 units"}},
		{`limit=api&key="\x00"`, []string{`value="&#34;\x00&#34;"`, `&#34;api:\x00&#34;</bdi>`, "2 of 6 units"}},
		{"limit=+api+&key=half", []string{"3 of 6 units"}},
		{"key=gone:x", []string{"The limit is not known", "The named limit that the key was charged under is not defined now."}},
		{"limit=shadow&key=k", []string{"The limit is a shadow, else the next call would be limited.", `<span class="badge">shadow</span>`}},
		{"limit=api&key=out", []string{"✕ Limited; waiting does not help", "An override decides: <code>command: DENY</code>"}},
		{"limit=api&key=vip", []string{"✓ unlimited", "<code>command: UNLIMITED</code>"}},
		{"limit=api&key=big", []string{"<code>command: TOKENBUCKET 100 1 1</code>", "<p>100 at once, 1 per second</p>"}},
		{"limit=api&key=" + hostile, []string{">api:&lt;img src=x onerror=alert(1)&gt;</bdi>"}},
		{"limit=api&key=half&lang=zh", []string{"放行：一次最多 3 个", "<h3>✓ 一次最多 6 个，每分钟 6 个</h3>", "命名限额"}},
	} {
		query := "lang=en&db=0&" + strings.ReplaceAll(tt.query, " ", "+")
		if strings.Contains(tt.query, "lang=zh") {
			query = tt.query
		}
		page := body(t, p, query)
		wantText(t, page, tt.want...)
		noMarkup(t, page)
	}
	lacksText(t, body(t, p, "limit=api&key=out"), `class="vessel"`)
}

// TestLookAtLimit: a named limit as a whole has its rules with their counts, its overrides and busiest keys.
func TestLookAtLimit(t *testing.T) {
	s, r := namedSource(t)
	s.Overrides = func(limit string) ([]namedlimit.KeyOverride, []namedlimit.Override) {
		_, some := r.Overrides(limit, 0)
		return some, nil
	}
	s.Top = func(ranking topkeys.Ranking, _ int) []topkeys.Entry {
		named := limiter.Terms{Kind: limiter.Named}
		all := []topkeys.Entry{{Name: "api:often", Recent: 50, IsRecent: true, Terms: named}, {Name: "apiary:x", Recent: 20, IsRecent: true, Terms: named}}
		if ranking == topkeys.Limited {
			all[0].Recent = 7
			return all[:1]
		}
		return all
	}
	request(r, "api", 0, 3, 1)
	decided(r, "api", true, 2)
	for _, query := range []string{"limit=api", "key=api"} {
		page := body(t, New(s), "lang=en&"+query)
		wantText(t, page, "Limit api</h2>", `<th scope="row">6 at once, 6 per minute</th><td>1</td><td>2</td><td>0</td>`,
			`<th scope="row">together</th><td>1</td><td>2</td><td>0</td>`, `>api:often</bdi></a>`, "<td><bdi>50</bdi></td><td><bdi>7</bdi></td>",
			`href="/?key=vip&amp;lang=en&amp;limit=api"`, "<td>unlimited</td><td>command</td><td>never</td>", "Not known")
		if _, drawer, _ := strings.Cut(page, `id="drawer"`); strings.Contains(drawer, "apiary") {
			t.Error("a key of another limit is among the busiest")
		}
	}
	wantText(t, body(t, New(s), "lang=en&limit=shadow"), "This limit is a shadow", "<h3>overrides</h3><p class=\"soft\">None.")
	wantText(t, body(t, New(s), url.Values{"lang": {"en"}, "limit": {hostile}}.Encode()), "There is no limit of this name.")
}

// TestLookErrors checks what is said of a wrong question.
func TestLookErrors(t *testing.T) {
	s, _ := namedSource(t)
	failing := s
	failing.State = func(int64, store.Key) (limiter.State, bool, error) {
		return limiter.State{}, false, errors.New("the store " + hostile)
	}
	away := s
	away.State = func(int64, store.Key) (limiter.State, bool, error) {
		return limiter.State{}, false, store.Failure{Line: "STOREDOWN redis://x: no answer; it may have been charged"}
	}
	for _, tt := range []struct {
		source Source
		query  string
		want   string
	}{
		{away, "key=k", "The store did not answer in time. Looking changes nothing: try again."},
		{s, "limit=api&key=", "Enter a key"},
		{s, "key=", "Enter a key"},
		{s, "key=%22a", "must end with one"},
		{s, "key=" + strings.Repeat("a", 101), "longer than 100 bytes"},
		{s, "limit=no+such&key=k", "There is no limit of this name."},
		{s, "limit=api&key=k&db=16", "from 0 to 15"},
		{s, "key=k&db=-1", "from 0 to 15"},
		{s, "key=k&db=x", "from 0 to 15"},
		{s, "limit=api&key=" + strings.Repeat("a", 97), "longer than 96 bytes"},
		{failing, "limit=api&key=k", "the store &lt;img"},
		{failing, "key=k", "the store &lt;img"},
		{s, "limit=api&key=funnel", "calls get WRONGTYPE"},
		{s, "key=a&by=throttle+1+x+1", "count: x is not a whole number"},
		{s, "key=a&by=throttle+1+1", "want a kind and its limit"},
		{s, "key=a&by=nothing+1+1", "want a kind and its limit"},
		{s, "key=a&by=string", "want a kind and its limit"},
		{s, "key=a&by=throttle+-1+1+1", "max_burst: It must be at least 0."},
		{s, "key=a&by=throttle+1+0+1", "This would not limit anything"},
		{s, "key=a&by=throttle+1+1+9223372036854775807", "more than 146 years"},
		{s, "key=a&by=fixedwindow+1+9223372036854775807", "longer than 146 years"},
		{s, "key=a&by=fixedwindow+0+1", "max_count: It must be at least 1."},
		{s, "key=a&by=slidingwindow+9223372036854775807+1", "add APPROX for a larger one"},
		{s, "key=a&by=cl-quota+5+FORTNIGHT", "must be SECOND, MINUTE"},
		{s, "key=a&by=cl-quota+5+DAY+TZ+Europe/Nowhere", "unknown time zone &#39;Europe/Nowhere&#39;"},
		{s, "key=a&by=throttle" + strings.Repeat("+"+hostile, 100), "is not a whole number"},
	} {
		page := body(t, New(tt.source), "lang=en&"+strings.ReplaceAll(strings.ReplaceAll(tt.query, " ", "+"), "<", "%3C"))
		wantText(t, page, tt.want, `<p class="problem" role="alert">`)
		lacksText(t, page, `class="verdict`)
		noMarkup(t, page)
	}
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

// TestPreciseLooks: times are exact to a millisecond, whatever the numbers.
func TestPreciseLooks(t *testing.T) {
	for _, rule := range []namedlimit.Rule{perPeriod(6, 6, 60), perPeriod(1, 1, 3600), perPeriod(1_000_000, 1_000_000, 1), perPeriod(100, 7, 3)} {
		limit, err := funnel.NewLimit(funnel.Capacity, rule.Capacity, rule.Count, rule.PeriodSec)
		if err != nil {
			t.Fatal(err)
		}
		r := limitsOf(t, definition("a", rule))
		for quantity := int64(0); quantity <= rule.Capacity; quantity += max(1, rule.Capacity/7) {
			state := stateOf(t, r, "a", "k", quantity)
			for _, afterNs := range []int64{0, 1, 1_234_567, 333_333_333} {
				s, nowNs := testSource(nil), testNowNs+afterNs
				s.Now, s.Limits = func() int64 { return nowNs }, r.All
				s.State = func(_ int64, key store.Key) (limiter.State, bool, error) {
					if string(key.Name) == "a:k" {
						return state, key.DB == 0, nil
					}
					return limiter.State{ExpiresNs: state.ExpiresNs}, key.DB == 0, nil
				}
				for name, query := range map[string]string{
					"named": "key=k&limit=a",
					"plain": fmt.Sprintf("key=k&by=tokenbucket+%d+%d+%d", rule.Capacity, rule.Count, rule.PeriodSec),
				} {
					asked := New(s).view(newRequest("/?" + query)).asked
					if asked.Problem != "" || len(asked.Key.Rules) != 1 {
						t.Fatalf("%s: got %+v", query, asked)
					}
					const ms = 1_000_000
					debtNs := uint64(max(state.ExpiresNs-nowNs, 0))
					freeNs := debtNs - min(debtNs, limit.ToleranceNs()-limit.IntervalNs())
					one := &asked.Key.Rules[0]
					level := one.Units - float64(debtNs)/float64(limit.IntervalNs())
					if one.EmptyNs-debtNs > ms || one.FreeNs-freeNs > ms || level < -1 || level > 1 || level > ms/float64(limit.IntervalNs())+1e-9 {
						t.Errorf("%s %+v, %d units, after %d ns: got %+v, want %d and %d ns", name, rule, quantity, afterNs, one, debtNs, freeNs)
					}
				}
			}
		}
	}
}

// TestLookAtQuota: a quota in the address may have its window; else one that has begun ends with its key.
func TestLookAtQuota(t *testing.T) {
	const toMidnight, toTheHour = "6400", "2800" // from 2023-11-14T22:13:20Z, the time of the tests
	s := testSource(nil)
	second, err := New(s).source.Calendars.Of(calendar.Spec{Every: calendar.Second})
	if err != nil {
		t.Fatal(err)
	}
	rule := limiter.Rule{Kind: limiter.Quota, Packed: limiter.Packed{5}, Shared: second}
	var begun limiter.State
	if _, _, err := rule.Decide(&begun, testNowNs, 2); err != nil {
		t.Fatal(err)
	}
	begun.ExpiresNs = testNowNs + 3600e9
	s.State = statesOf(map[string]limiter.State{"begun": begun})
	p := New(s)
	for _, tt := range []struct{ query, want string }{
		{"key=a&by=cl-quota+5+DAY", "<dt>CL.QUOTA with quantity 1 would reply</dt><dd><code>0 5 4 -1 " + toMidnight + "</code>"},
		{"key=a&by=cl-quota+5+day+tz+Europe/Berlin", "<code>0 5 4 -1 " + toTheHour + "</code>"},
		{"key=a&by=cl-quota+5++DAY++START+23:00+", "<code>0 5 4 -1 " + toTheHour + "</code>"},
		{"key=cl.quota+a+5+HOUR+EPOCH", "<code>0 5 4 -1 " + toTheHour + "</code>"},
		{"key=begun&by=cl-quota+5", "<code>0 5 2 -1 3600</code>"},
		{"key=begun&by=cl-quota+5", "5 a window of the calendar"},
		{"key=begun", "The limit is not known"},
		{"key=begun", "<dt>Units</dt><dd>2</dd>"},
		{"key=a&by=cl-quota+5", "✓ Allowed: 5 at once"},
	} {
		wantText(t, body(t, p, "lang=en&"+tt.query), tt.want)
	}
	lacksText(t, body(t, p, "lang=en&key=a&by=cl-quota+5"), "would reply")
	wantText(t, body(t, p, "lang=en&key=cl.quota+a+5+DAY"), `href="/?by=cl-quota+5+DAY&amp;db=0&amp;key=a&amp;lang=en"`)
}

// TestLookAtPlaces: leases are shown beside the places of the last call.
func TestLookAtPlaces(t *testing.T) {
	places := int64(3)
	s := testSource(nil)
	var held limiter.State
	acquire := limiter.Operation{Verb: limiter.Acquire, ID: 7, Max: 3, TTLNs: 60e9}
	if _, err := acquire.Do(&held, testNowNs); err != nil {
		t.Fatal(err)
	}
	s.State = statesOf(map[string]limiter.State{"c": held})
	s.Top = func(topkeys.Ranking, int) []topkeys.Entry {
		return []topkeys.Entry{{Name: "c", Terms: limiter.Terms{Kind: limiter.Concurrency, Numbers: limiter.Numbers{places}}}}
	}
	wantText(t, body(t, New(s), "lang=en&key=c"), "✓ Allowed: 2 at once", "1 of 3 units", "Places of which 33", "CL.CONCURRENCY ACQUIRE</code> · 3 at once")
	places = 1
	wantText(t, body(t, New(s), "lang=en&key=c"), "✕ Limited until a place is released")
	wantText(t, body(t, New(s), "lang=en&key=cl.concurrency+acquire+c+5+60000+x"), "✓ Allowed: 4 at once", "By the limit in the URL.", "by=cl-concurrency+5&amp;")
	s.State = statesOf(nil)
	wantText(t, body(t, New(s), "lang=en&key=c"), "✓ Allowed: 1 at once", "has no state for this key")
}
