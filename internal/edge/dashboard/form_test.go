package dashboard

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/decide"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func TestProbe(t *testing.T) {
	const sec = 1_000_000_000
	p := New(testSource(map[string]int64{
		"half":     testNowNs + 16*sec,
		"full":     testNowNs + 32*sec,
		"over":     testNowNs + 64*sec,
		"far over": testNowNs + 32768*sec,
		"\x00\xff": testNowNs + 2*sec,
		"":         testNowNs + 2*sec,
	}))
	for _, tt := range []struct {
		key  string
		want []string
	}{
		{"half", []string{"The next call is allowed", "8 of 16 units", "30 every 60 s", "<dd>now</dd>", "in 16\u00a0s",
			"<code>0 16 7 -1 18</code>", `y="60" height="50"`, "50\u00a0%"}},
		{"full", []string{"The next call is limited", "16 of 16 units", "in 2\u00a0s", "in 32\u00a0s", "<code>1 16 0 2 32</code>",
			`y="10" height="100"`}},
		{"over", []string{"The next call is limited", "32 of 16 units", "in 34\u00a0s", `y="10" height="100"`, "200\u00a0%"}},
		{"nobody", []string{"The next call is allowed", "0 of 16 units", "has no state for this key", "<code>0 16 15 -1 2</code>"}},
		{`"\x00\xff"`, []string{"1 of 16 units", `<bdi class="key">&#34;\x00\xff&#34;</bdi>`, `value="&#34;\x00\xff&#34;"`}},
		{"\x00\xff", []string{"1 of 16 units", `value="&#34;\x00\xff&#34;"`}},
		{`""`, []string{"1 of 16 units"}},
		{"far over", []string{"16,384 of 16 units"}},
		{"<img src=x onerror=alert(1)>", []string{`<bdi class="key">&lt;img src=x onerror=alert(1)&gt;</bdi>`,
			`value="&lt;img src=x onerror=alert(1)&gt;"`}},
	} {
		query := url.Values{"key": {tt.key}, "db": {"0"}, "max_burst": {"15"}, "count": {"30"}, "period": {"60"}}
		page := body(t, p, query.Encode())
		wantText(t, page, tt.want...)
	}
}

func TestProbeErrors(t *testing.T) {
	p := New(testSource(nil))
	for _, tt := range []struct{ query, want string }{
		{"key=&max_burst=1&count=1&period=1", "Enter a key"},
		{"key=%22a&max_burst=1&count=1&period=1", "must end with one"},
		{"key=" + strings.Repeat("a", 101) + "&max_burst=1&count=1&period=1", "longer than 100 bytes"},
		{"key=a&max_burst=&count=1&period=1", "Enter a whole number."},
		{"key=a&max_burst=1.5&count=1&period=1", "Enter a whole number."},
		{"key=a&max_burst=99999999999999999999&count=1&period=1", "The number is too large."},
		{"key=a&max_burst=-1&count=1&period=1", "It must be at least 0."},
		{"key=a&max_burst=1&count=-1&period=1", "It must be at least 1."},
		{"key=a&max_burst=1&count=0&period=1", "This would not limit anything"},
		{"key=a&max_burst=1&count=1&period=0", "This would not limit anything"},
		{"key=a&max_burst=1&count=1&period=9223372036854775807", "more than 146 years"},
		{"key=a&max_burst=1&count=1&period=1&db=16", "from 0 to 15"},
		{"key=a&max_burst=1&count=1&period=1&db=-1", "It must be at least 0."},
		{"key=a&max_burst=1&count=1&period=1&db=x", "Enter a whole number."},
	} {
		page := body(t, p, tt.query)
		wantText(t, page, tt.want, `class="problem"`)
		lacksText(t, page, `class="verdict`)
	}
	lacksText(t, body(t, p, "key=a&db=3"), "aria-invalid=", `class="verdict`) // a link to a key
}

func TestProbeReadsAsTheServer(t *testing.T) {
	s := testSource(nil)
	s.Reading = funnel.Capacity
	p := New(s)
	wantText(t, body(t, p, "key=a&max_burst=15&count=30&period=60"), "0 of 15 units", "<code>0 15 14 -1 2</code>")
	wantText(t, body(t, p, "key=a&max_burst=0&count=30&period=60"), "It must be at least 1.")
}

// TestLookAtOtherKinds checks that windows and buckets show what their commands would decide.
func TestLookAtOtherKinds(t *testing.T) {
	const sec = 1_000_000_000
	s, asked := testSource(map[string]int64{"funnel": testNowNs + 10*sec}), []limiter.Rule{}
	look := s.Look
	s.Look = func(nowNs int64, key store.Key, rule *limiter.Rule) (decide.Probe, error) {
		asked = append(asked, *rule)
		return look(nowNs, key, rule)
	}
	p := New(s)
	for _, tt := range []struct{ query, want string }{
		{"kind=fixedwindow&key=a&max_count=5&period=60", "<dt>CL.FIXEDWINDOW with quantity 1 would reply</dt><dd><code>0 5 4 -1 60</code>"},
		{"kind=slidingwindow&key=a&max_count=5&period=60", "<dt>CL.SLIDINGWINDOW with quantity 1 would reply</dt><dd><code>0 5 4 -1 60</code>"},
		{"kind=approxwindow&key=a&max_count=5&period=60", "<dt>CL.SLIDINGWINDOW APPROX with quantity 1 would reply</dt><dd><code>0 5 4 -1"},
		{"kind=bucket&key=a&capacity=5", "<dt>CL.BUCKET TAKE with quantity 1 would reply</dt><dd><code>1 5 0 -1 -1</code>"},
		{"kind=bucket&key=a&capacity=0", "It must be at least 1."},
		{"kind=fixedwindow&key=a&max_count=0&period=60", "It must be at least 1."},
		{"kind=fixedwindow&key=a&max_count=1&period=9223372036854775807", "longer than 146 years"},
		{"kind=slidingwindow&key=a&max_count=9223372036854775807&period=1", "add APPROX for a larger one"},
		{"kind=fixedwindow&key=funnel&max_count=5&period=60", "The key holds the state of another command"},
		{"kind=other&key=a", "cannot be inspected here"},
	} {
		page := body(t, p, "lang=en&"+tt.query)
		wantText(t, page, tt.want)
	}
	var kinds []limiter.Kind
	for _, rule := range asked {
		kinds = append(kinds, rule.Kind)
	}
	if want := []limiter.Kind{limiter.FixedWindow, limiter.SlidingWindow, limiter.ApproxWindow, limiter.Bucket, limiter.FixedWindow}; !slices.Equal(kinds, want) {
		t.Errorf("asked about %v, want %v", kinds, want)
	}
	wantText(t, body(t, p, "kind=bucket"), `<option value="bucket" selected>`, `name="capacity"`)
}

// FuzzProbe checks that the page is complete for any input, and that no input becomes markup.
func FuzzProbe(f *testing.F) {
	for _, seed := range []string{"a", "<b>", `"><script>`, "\xff", `"\x`, "{{.}}", "-1", "9223372036854775807"} {
		f.Add(seed, "0", "15", "30", "60", "en", "")
		f.Add(seed, "0", "15", "30", "60", "en", "bucket")
		f.Add("a", seed, seed, seed, seed, seed, seed)
		for _, kind := range []string{"named", "quota"} {
			f.Add(seed, "0", "5", "api", "DAY TZ Europe/Berlin", "en", kind)
			f.Add("a", "0", "5", seed, seed, "en", kind)
		}
	}
	s := testSource(nil)
	s.Limits, s.State = limitsOf(f, definition("api", perPeriod(6, 8, 60))).All, statesOf(nil)
	p := New(s)
	count := func(body string) int { return strings.Count(body, "<") }
	f.Fuzz(func(t *testing.T, key, db, maxBurst, perPeriod, period, lang, kind string) {
		ask := func(key string) string {
			query := url.Values{"key": {key}, "db": {db}, "max_burst": {maxBurst}, "count": {perPeriod}, "period": {period}, "lang": {lang}, "kind": {kind},
				"max_count": {maxBurst}, "capacity": {maxBurst}, "limit": {perPeriod}, "window": {period}}
			w := get(t, p, "/?"+query.Encode())
			if w.Code != 200 || !strings.HasSuffix(w.Body.String(), "</html>") {
				t.Fatalf("%d, %d bytes", w.Code, w.Body.Len())
			}
			return w.Body.String()
		}
		body := ask(key)
		if plain := ask("plain"); strings.Contains(body, `class="verdict`) == strings.Contains(plain, `class="verdict`) &&
			!strings.Contains(body, "error-key") && count(body) != count(plain) {
			t.Errorf("the key %q changes the page's structure", key)
		}
	})
}
