package dashboard

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

// browser applies updates as the page's script does.
type browser struct {
	p     *Page
	query url.Values
	seq   int
	title string
	rows  map[string][]*int64 // by column
	parts map[string]string
}

func newBrowser(p *Page) *browser {
	return &browser{p: p, query: url.Values{"lang": {"en"}}, rows: map[string][]*int64{}, parts: map[string]string{}}
}

// update requests and applies an update.
func (b *browser) update(t *testing.T) update {
	t.Helper()
	w := get(t, b.p, "/live.json?"+b.query.Encode())
	var u update
	if err := json.Unmarshal(w.Body.Bytes(), &u); err != nil || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if u.Whole {
		clear(b.rows)
	}
	for name, raw := range u.Points {
		var deltas []*int64
		if err := json.Unmarshal(raw, &deltas); err != nil {
			t.Fatal(err)
		}
		var last int64
		for _, d := range deltas {
			if d != nil {
				last += *d
				v := last
				d = &v
			}
			b.rows[name] = append(b.rows[name], d)
		}
	}
	maps.Copy(b.parts, u.Parts)
	b.seq, b.title = u.Seq, u.Title
	b.query.Set("boot", u.Boot)
	b.query.Set("after", strconv.Itoa(u.Seq))
	b.query.Set("have", u.Have)
	return u
}

// check compares the browser's columns with the history.
func (b *browser) check(t *testing.T) {
	t.Helper()
	points, _, _ := b.p.history.Points()
	for _, c := range b.p.columns() {
		rows := b.rows[c.name]
		rows = rows[max(0, len(rows)-len(points)):] // older ones may be left
		if len(rows) != len(points) {
			t.Fatalf("%s: %d points, want %d", c.name, len(rows), len(points))
		}
		for i := range points {
			want, ok := c.value(&points[i])
			if got := rows[i]; (got != nil) != ok || ok && *got != want {
				t.Fatalf("%s, point %d: %v, want %d, %v", c.name, i, got, want, ok)
			}
		}
	}
}

// addRandom adds samples with all fields in use.
func addRandom(p *Page, r *rand.Rand, fromSample, n int) {
	none := p.source.Latency()
	for i := range n {
		at := fromSample + i
		due := p.history.Add(testNowNs+int64(at)*int64(history.Interval)+r.Int64N(1e6), history.Sample{
			Allowed: uint64(at*1000 + r.IntN(900)), Limited: uint64(at*10 + r.IntN(9)), Connections: r.IntN(10_000), Keys: 1_000_000 + 7_919*at + r.IntN(100),
			MemoryBytes: uint64(at)<<20 + r.Uint64N(1<<20), MaxMemoryBytes: uint64(r.IntN(2)) << 30, WrittenBytes: uint64(at * 4096), SyncNs: r.Int64N(3) * 1_000_000,
			Errors: uint64(at*200 + r.IntN(200)),
			LastError: observe.LastError{
				Text:    "ERR cellserver keeps limits, not counters: CL.FIXEDWINDOW key max_count period counts and decides in one call",
				Command: fmt.Sprintf("INCRBY user:%08x 1", r.Uint32()),
				Client:  fmt.Sprintf("10.0.0.%d:%d", r.IntN(256), 1024+r.IntN(60_000)), Name: "checkout",
			},
		}, none)
		if due {
			p.record()
		}
	}
}

// TestUpdates checks that differences yield the history, at whatever intervals a browser asks.
func TestUpdates(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 1))
	s := testSource(nil)
	s.Persistence = func() store.Durability { return store.Durability{} }
	p := New(s)
	b, at := newBrowser(p), 0
	if u := b.update(t); !u.Whole || u.Seq != 0 || len(b.rows["t"]) != 0 {
		t.Errorf("before the first point: %+v", u)
	}
	for range 40 {
		n := r.IntN(60)
		addRandom(p, r, at, n)
		at += n
		b.update(t)
		b.check(t)
	}
}

// TestWholeUpdates checks that a browser of another start, one that is late, and nonsense get everything.
func TestWholeUpdates(t *testing.T) {
	p := New(testSource(nil))
	fill(p, history.MaxPoints+50)
	last := history.MaxPoints + 50
	for _, tt := range []struct {
		boot, after string
		whole       bool
		points      int
	}{
		{p.boot, strconv.Itoa(last), false, 0},
		{p.boot, strconv.Itoa(last - 1), false, 1},
		{p.boot, strconv.Itoa(last - history.MaxPoints), false, history.MaxPoints},
		{p.boot, strconv.Itoa(last - history.MaxPoints - 1), true, history.MaxPoints},
		{p.boot, strconv.Itoa(last + 1), true, history.MaxPoints},
		{p.boot, "-1", true, history.MaxPoints},
		{p.boot, "", true, history.MaxPoints},
		{p.boot, "9223372036854775808", true, history.MaxPoints},
		{"another", strconv.Itoa(last), true, history.MaxPoints},
		{"", strconv.Itoa(last), true, history.MaxPoints},
	} {
		b := newBrowser(p)
		b.query.Set("boot", tt.boot)
		b.query.Set("after", tt.after)
		if u := b.update(t); u.Whole != tt.whole || len(b.rows["t"]) != tt.points || u.Seq != last || u.StepMs != 2000 || u.AtMs != testNowNs/1e6 {
			t.Errorf("boot %q, after %q: whole is %v, %d points, up to %d", tt.boot, tt.after, u.Whole, len(b.rows["t"]), u.Seq)
		}
	}
	if New(testSource(nil)).boot == p.boot {
		t.Error("two starts have one name")
	}
}

// TestHave checks that an update has just the parts that differ from what the browser shows.
func TestHave(t *testing.T) {
	s := testSource(nil)
	limited := limitsOf(t, definition("api", perPeriod(1, 1, 1)))
	s.Limits = limited.All
	p := New(s)
	p.record()
	fill(p, 3)
	b := newBrowser(p)
	v := p.view(httptest.NewRequest(http.MethodGet, "/?lang=en", nil))
	if u := b.update(t); len(u.Parts) != len(v.parts()) {
		t.Errorf("%d parts at first, want %d", len(u.Parts), len(v.parts()))
	}
	body := get(t, p, "/?lang=en").Body.String()
	for id, html := range b.parts {
		if !strings.Contains(body, ` id="`+id+`"`) || !strings.Contains(body, html) {
			t.Errorf("the page has no %s as the update has it", id)
		}
	}
	ids := func(u update) []string { return slices.Sorted(maps.Keys(u.Parts)) }
	if got := ids(b.update(t)); len(got) != 0 {
		t.Errorf("nothing has changed but %q", got)
	}
	decided(limited, "api", true, 1)
	p.record()
	p.history.Add(testNowNs+5*int64(history.Interval), history.Sample{}, p.source.Latency())
	if got := ids(b.update(t)); !slices.Contains(got, "limits") || slices.Contains(got, "minutes") {
		t.Errorf("changed are %q, want the limits among them, and not the minutes", got)
	}
	if got := ids(b.update(t)); len(got) != 0 {
		t.Errorf("nothing has changed again but %q", got)
	}
	b.query.Set("lang", "zh")
	if got := ids(b.update(t)); !slices.Contains(got, "now") || !slices.Contains(got, "limits") {
		t.Errorf("in another language changed are %q", got)
	}
	b.query.Set("key", "k")
	b.query.Set("by", "throttle 3 1 60")
	if got := ids(b.update(t)); !slices.Contains(got, "drawer") || slices.Contains(got, "now") || !strings.Contains(b.parts["drawer"], "verdict") {
		t.Errorf("asked for a key, changed are %q", got)
	}
	for _, nonsense := range []string{"", "x", strings.Repeat("A", 1000), "\x00\xff"} {
		b.query.Set("have", nonsense)
		if u := b.update(t); len(u.Parts) != len(v.parts()) {
			t.Errorf("with %q: %q", nonsense, ids(u))
		}
	}
}

// received returns the size of a compressed response with its head. HTTP adds a date, a length and a status.
func received(t *testing.T, p *Page, target string) int {
	t.Helper()
	w := get(t, p, target, "Accept-Encoding", "gzip, deflate")
	var head strings.Builder
	_ = w.Header().Write(&head)
	if got := w.Header().Get("Content-Encoding"); got != "gzip" {
		t.Errorf("Content-Encoding: got %q, want gzip", got)
	}
	return head.Len() + w.Body.Len() + 100
}

// busySource is a server with 20 hot keys of 36 bytes, 20 named limits and two replicas, all of which change
// all the time.
func busySource(t *testing.T, r *rand.Rand) Source {
	s := testSource(nil)
	var definitions []namedlimit.Definition
	for i := range 20 {
		definitions = append(definitions, definition(fmt.Sprintf("limit-%d", i), perPeriod(100, 1+int64(r.IntN(1000)), 60)))
	}
	registry := limitsOf(t, definitions...)
	s.Limits = func() []*namedlimit.Limit {
		for i := range 20 {
			decided(registry, fmt.Sprintf("limit-%d", i), i%3 == 0, r.IntN(200))
		}
		return registry.All()
	}
	s.Replication = func() replicas.Status {
		st := leaderStatus()
		st.Offset = r.Int64N(1 << 40)
		for i := range st.Replicas {
			st.Replicas[i].LagNs, st.Replicas[i].LagBytes = r.Int64N(1e9), r.Int64N(1<<20)
		}
		return st
	}
	var names []string
	for range 20 {
		names = append(names, fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<16), r.IntN(1<<16), r.Uint64N(1<<48)))
	}
	s.Top = func(ranking topkeys.Ranking, n int) []topkeys.Entry {
		n = min(n, 10)
		entries := make([]topkeys.Entry, n)
		for i := range entries {
			perSec := 10_000 * r.Float64() / float64(i+1)
			entries[i] = topkeys.Entry{
				Name: names[int(ranking)*n+i], Share: r.Float64() / 10,
				Recent: perSec, RecentError: perSec / 10, IsRecent: true,
				Terms: limiter.Terms{Numbers: limiter.Numbers{16, 30, 60}},
			}
		}
		return entries
	}
	return s
}

// TestSizes bounds the traffic of an open page: 100 KB at first, and 3 KB for each update.
func TestSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 2))
	p := New(busySource(t, r))
	addRandom(p, r, 0, history.MaxPoints+1)
	page, first := received(t, p, "/?lang=en"), received(t, p, "/live.json?lang=en")
	b := newBrowser(p)
	b.update(t)
	if page+first > 100_000 {
		t.Errorf("%d bytes of the page and %d of its history: more than 100,000", page, first)
	}
	most, got := 0, map[string]int{}
	for i, at := 0, history.MaxPoints+1; i < 40; i++ { // more than a minute
		samples := 1 + i%3/2 // every third update is late by a sample
		addRandom(p, r, at, samples)
		at += samples
		most = max(most, received(t, p, "/live.json?"+b.query.Encode()))
		for id := range b.update(t).Parts {
			got[id]++
		}
	}
	if got["now"] != 40 || got["top"] < 20 || got["limits"] < 10 {
		t.Errorf("40 updates had %v", got)
	}
	if most > 3_000 {
		t.Errorf("an update takes %d bytes, more than 3,000", most)
	}
	t.Logf("page %d, history %d, update at most %d bytes", page, first, most)
}

// TestConcurrently takes samples and serves pages at once, for the race detector.
func TestConcurrently(t *testing.T) {
	p := New(testSource(nil))
	var wg sync.WaitGroup
	for _, path := range []string{"/", "/live.json", "/live.json?after=3&boot=" + p.boot} {
		wg.Go(func() {
			for range 50 {
				get(t, p, path)
			}
		})
	}
	fill(p, 50)
	wg.Wait()
}

func TestHead(t *testing.T) {
	p := New(testSource(nil))
	for _, path := range []string{"/", "/live.json"} {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(http.MethodHead, path, nil))
		if want := get(t, p, path).Header(); w.Code != http.StatusOK || !maps.EqualFunc(w.Header(), want, slices.Equal[[]string]) {
			t.Errorf("%s: %d, %v, want %v", path, w.Code, w.Header(), want)
		}
	}
}

// TestCompression checks that gzip is used if accepted, but not for other sites.
func TestCompression(t *testing.T) {
	p := New(testSource(nil))
	for _, tt := range []struct {
		accepted, site string
		want           string
	}{
		{"", "", ""}, {"gzip", "", "gzip"}, {"br, GZIP;q=0.5", "same-origin", "gzip"}, {"gzip;q=0", "", ""}, {"gzip; q=0.000", "", ""},
		{"gzip;q=0.001", "none", "gzip"}, {"deflate, br", "", ""}, {"gzip", "cross-site", ""},
	} {
		for _, path := range []string{"/", "/live.json"} {
			w := get(t, p, path, "Accept-Encoding", tt.accepted, "Sec-Fetch-Site", tt.site)
			if got := w.Header().Get("Content-Encoding"); got != tt.want {
				t.Errorf("%s for %q of %q: %q, want %q", path, tt.accepted, tt.site, got, tt.want)
			}
		}
	}
}

// TestStyle counts braces: one too many silently drops the rule after it.
func TestStyle(t *testing.T) {
	depth := 0
	for n, line := range strings.Split(style(), "\n") {
		if depth += strings.Count(line, "{") - strings.Count(line, "}"); depth < 0 {
			t.Fatalf("line %d of the style sheet: a brace too many", n+1)
		}
	}
	if depth != 0 {
		t.Errorf("%d braces of the style sheet are not closed", depth)
	}
}
