package dashboard

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

func TestLookAtFunnel(t *testing.T) {
	const sec = 1_000_000_000
	p := New(testSource(map[string]int64{
		"half":     testNowNs + 16*sec,
		"full":     testNowNs + 32*sec,
		"soon":     testNowNs + 30*sec + 945_000_000,
		"over":     testNowNs + 64*sec,
		"far over": testNowNs + 32768*sec,
		"\x00\xff": testNowNs + 2*sec,
		"":         testNowNs + 2*sec,
	}))
	for _, tt := range []struct {
		key  string
		want []string
	}{
		{"half", []string{"✓ Allowed: 8 at once", "8 of 16 units", "30 every 60 s", "<dd>now</dd>", "in 16\u00a0s",
			"<code>0 16 7 -1 18</code>", `y="60" height="50"`, "50\u00a0%", `class="water"`, "By the limit in the URL."}},
		{"full", []string{"✕ Limited; allowed in 2\u00a0s", "16 of 16 units", "in 2\u00a0s", "in 32\u00a0s", "<code>1 16 0 2 32</code>",
			`y="10" height="100"`, `class="water limited"`}},
		{"soon", []string{"✕ Limited; allowed in 945\u00a0ms"}},
		{"over", []string{"✕ Limited; allowed in 34\u00a0s", "32 of 16 units", "in 34\u00a0s", `y="10" height="100"`, "200\u00a0%"}},
		{"nobody", []string{"✓ Allowed: 16 at once", "0 of 16 units", "has no state for this key", "<code>0 16 15 -1 2</code>"}},
		{`"\x00\xff"`, []string{"1 of 16 units", `&#34;\x00\xff&#34;</bdi>`, `value="&#34;\x00\xff&#34;"`}},
		{"\x00\xff", []string{"1 of 16 units", `value="&#34;\x00\xff&#34;"`}},
		{`""`, []string{"1 of 16 units"}},
		{"far over", []string{"16,384 of 16 units"}},
		{hostile, []string{`>&lt;img src=x onerror=alert(1)&gt;</bdi>`, `value="&lt;img src=x onerror=alert(1)&gt;"`}},
	} {
		query := url.Values{"key": {tt.key}, "by": {"throttle 15 30 60"}, "lang": {"en"}}
		wantText(t, body(t, p, query.Encode()), tt.want...)
	}
	wantText(t, body(t, p, "lang=en&key=half&top=limited"), "The limit is not known", "<dd>in 16\u00a0s</dd>", `href="/?lang=en&amp;top=limited" aria-label="Close"`)
	wantText(t, body(t, p, "lang=en&key=nobody"), "No such key")
}

// TestLimitOfLastCall: a key's limit is that of its last counted call.
func TestLimitOfLastCall(t *testing.T) {
	s := testSource(map[string]int64{"half": testNowNs + 16e9})
	s.Top = func(_ topkeys.Ranking, n int) []topkeys.Entry {
		all := []topkeys.Entry{{Name: "half", DB: 3, Terms: limiter.Terms{Numbers: limiter.Numbers{1, 1, 1}}},
			{Name: "half", Terms: limiter.Terms{Numbers: limiter.Numbers{16, 30, 60}}}}
		return all[:min(n, len(all))]
	}
	for _, reading := range []funnel.Reading{funnel.Burst, funnel.Capacity} {
		s.Reading = reading
		page := body(t, New(s), "lang=en&key=half")
		first := map[funnel.Reading]string{funnel.Burst: "15", funnel.Capacity: "16"}[reading]
		wantText(t, page, "8 of 16 units", "By the limit of its last call.", `href="/?by=throttle+`+first+`+30+60&amp;db=0&amp;key=half&amp;lang=en"`)
	}
}

// TestMillisecondsOfLastCall: the command that is named replies in seconds.
func TestMillisecondsOfLastCall(t *testing.T) {
	s := testSource(map[string]int64{"half": testNowNs + 16e9})
	s.Top = func(topkeys.Ranking, int) []topkeys.Entry {
		return []topkeys.Entry{{Name: "half", Terms: limiter.Terms{Unit: funnel.Milliseconds, Numbers: limiter.Numbers{16, 30, 60_000}}}}
	}
	wantText(t, body(t, New(s), "lang=en&key=half"), "<dt>CL.THROTTLE with quantity 1 would reply</dt><dd><code>0 16 7 -1 18</code>")
}

// TestAlike: for a key that does not exist, hot keys with its name in theirs are offered.
func TestAlike(t *testing.T) {
	s := testSource(nil)
	s.Top = func(topkeys.Ranking, int) []topkeys.Entry {
		return []topkeys.Entry{{Name: "visitor:9:192.0.2.1,3:GET", Terms: limiter.Terms{Kind: limiter.Named}}, {Name: "unrelated"}}
	}
	page := body(t, New(s), "lang=en&key=192.0.2.1")
	_, drawer, _ := strings.Cut(page, `id="drawer"`)
	wantText(t, drawer, "No such key", "Keys with this in their name", ">visitor:9:192.0.2.1,3:GET</bdi></a>")
	lacksText(t, drawer, "unrelated")
}

// TestWholeCalls: a call in the field is a key with its limit.
func TestWholeCalls(t *testing.T) {
	p := New(testSource(nil))
	for _, tt := range []struct{ call, want string }{
		{"cl.throttle a 15 30 60", "<code>0 16 15 -1 2</code>"},
		{"CL.THROTTLE a 15 30 60 5", "<code>0 16 15 -1 2</code>"},
		{"cl.fixedwindow a 5 60", "<code>0 5 4 -1 60</code>"},
		{"cl.slidingwindow a 5 60", "<dt>CL.SLIDINGWINDOW with quantity 1 would reply</dt><dd><code>0 5 4 -1 60</code>"},
		{"cl.slidingwindow a 5 60 2 approx", "<dt>CL.SLIDINGWINDOW APPROX with quantity 1 would reply</dt><dd><code>0 5 4 -1"},
		{`cl.throttle "a b\x00" 15 30 60`, `&#34;a b\x00&#34;</bdi>`},
		{`cl.throttle "a b" 15 30 60`, "<code>0 16 15 -1 2</code>"},
		{"cl.tokenbucket a 16 30 60", "<code>0 16 15 -1 2</code>"},
		{"cl.pthrottle a 15 30 60000", "<dt>CL.THROTTLE with quantity 1 would reply</dt><dd><code>0 16 15 -1 2</code>"},
		{"CL.PEEK a 15 30 60", "<code>0 16 15 -1 2</code>"},
		{"cl.debit a 15 30 60 2", "<code>0 16 15 -1 2</code>"},
		{"cl.bthrottle a 15 30 60 1 0", "<code>0 16 15 -1 2</code>"},
		{"cl.bucket take a 5", "✕ Limited until it is filled"},
		{"cl.check api a", "There is no limit of this name."},
		{"cl.throttle a", "cl.throttle a</bdi>"}, // a key
		{`cl.throttle "a 15 30 60`, "cl.throttle &#34;a 15 30 60</bdi>"},
	} {
		wantText(t, body(t, p, url.Values{"lang": {"en"}, "key": {tt.call}}.Encode()), tt.want)
	}
}

// TestNamesLikeCalls: a link to a key whose name reads like a call leads to that key.
func TestNamesLikeCalls(t *testing.T) {
	for _, name := range []string{"cl.throttle victim 15 30 60", `cl.throttle "victim" 15 30 60`} {
		s := testSource(map[string]int64{name: testNowNs + 16e9})
		s.Top = func(topkeys.Ranking, int) []topkeys.Entry {
			return []topkeys.Entry{{Name: name, Terms: limiter.Terms{Numbers: limiter.Numbers{16, 30, 60}}}}
		}
		p := New(s)
		link := regexp.MustCompile(`<a class="in" href="/\?([^"]*key=[^"]*)"`).FindStringSubmatch(body(t, p, "lang=en"))
		if link == nil {
			t.Fatal("no link")
		}
		page := body(t, p, html.UnescapeString(link[1]))
		_, drawer, _ := strings.Cut(page, `id="drawer"`)
		wantText(t, drawer, html.EscapeString(name)+"</bdi>", "8 of 16 units")
		wantText(t, page, `value="`+html.EscapeString(resp.QuoteWord([]byte(name)))+`"`)
	}
}

// TestLookAtOtherKinds checks that windows and buckets show what their commands would decide.
func TestLookAtOtherKinds(t *testing.T) {
	p := New(testSource(map[string]int64{"funnel": testNowNs + 10e9}))
	for _, tt := range []struct{ query, want string }{
		{"by=fixedwindow+5+60&key=a", "<dt>CL.FIXEDWINDOW with quantity 1 would reply</dt><dd><code>0 5 4 -1 60</code>"},
		{"by=bucket+5&key=a", "<dt>CL.BUCKET TAKE with quantity 1 would reply</dt><dd><code>1 5 0 -1 -1</code>"},
		{"by=bucket+5&key=a", "✕ Limited until it is filled"},
		{"by=cl-concurrency+5&key=funnel", "calls get WRONGTYPE."},
		{"by=fixedwindow+5+60&key=funnel", "The key is of another kind than this limit: calls get WRONGTYPE."},
	} {
		wantText(t, body(t, p, "lang=en&"+tt.query), tt.want)
	}
}

// TestDatabases: a key is found in any database, and all that have it are named.
func TestDatabases(t *testing.T) {
	s := testSource(nil)
	s.State = func(nowNs int64, key store.Key) (limiter.State, bool, error) {
		has := key.DB == 2 || key.DB == 7
		return limiter.State{ExpiresNs: nowNs + int64(key.DB)*1e9}, has, nil
	}
	wantText(t, body(t, New(s), "lang=en&key=k"), "<dt>Database</dt><dd>2</dd>", "Also in database 7", `href="/?db=7&amp;key=k&amp;lang=en"`)
	page := body(t, New(s), "lang=en&key=k&db=7")
	wantText(t, page, "<dt>Database</dt><dd>7</dd>")
	lacksText(t, page, "Also in")
}

// TestForeignParameters: what is no parameter of the page is in no link and no form, and what is too long is
// cut or refused, as most links repeat the address.
func TestForeignParameters(t *testing.T) {
	s := testSource(nil)
	var all []namedlimit.Definition
	for i := range fewLimits + 1 {
		all = append(all, definition(fmt.Sprintf("limit-%02d", i), perPeriod(1, 1, 1)))
	}
	s.Limits = limitsOf(t, all...).All
	p := New(s)
	page := body(t, p, "lang=en&addEventListener=1&childNodes=2&filter="+strings.Repeat("f", 30_000)+"&x="+strings.Repeat("x", 9_000))
	lacksText(t, page, "xxxx", strings.Repeat("f", maxValueBytes+1), `name="addEventListener"`, `name="childNodes"`)
	for _, path := range []string{"/?key=", "/live.json?key="} {
		w := get(t, p, path+strings.Repeat("%ff", maxQueryBytes/3+1))
		if w.Code != http.StatusRequestURITooLong || w.Body.Len() > 100 {
			t.Errorf("a long address got %d, %d bytes", w.Code, w.Body.Len())
		}
	}
	if w := get(t, p, "/?key="+strings.Repeat("%ff", 4096)); w.Code != http.StatusOK {
		t.Errorf("a key of 4 KiB got %d", w.Code)
	}
}

// TestKeyLinks checks that a link to a hot key has the limit of its last request, as its command takes it.
func TestKeyLinks(t *testing.T) {
	v := New(testSource(nil)).view(newRequest("/?lang=zh&key=other&limit=x&by=y&sort=name"))
	for _, tt := range []struct {
		terms limiter.Terms
		by    string
	}{
		{limiter.Terms{}, ""},
		{limiter.Terms{Numbers: limiter.Numbers{16, 30, 60}}, "throttle 15 30 60"},
		{limiter.Terms{Unit: funnel.Milliseconds, Numbers: limiter.Numbers{1, 7, 2000}}, "throttle 0 7 2"},
		{limiter.Terms{Unit: funnel.Milliseconds, Numbers: limiter.Numbers{1, 7, 250}}, "throttle 0 7000 250"},
		{limiter.Terms{Kind: limiter.FixedWindow, Numbers: limiter.Numbers{5, 60}}, "fixedwindow 5 60"},
		{limiter.Terms{Kind: limiter.ApproxWindow, Numbers: limiter.Numbers{5, 60}}, "approxwindow 5 60"},
		{limiter.Terms{Kind: limiter.ApproxWindow, Unit: funnel.Milliseconds, Numbers: limiter.Numbers{5, 60_000}}, "approxwindow 5 60"},
		{limiter.Terms{Kind: limiter.Bucket, Numbers: limiter.Numbers{5}}, "bucket 5"},
		{limiter.Terms{Kind: limiter.Quota, Numbers: limiter.Numbers{5}}, "cl-quota 5"},
		{limiter.Terms{Kind: limiter.Quota, Unit: funnel.Milliseconds, Numbers: limiter.Numbers{5}}, "cl-quota 5"},
		{limiter.Terms{Kind: limiter.Named}, ""},
		{limiter.Terms{Kind: limiter.Concurrency, Numbers: limiter.Numbers{5}}, ""},
	} {
		want := url.Values{"key": {`"\xff"`}, "db": {"3"}, "lang": {"zh"}, "sort": {"name"}}
		if tt.by != "" {
			want.Set("by", tt.by)
		}
		if got := v.keyLink("\xff", 3, tt.terms); got != "/?"+want.Encode() {
			t.Errorf("%+v: %s, want %s", tt.terms, got, want.Encode())
		}
	}
}

// FuzzQuestion checks that the page is complete for any question, and that no input becomes markup.
func FuzzQuestion(f *testing.F) {
	for _, seed := range []string{"a", "<b>", `"><script>`, "\xff", `"\x`, "{{.}}", "-1", "9223372036854775807", "api:x", "cl.quota a 5 DAY", "throttle 15 30 60", "cl-quota 5 DAY TZ Europe/Berlin", "bucket 5"} {
		f.Add(seed, "0", "", "throttle 15 30 60", "en")
		f.Add("a", seed, seed, seed, seed)
		f.Add(seed, "", "api", seed, "")
	}
	s := testSource(nil)
	s.Limits = limitsOf(f, definition("api", perPeriod(6, 8, 60))).All
	p := New(s)
	bold := strings.Count(get(f, p, "/").Body.String(), "<b>")
	f.Fuzz(func(t *testing.T, key, db, limit, by, lang string) {
		query := url.Values{"key": {key}, "db": {db}, "limit": {limit}, "by": {by}, "lang": {lang}, "filter": {by}, "sort": {limit}}
		w := get(t, p, "/?"+query.Encode())
		page := w.Body.String()
		if w.Code != 200 || !strings.HasSuffix(page, "</html>") {
			t.Fatalf("%d, %d bytes", w.Code, w.Body.Len())
		}
		if strings.Count(page, "<script>") != 1 || strings.Count(page, "<b>") != bold {
			t.Error("a text became markup")
		}
	})
}
