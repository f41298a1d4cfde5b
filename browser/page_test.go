package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/redis/go-redis/v9"

	"cellserver/internal/dashboard"
	"cellserver/internal/decide"
	"cellserver/internal/funnel"
	"cellserver/internal/histogram"
	"cellserver/internal/persist"
	"cellserver/internal/store"
	"cellserver/internal/topkeys"
)

const hostile = "<img src=x onerror=alert(1)>"

// TestUnderLoad: with a real server and real clients, the curves move, and inspecting a key does not change it.
func TestUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the server and takes half a minute")
	}
	s, err := startServer(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	loadCtx, endLoad := context.WithCancel(t.Context())
	loaded := make(chan error, 2)
	go func() { loaded <- load(loadCtx, s.redis) }()
	go func() { loaded <- loadHostileKey(loadCtx, s.redis) }()
	t.Cleanup(func() {
		endLoad()
		if err := errors.Join(<-loaded, <-loaded); err != nil {
			t.Error(err)
		}
	})
	rdb := redis.NewClient(&redis.Options{Addr: s.redis})
	t.Cleanup(func() { _ = rdb.Close() })
	for range 4 {
		if err := rdb.Do(t.Context(), "CL.THROTTLE", hostile, 9, 1, 3600, 1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	v := visit(t, s.page)
	v.open("?lang=en")
	const curve = `document.querySelector("#chart-decisions .stroke.first")?.getAttribute("d")`
	v.until(`(` + curve + ` ?? "").split("L").length > 2`)
	before := eval[string](v, curve)
	v.until(curve + ` !== ` + quoted(before))
	if now := v.text("#now"); !strings.Contains(now, "allowed /s") || strings.Contains(now, "allowed /s\n0\n") {
		t.Errorf("under load the page says %q", now)
	}

	const hottest = hostile + " db 1, user:0, user:1, user:2"
	v.until(`[...document.querySelectorAll("#top table")].map((table) =>
		[...table.querySelectorAll("tbody th")].slice(0, 4).map((key) => key.innerText).join(", ")).join("; ") === ` +
		quoted(hottest+"; "+hottest)) // most requested, and most limited

	ttl := rdb.PTTL(t.Context(), hostile).Val()
	v.send("#field-key", hostile)
	v.send("#field-max_burst", "9")
	v.send("#field-count", "1")
	v.send("#field-period", "3600"+kb.Enter)
	v.answered()
	answer := v.text("#answer")
	for _, want := range []string{hostile, "The next call is allowed", "of 10 units", "1 every 3,600 s", "0 10 6 -1"} {
		if !strings.Contains(answer, want) {
			t.Errorf("the answer %q lacks %q", answer, want)
		}
	}
	if eval[int](v, `document.querySelectorAll("img").length`) != 0 {
		t.Error("the key became an image")
	}
	if after := rdb.PTTL(t.Context(), hostile).Val(); after > ttl || ttl-after > time.Minute {
		t.Errorf("inspecting the key changed its TTL from %s to %s", ttl, after)
	}
}

// loadHostileKey makes the hostile key of database 1 the hottest of all, until ctx is done.
func loadHostileKey(ctx context.Context, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr, DB: 1})
	defer func() { _ = rdb.Close() }()
	for ctx.Err() == nil {
		pipe := rdb.Pipeline()
		for range 100 {
			pipe.Do(ctx, "CL.THROTTLE", hostile, 9, 1, 3600, 1)
		}
		if _, err := pipe.Exec(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// quoted returns a JavaScript string literal.
func quoted(s string) string {
	b, _ := json.Marshal(s) // a string cannot fail
	return string(b)
}

// fakeServer serves a page whose values grow, with latencies, a disk at fault, and hot keys, some of them hostile.
func fakeServer(t *testing.T) string {
	t.Helper()
	var calls atomic.Uint64
	began := time.Now()
	scale := histogram.NewScale()
	durations := scale.NewDurations() // used by p.Run only
	p := dashboard.New(dashboard.Source{
		Version: "test",
		Now:     func() int64 { return time.Now().UnixNano() },
		Sample: func() dashboard.Sample {
			n := calls.Add(1)
			return dashboard.Sample{Allowed: n * n * 1000, Limited: n * 100, Connections: 12, Keys: int(n), MemoryBytes: n << 20}
		},
		Look: func(nowNs int64, _ store.Key, limit funnel.Limit) (p decide.Probe, _ error) {
			tatNs := nowNs + 1e9
			_, p.Now = limit.Throttle(tatNs, nowNs, 0)
			_, p.Next = limit.Throttle(tatNs, nowNs, 1)
			p.Known, p.Outlook = true, limit.Outlook(tatNs, nowNs)
			return p, nil
		},
		Persistence: func() persist.Status {
			fault := errors.New(hostile + strings.Repeat("/directory", 20) + "/log-1: no space left on device")
			return persist.Status{Interval: time.Second, Fault: fault, FaultSinceNs: began.UnixNano()}
		},
		Databases:   16,
		MaxKeyBytes: 4096,
		Latency: func() histogram.Snapshot {
			durations.Observe(1000, 1000)
			durations.Observe(1_000_000, 10)
			sum := scale.NewSnapshot()
			sum.Add(durations)
			return sum
		},
		Top: func(ranking topkeys.Ranking, _ int) []topkeys.Entry {
			keys := []topkeys.Entry{
				{Name: hostile, CallsPerSecond: 100, Share: 0.5},
				{Name: "\xff\x00\u202e\"><script>alert(2)</script>", DB: 2, CallsPerSecond: 50, Share: 0.25},
				{Name: "{{alert(3)}}'\"`--></style>", CallsPerSecond: 10, Share: 0.05},
				{Name: strings.Repeat("long", 32), Cut: true, CallsPerSecond: float64(calls.Load())},
			}
			if ranking == topkeys.Limited {
				slices.Reverse(keys)
			}
			return keys
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		p.Run(ctx)
		close(ended)
	}()
	web := httptest.NewServer(p)
	t.Cleanup(func() {
		web.Close()
		cancel()
		<-ended
	})
	return web.URL + "/"
}

// TestKeysAreText: the tables show any key as text, and its link inspects exactly that key.
func TestKeysAreText(t *testing.T) {
	v := visit(t, fakeServer(t))
	v.open("?lang=en")
	top := v.text("#top")
	for _, want := range []string{hostile, `"\xff\x00\xe2\x80\xae\"><script>alert(2)</script>"`, "{{alert(3)}}'\"`--></style>"} {
		if !strings.Contains(top, want) {
			t.Errorf("the hot keys %q lack %q", top, want)
		}
		v.open("?lang=en&max_burst=15&count=30&period=60") // without an answer
		eval[chromedp.Void](v, `[...document.querySelectorAll("#top a")].find((a) => a.textContent === `+quoted(want)+`).click()`)
		v.answered()
		if got := v.text("#answer h3"); got != "The funnel of "+want {
			t.Errorf("the link to %q leads to %q", want, got)
		}
	}
	if eval[int](v, `document.querySelectorAll("img, script").length`) != 1 {
		t.Error("a key became markup")
	}
}

// TestKeyboard: Tab reaches each control in visual order, and all can be used.
func TestKeyboard(t *testing.T) {
	v := visit(t, fakeServer(t))
	v.open("?lang=en")
	const focused = `((e) => e.id || e.className || (e.closest("nav, #top")?.id || e.localName))(document.activeElement)`
	var order []string
	for range 30 {
		v.do(chromedp.KeyEvent(kb.Tab))
		at := eval[string](v, focused)
		if len(order) > 0 && (at == "body" || at == order[0]) {
			break
		}
		if len(order) == 0 || order[len(order)-1] != at {
			order = append(order, at)
		}
	}
	want := []string{"skip", "pause", "a", "summary", "top", "field-key", "field-db", "field-max_burst", "field-count", "field-period", "button"}
	if !slices.Equal(order, want) {
		t.Errorf("Tab goes %q, want %q", order, want)
	}

	// The form by keyboard: from the key to the button.
	v.do(chromedp.Focus(chromedp.CSS("#field-key")))
	for _, text := range []string{"a", "", "15", "30", "60"} {
		if text != "" {
			v.do(chromedp.KeyEvent(text))
		}
		v.do(chromedp.KeyEvent(kb.Tab))
	}
	v.do(chromedp.KeyEvent(kb.Enter))
	v.answered()
	if got := v.text("#answer"); !strings.Contains(got, "The next call is allowed") {
		t.Errorf("the answer is %q", got)
	}
}

// TestFocusStays: focus, open details and typed text survive updates; and updates can be paused.
func TestFocusStays(t *testing.T) {
	v := visit(t, fakeServer(t))
	v.open("?lang=en")
	changed := func() {
		t.Helper()
		v.until(`document.querySelector("#now").innerText !== ` + quoted(v.text("#now")))
	}
	v.send("#field-key", "half a ke")
	v.click("summary")
	eval[any](v, `document.querySelector("#top a").focus()`) // at once, for the page replaces it
	href := eval[string](v, `document.activeElement.href`)
	changed()
	if got := eval[string](v, `document.activeElement.href ?? ""`); got != href {
		t.Errorf("the focus went from %q to %q", href, got)
	}
	if got := eval[string](v, `document.querySelector("#field-key").value`); got != "half a ke" {
		t.Errorf("what was typed became %q", got)
	}
	if !eval[bool](v, `document.querySelector("details").open`) {
		t.Error("the table was closed")
	}

	v.click("#pause")
	if got := v.text("#pause"); got != "Resume" {
		t.Errorf("on a paused page the button says %q", got)
	}
	before := v.text("#now")
	eval[chromedp.Void](v, `new Promise((done) => setTimeout(done, 5000))`)
	if v.text("#now") != before {
		t.Error("the values change although the page is paused")
	}
	v.click("#pause")
	v.until(`document.querySelector("#now").innerText !== ` + quoted(before))
}

// TestLanguagesSchemesAndPhone: both languages, light and dark, at three widths, without horizontal scrolling.
func TestLanguagesSchemesAndPhone(t *testing.T) {
	v := visit(t, fakeServer(t))
	call(v, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{
		Headers: network.Headers{"Accept-Language": "zh-CN,zh;q=0.9"},
	})
	v.open("")
	if got := v.text("#history-heading"); got != "最近 15 分钟" {
		t.Errorf("a Chinese browser is shown %q", got)
	}
	v.click("nav a")
	v.do(chromedp.WaitVisible(chromedp.CSS(`html[lang="en"] main`)))
	grounds := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		for _, lang := range []string{"en", "zh"} {
			for _, width := range []int64{320, 390, 1280} {
				v.do(chromedp.EmulateViewport(width, 844), colorScheme(scheme))
				v.open("?lang=" + lang + "&key=" + strings.Repeat("long", 1000) + "&max_burst=15&count=30&period=60")
				v.click("summary")
				if got := eval[int64](v, `document.documentElement.scrollWidth`); got > width {
					t.Errorf("%s, %s, %d pixels: the page is %d wide", scheme, lang, width, got)
				}
				if got := eval[[]string](v, tooNarrow); len(got) > 0 {
					t.Errorf("%s, %s, %d pixels: too narrow for %q", scheme, lang, width, got)
				}
			}
		}
		v.until(`document.querySelector(".stroke.first") !== null`) // the first line comes with the second sample
		grounds[scheme] = eval[string](v, `getComputedStyle(document.body).backgroundColor + getComputedStyle(document.querySelector(".stroke.first")).stroke`)
	}
	if grounds["light"] == grounds["dark"] || grounds["light"] != "rgb(251, 251, 250)rgb(11, 92, 173)" {
		t.Errorf("the colours are %q", grounds)
	}
}

// tooNarrow returns the texts that overflow their boxes.
const tooNarrow = `[...document.querySelectorAll(".tiles div, figure, .tops > div, .funnel dl")]
	.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText)`

// TestScreenReader: the accessibility tree has landmarks, and a name for each image and each control.
func TestScreenReader(t *testing.T) {
	v := visit(t, fakeServer(t))
	v.open("?lang=en&key=a&max_burst=15&count=30&period=60")
	v.until(`document.querySelector("#chart-latency .stroke.third") !== null`)
	nodes := call(v, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes
	roles := map[string]int{}
	for _, n := range nodes {
		if n.Ignored {
			continue
		}
		role := strings.Trim(string(n.Role.Value), `"`)
		name := strings.Trim(string(n.Name.Value), `"`)
		roles[role]++
		switch role {
		case "image", "textbox", "button", "link", "region":
			if name == "" {
				t.Errorf("a %s has no name", role)
			}
		}
	}
	for role, least := range map[string]int{"banner": 1, "navigation": 1, "main": 1, "region": 4, "image": 6, "textbox": 5, "status": 1, "alert": 1, "heading": 10, "table": 2} {
		if roles[role] < least {
			t.Errorf("%d of role %s, want at least %d (all: %v)", roles[role], role, least, roles)
		}
	}
}

// TestFault: the warning is announced once, and not at each update, and the cause is text.
func TestFault(t *testing.T) {
	v := visit(t, fakeServer(t))
	v.open("?lang=en")
	eval[chromedp.Void](v, `document.querySelector("#fault [role=alert]").announced = true`)
	for range 2 {
		v.until(`document.querySelector("#now").innerText !== ` + quoted(v.text("#now")))
	}
	if !eval[bool](v, `document.querySelector("#fault [role=alert]").announced === true`) {
		t.Error("an update replaced the warning")
	}
	if got := v.text("#fault"); !strings.Contains(got, "Changes have not reached the disk since") || !strings.Contains(got, hostile+"/directory") {
		t.Errorf("the page warns: %q", got)
	}
}

// TestLostServer: when the server is gone, the page says so, and since when.
func TestLostServer(t *testing.T) {
	s, err := startServer(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	path, err := findBrowser()
	if err != nil {
		s.stop()
		visit(t, s.page) // skips or fails
	}
	ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
	defer cancel()
	tab, closeTab := openTab(ctx, path) // the console may complain here
	defer closeTab()
	v := &visitor{t, tab, s.page}
	v.open("?lang=en")
	s.stop()
	v.until(`!document.querySelector("#lost").hidden`)
	if got := v.text("#lost"); !strings.Contains(got, "The server has not answered since") {
		t.Errorf("the page says %q", got)
	}
}
