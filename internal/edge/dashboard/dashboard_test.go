package dashboard

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/decide/histogram"
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/edge/door"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func TestPage(t *testing.T) {
	p := New(testSource(nil))
	page := body(t, p, "")
	wantText(t, page, `<html lang="en">`, "1.2.3", "The first values appear in a few seconds.", `id="chart-decisions"`, "<title>cellserver</title>")
	fill(p, 3)
	page = body(t, p, "")
	wantText(t, page, `<dt>Allowed per second</dt><dd><span class="value">10</span>`, `<dt>Limited per second</dt><dd><span class="value">1</span>`,
		"9.1\u00a0%", `<dt>Keys</dt><dd><span class="value">3,000</span>`, "3\u00a0MiB", `aria-label="Decisions per second: allowed 10, limited 1"`,
		`<li data-col="limited"><span class="swatch limited"></span>limited <b>1</b></li>`, "<title>9\u00a0% limited · cellserver</title>", ">22:13</time>")
	wantText(t, body(t, p, "lang=zh"), "<title>限流 9\u00a0% · cellserver</title>", "<dt>放行/秒</dt>", "热点 Key", `自 <span id="lost-at"></span> 起服务器无响应`)
}

// TestFacts checks what the page says of the server, and its warnings.
func TestFacts(t *testing.T) {
	s := testSource(nil)
	facts := Facts{
		Host: "throttle-1", Listens: []Listener{{"tcp", "10.0.0.5:6380"}, {"unix", "/run/<s>"}}, StartedNs: testNowNs - 3_720_000_000_000, Revision: "0123456789abcdef",
		Warnings: []Warning{NoPassword, RefusesHosts, OpenPage, UnencryptedPage},
	}
	s.Facts = func() Facts { return facts }
	p := New(s)
	page := body(t, p, "lang=en")
	wantText(t, page, "<dd>throttle-1</dd>", "<dt>TCP</dt><dd>10.0.0.5:6380</dd>", "<dt>UNIX</dt><dd>/run/&lt;s&gt;</dd>", "<dd>1 h 2 min</dd>", "<dd>1.2.3 (012345678)</dd>", "<dd>in memory</dd>",
		"<li>Other hosts can use this server without a password", "<li>Clients on other hosts are refused", "<li>Other hosts can read this page", "<li>The password of this page")
	facts.Warnings, facts.Store = nil, "redis://10.0.0.9:6379"
	page = body(t, p, "lang=zh")
	wantText(t, page, "<dt>主机</dt>", "<dd>1 小时 2 分钟</dd>", "<dd>redis://10.0.0.9:6379</dd>")
	lacksText(t, page, `class="warnings"`)
	for ns, want := range map[time.Duration]string{0: "under a minute", 59 * time.Minute: "59 min", 49 * time.Hour: "2 d 1 h"} {
		if got := words.English().Span(ns); got != want {
			t.Errorf("%s is written %q, want %q", ns, got, want)
		}
	}
}

// TestFirstCall checks that a server without calls shows a command to try.
func TestFirstCall(t *testing.T) {
	p := New(testSource(nil))
	wantText(t, body(t, p, "lang=en"), "No calls yet.", "<code>redis-cli -p 6380 cl.throttle laoqian:reply 15 30 60 1</code>")
	wantText(t, body(t, p, "lang=zh"), "还没有收到请求")
	fill(p, 1)
	page := body(t, p, "lang=en")
	wantText(t, page, "No key stands out.")
	lacksText(t, page, "No calls yet.")
}

// TestMaximum checks the use of each maximum and what was evicted or refused, in both languages.
func TestMaximum(t *testing.T) {
	p := New(testSource(nil))
	for i := range uint64(3) {
		p.addSample(int(i), Sample{
			Connections: 8, MaxConnections: 10_000, MemoryBytes: 96 << 20, MaxMemoryBytes: 150 << 20, Evicted: 100 * i, Refused: 20 * i,
			TableBytes: 512 << 10, MaxTableBytes: 64 << 20, ScriptsEnded: 7,
		})
	}
	wantText(t, body(t, p, "lang=en"), `Memory of limiters</dt><dd><span class="value">512`+"\u00a0KiB <small>of 64\u00a0MiB</small></span><meter min=\"0\" max=\"1\" low=\"0.75\" high=\"0.9\" optimum=\"0\" value=\"0.008\"",
		`<dt>Connections</dt><dd><span class="value">8 <small>of 10,000</small>`, `Keys evicted per second</dt><dd><span class="value">50<`,
		`New keys refused per second</dt><dd><span class="value">10<`, `id="chart-evictions"`, "<td>96\u00a0MiB<meter", "<dt>scripts ended</dt><dd>7</dd>")
	wantText(t, body(t, p, "lang=zh"), `淘汰 Key/秒</dt><dd><span class="value">50<`, `拒绝新 Key/秒</dt><dd><span class="value">10<`,
		`8 <small>/ 10,000</small>`)
}

// TestEviction checks the warning while keys are evicted or refused, and the tile of a part that is nearly
// full.
func TestEviction(t *testing.T) {
	const full = "Memory is full."
	p := New(testSource(nil))
	at := 0
	add := func(n int, s Sample) {
		for range n {
			s.MaxTableBytes, s.MemoryBytes, s.MaxMemoryBytes = 64<<20, 96<<20, 150<<20
			if s.TableBytes == 0 {
				s.TableBytes = 58 << 20
			}
			p.addSample(at, s)
			at++
		}
	}
	add(2, Sample{TableBytes: 48 << 20})
	lacksText(t, body(t, p, "lang=en"), full, "<title>⚠")
	wantText(t, body(t, p, "lang=en"), noFault)
	add(1, Sample{TableBytes: 50 << 20})
	wantText(t, body(t, p, "lang=en"), announced(memorySaturated, "More than 75\u00a0% of the memory for limiters is in use. At 100 %"),
		tileOf("keymemory", warning, "Memory of limiters", "50 <small>of 64"), "<title>⚠ cellserver</title>")
	add(1, Sample{})
	lacksText(t, body(t, p, "lang=en"), full, announced(memorySaturated, ""))
	wantText(t, body(t, p, "lang=en"), announced(memoryFull, "More than 90\u00a0% of the memory"), tileOf("keymemory", critical, "Memory of limiters", "58 <small>of 64"))
	add(1, Sample{Evicted: 12_000})
	alert := announced(memoryFull, full+" Keys are evicted before they expire and get their full burst again.</p>")
	wantText(t, body(t, p, "lang=en"), alert, "<p>12,000 within the last 5 minutes. Raise --maxmemory")
	wantText(t, body(t, p, "lang=zh"), `aria-label="严重"></span>内存已满。Key 在过期之前`, "共 12,000 次（最近 5 分钟）。请增大")
	add(1, Sample{Evicted: 15_000})
	wantText(t, body(t, p, "lang=en"), alert, "<p>15,000 within")
	add(1, Sample{Evicted: 15_000, TableBytes: 40 << 20})
	wantText(t, body(t, p, "lang=en"), announced(keysEvicted, full))
	add(148, Sample{Evicted: 15_000})
	wantText(t, body(t, p, "lang=en"), "<p>3,000 within")
	add(1, Sample{Evicted: 15_000})
	lacksText(t, body(t, p, "lang=en"), full) // five minutes later
	add(1, Sample{Evicted: 15_000, Refused: 7})
	wantText(t, body(t, p, "lang=en"), announced(keysRefused, full+" Calls with new keys are refused with -OOM."), "<p>7 within the last 5 minutes.")
}

// TestKinds checks decisions by command, which are shown if there are others than CL.THROTTLE.
func TestKinds(t *testing.T) {
	p := New(testSource(nil))
	var s Sample
	s.Outcomes[limiter.Funnel] = store.Outcomes{Allowed: 3, Limited: 1}
	p.addSample(0, s)
	lacksText(t, body(t, p, ""), "kinds-heading")
	s.Outcomes[limiter.FixedWindow] = store.Outcomes{Allowed: 1, Limited: 1}
	p.addSample(1, s)
	wantText(t, body(t, p, ""), `<th scope="row">CL.THROTTLE</th><td>3</td><td>1</td><td>25`, `<th scope="row">CL.FIXEDWINDOW</th><td>1</td><td>1</td><td>50`)
}

// TestDoors shows protocols beside RESP only where there are some.
func TestDoors(t *testing.T) {
	source := testSource(nil)
	lacksText(t, body(t, New(source), ""), "doors-heading")
	source.Doors = map[string]*door.Stats{"http": door.NewStats(), "grpc": door.NewStats()}
	for _, outcome := range []door.Outcome{door.Allowed, door.Allowed, door.Limited, door.Failed} {
		source.Doors["http"].Count(outcome, 2e6)
	}
	wantText(t, body(t, New(source), ""), `<th scope="row">grpc</th><td>0</td><td>0</td><td>0</td><td>0</td><td>–`,
		`<th scope="row">http</th><td>2</td><td>1</td><td>0</td><td>1</td><td>2`)
}

const hostile = "<img src=x onerror=alert(1)>"

func TestLatencyAndHotKeys(t *testing.T) {
	s := testSource(nil)
	s.Top = func(ranking topkeys.Ranking, _ int) []topkeys.Entry {
		if ranking == topkeys.Limited {
			return nil
		}
		return []topkeys.Entry{
			{Name: hostile, Recent: 12.5, IsRecent: true, CallsPerSecond: 7, Share: 0.25, Terms: limiter.Terms{Numbers: limiter.Numbers{16, 30, 60}}},
			{Name: "\"><script>alert(1)</script>\xff\x00", DB: 3},
			{Name: "long... (#1, 500 bytes)", Cut: true, Recent: 8, RecentError: 1.5, IsRecent: true},
			{Name: "a new one", CallsPerSecond: 109, Error: 2.18, Recent: 3},
		}
	}
	p := New(s)
	fill(p, 3)
	for _, lang := range []string{"en", "zh"} {
		page := body(t, p, "lang="+lang)
		wantText(t, page, `id="chart-latency"`, "P50 <b>953\u00a0ns<", "P99.9 <b>1.91\u00a0µs<",
			"&lt;img src=x onerror=alert(1)&gt;", "12.5", "25\u00a0%", " db 3", "<td><bdi>8 ± 1.50</bdi></td>", "<td><bdi>12.5</bdi></td>", `data-copy="a new one" hidden>`, "</th><td><bdi>–</bdi></td>",
			`&#34;\&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;\xff\x00&#34;`,
			`href="/?by=throttle+15+30+60&amp;db=0&amp;key=%3Cimg+src%3Dx+onerror%3Dalert%281%29%3E&amp;lang=`+lang+`"`,
			`>long... (#1, 500 bytes)</bdi></th>`, `data-copy="&lt;img src=x onerror=alert(1)&gt;" hidden>`)
		noMarkup(t, page)
	}
	wantText(t, body(t, p, "lang=en"), "16 at once, 30 per minute", `<rect class="calls" width="100" height="8">`)
	none := testSource(nil)
	empty := New(none)
	fill(empty, 3)
	wantText(t, body(t, empty, "lang=en"), "No key stands out.")
}

// TestOneTableOfHotKeys: keys of both rankings are in one table, in the chosen order.
func TestOneTableOfHotKeys(t *testing.T) {
	s := testSource(nil)
	s.Top = func(ranking topkeys.Ranking, _ int) []topkeys.Entry {
		if ranking == topkeys.Limited {
			return []topkeys.Entry{{Name: "b", Recent: 5, IsRecent: true, CallsPerSecond: 6, Share: 0.8}, {Name: "c", Recent: 2, IsRecent: true, Share: 0.2}}
		}
		return []topkeys.Entry{{Name: "a", Recent: 100, IsRecent: true, Share: 0.5}, {Name: "b", Recent: 10, IsRecent: true, CallsPerSecond: 12, Share: 0.05}}
	}
	p := New(s)
	fill(p, 3)
	order := func(page string) (keys string) {
		_, table, _ := strings.Cut(page, `id="top"`)
		for _, row := range strings.Split(table, `<tr data-k="0:`)[1:] {
			keys += row[:1]
		}
		return keys
	}
	page := body(t, p, "lang=en")
	wantText(t, page, "<td><bdi>10</bdi></td><td><bdi>5</bdi></td>", `<rect class="calls" width="10" height="8"></rect><rect class="limited" width="5" height="8">`,
		`<th scope="col" aria-sort="descending"><a class="in" href="/?lang=en">calls per second`, "<td><bdi>100</bdi></td><td><bdi>0</bdi></td>")
	if got := order(page); got != "abc" {
		t.Errorf("by calls: %s", got)
	}
	page = body(t, p, "lang=en&top=limited")
	wantText(t, page, `<th scope="col" aria-sort="descending"><a class="in" href="/?lang=en&amp;top=limited">limited per second`)
	if got := order(page); got != "bca" {
		t.Errorf("by limited calls: %s", got)
	}
}

func TestPolicyHoldsForWhatIsInline(t *testing.T) {
	w := get(t, New(testSource(nil)), "/?key=a&by=throttle+1+1+1")
	policy, body := w.Header().Get("Content-Security-Policy"), w.Body.String()
	for _, tag := range []string{"style", "script"} {
		parts := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(body, -1)
		if len(parts) != 1 {
			t.Fatalf("%d of <%s>", len(parts), tag)
		}
		if want := tag + "-src '" + digest(parts[0][1]) + "'"; !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %q", policy, want)
		}
		body = strings.Replace(body, parts[0][1], "", 1)
	}
	wantText(t, policy, "default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'")
	if m := regexp.MustCompile(`\s(style|on[a-z]+)=`).FindString(body); m != "" {
		t.Errorf("the page has the attribute %q, which the policy forbids", m)
	}
	if m := regexp.MustCompile(`(?:src|href|action)="(?:https?:)?//[^"]*`).FindString(body); m != "" {
		t.Errorf("the page links to another host: %s", m)
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store", "Connection": "close",
		"Cross-Origin-Resource-Policy": "same-origin", "Content-Type": "text/html; charset=utf-8",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if got := get(t, New(testSource(nil)), "/live.json").Header().Get(name); name != "Content-Type" && got != want {
			t.Errorf("%s of /live.json: %q, want %q", name, got, want)
		}
	}
}

// TestWithoutScript checks that the page itself has everything but the charts, and that a query reloads it.
func TestWithoutScript(t *testing.T) {
	p := New(testSource(nil))
	fill(p, 3)
	page := body(t, p, "refresh=5&key=a&by=throttle+15+30+60")
	wantText(t, page, `<noscript><meta http-equiv="refresh" content="5"></noscript>`, `class="verdict allowed"`, `class="tile"`, `<tbody id="minutes" data-live><tr`,
		`<div class="scripted">`)
	lacksText(t, body(t, p, ""), "http-equiv")
	for _, m := range regexp.MustCompile(`<button[^>]*>`).FindAllString(page, -1) {
		if !strings.Contains(m, "hidden") && !strings.Contains(m, `type="submit"`) {
			t.Errorf("without a script %s does nothing", m)
		}
	}
}

// TestRun checks that samples follow the clock, that the history is bounded, and that Run ends with its
// context.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testSource(nil)
		s.Now = func() int64 { return time.Now().UnixNano() }
		requests := uint64(0)
		s.Sample = func() Sample {
			requests += 100
			return Sample{Allowed: requests}
		}
		p := New(s)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			p.Run(ctx)
			close(ended)
		}()
		for _, tt := range []struct {
			after time.Duration
			want  int
		}{{0, 0}, {sampleInterval, 1}, {10 * sampleInterval, 11}, {historySpan, historyCount}, {historySpan, historyCount}} {
			time.Sleep(tt.after)
			synctest.Wait()
			points, _, _ := p.history.points()
			if len(points) != tt.want {
				t.Errorf("%d points, want %d", len(points), tt.want)
			}
			for i, point := range points {
				if point.allowed != 50 {
					t.Fatalf("%g a second, want 50", point.allowed)
				}
				if i > 0 && point.atNs-points[i-1].atNs != int64(sampleInterval) {
					t.Fatalf("point %d is not after the one before", i)
				}
			}
		}
		cancel()
		<-ended
	})
}

// TestHistoryOfASuspendedServer checks that the history stays within 15 minutes although samples came late.
func TestHistoryOfASuspendedServer(t *testing.T) {
	var h history
	none := histogram.NewScale().NewDurations()
	nowNs := int64(testNowNs)
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {sampleInterval, 1}, {sampleInterval, 2}, {historySpan - sampleInterval, 2}, {sampleInterval, 2}, {time.Hour, 1}} {
		nowNs += int64(tt.after)
		h.add(nowNs, Sample{}, none)
		if points, _, _ := h.points(); len(points) != tt.want || len(points) > 0 && points[len(points)-1].atNs != nowNs {
			t.Errorf("after %s: %d points, want %d", tt.after, len(points), tt.want)
		}
	}
}

func TestFetchedOncePerSample(t *testing.T) {
	calls := 0
	s := testSource(nil)
	s.Top = func(topkeys.Ranking, int) []topkeys.Entry {
		calls++
		return nil
	}
	p := New(s)
	for i := range 3 {
		fill(p, i+1)
		for range 5 {
			get(t, p, "/")
		}
	}
	if calls != 2*3 {
		t.Errorf("the hot keys were fetched %d times, want 6", calls)
	}
}

// BenchmarkUpdate measures what an open page costs every two seconds.
func BenchmarkUpdate(b *testing.B) {
	p := New(testSource(nil))
	fill(p, historyCount)
	r := httptest.NewRequest(http.MethodGet, "/live.json?after=448&boot="+p.boot, nil)
	for b.Loop() {
		p.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// TestErrors checks the rate of error replies and the last one, in both languages, for as long as the
// history.
func TestErrors(t *testing.T) {
	now := int64(testNowNs)
	s := testSource(nil)
	s.Now = func() int64 { return now }
	p := New(s)
	for i := range uint64(3) {
		p.history.add(now+int64(i)*int64(sampleInterval), Sample{Errors: 382 * i, OwnErrors: 380 * i, LastError: observe.LastError{
			Text: "ERR no '" + hostile + "'", Command: "INCR \"><script>alert(1)</script>",
			Client: "10.0.0.1:5000", Name: hostile,
		}}, p.source.Latency())
	}
	now += int64(2*time.Minute) + 2*int64(sampleInterval)
	for lang, want := range map[string][]string{
		"en": {tileOf("errors", warning, "Errors per second", "191<"), announced(errorReplies, "Calls get error replies, more than 1 a second."), "<p>760 within", "<p>Last error: <code>ERR no &#39;&lt;img", " (&lt;img src=x onerror=alert(1)&gt;) · 2 min ago"},
		"zh": {`错误返回/秒</dt><dd><span class="value">191<`, "请求收到错误返回，每秒超过 1 次。", "<p>最近一次错误：<code>ERR no &#39;&lt;img", " · 2 分钟前</p>"},
	} {
		page := body(t, p, "lang="+lang)
		call := "<code>INCR &#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;</code> · 10.0.0.1:5000 (&lt;img"
		wantText(t, page, append(want, call)...)
		noMarkup(t, page)
	}
	now += int64(historySpan)
	lacksText(t, body(t, p, ""), "Last error")
	p.history.add(now, Sample{Errors: 764, OwnErrors: 760}, p.source.Latency())
	wantText(t, body(t, p, ""), `<dt>Errors per second</dt><dd><span class="value">0<`)
}
