package main

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"cellserver/internal/test/processtest"
)

var axe = sync.OnceValues(func() (string, error) {
	install := exec.Command("npm", "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--loglevel=error")
	install.Stderr = os.Stderr
	if err := install.Run(); err != nil {
		return "", err
	}
	source, err := os.ReadFile(filepath.Join("node_modules", "axe-core", "axe.min.js"))
	return string(source), err
})

func axeSource(t *testing.T) string {
	t.Helper()
	processtest.Need(t, "npm")
	source, err := axe()
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// violations returns what axe-core finds by all its rules but the experimental ones.
func (v *visitor) violations(source string) []string {
	v.t.Helper()
	eval[chromedp.Void](v, source+"; undefined")
	return eval[[]string](v, `axe.run({ rules: { "target-size": { enabled: true } } }).then(({ violations }) =>
		violations.flatMap((found) => found.nodes.map((node) => found.id + ": " + node.html + ": " + node.failureSummary)))`)
}

func TestAxe(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	source := axeSource(t)
	full, crowded, empty := visit(t, fakeServer(t).url), visit(t, crowdedServer(t).url), visit(t, emptyServer(t).url)
	whole := "&key=" + url.QueryEscape("cl.throttle a 15 30 60")
	limited := "&db=2&by=throttle+15+30+60&key=" + url.QueryEscape(binary)
	for _, state := range []struct {
		name string
		*visitor
		query, scheme string
		width         int64
		prepare       func(v *visitor)
	}{
		{name: "light", visitor: full, query: "?lang=en", scheme: "light", width: 1440},
		{name: "dark", visitor: full, query: "?lang=en", scheme: "dark", width: 1440},
		{name: "phone", visitor: full, query: "?lang=en", scheme: "light", width: 390},
		{name: "Chinese phone", visitor: full, query: "?lang=zh", scheme: "dark", width: 390},
		{name: "key", visitor: full, query: "?lang=en" + whole, scheme: "light", width: 1440},
		{name: "key, dark, Chinese", visitor: full, query: "?lang=zh" + whole, scheme: "dark", width: 1440},
		{name: "key, phone", visitor: full, query: "?lang=en" + whole, scheme: "dark", width: 390},
		{name: "limited key", visitor: full, query: "?lang=en" + limited, scheme: "light", width: 390},
		{name: "limited key, dark", visitor: full, query: "?lang=en" + limited, scheme: "dark", width: 1440},
		{name: "window", visitor: full, query: "?lang=en&by=fixedwindow+5+3600&key=exports", scheme: "light", width: 1440},
		{name: "bucket", visitor: full, query: "?lang=zh&by=bucket+5&key=cards", scheme: "dark", width: 1440},
		{name: "key without a limit", visitor: full, query: "?lang=en&key=twice", scheme: "light", width: 900},
		{name: "unknown key", visitor: full, query: "?lang=en&key=nobody", scheme: "dark", width: 900},
		{name: "wrong key", visitor: full, query: "?lang=en&key=%22half", scheme: "light", width: 900},
		{name: "wrong key, phone", visitor: full, query: "?lang=zh&key=%22half", scheme: "dark", width: 390},
		{name: "key of a limit", visitor: full, query: "?lang=en&key=api:user:1", scheme: "light", width: 1440},
		{name: "key of a limit, phone", visitor: full, query: "?lang=zh&key=api:user:1", scheme: "dark", width: 390},
		{name: "overridden", visitor: full, query: "?lang=en&limit=api&key=out", scheme: "light", width: 900},
		{name: "limit", visitor: full, query: "?lang=en&limit=api", scheme: "light", width: 1440},
		{name: "limit, dark, Chinese", visitor: full, query: "?lang=zh&limit=api", scheme: "dark", width: 2560},
		{name: "limit, phone", visitor: full, query: "?lang=en&limit=api", scheme: "light", width: 390},
		{name: "empty", visitor: empty, query: "?lang=en", scheme: "light", width: 1440},
		{name: "hover", visitor: full, query: "?lang=en", scheme: "dark", width: 1440, prepare: func(v *visitor) { v.do(hover("latency", 0.7)) }},
		{name: "paused", visitor: full, query: "?lang=en", scheme: "dark", width: 390, prepare: func(v *visitor) { v.click("#pause") }},
		{name: "50 limits", visitor: crowded, query: "?lang=en", scheme: "light", width: 1440},
		{name: "50 limits, wide", visitor: crowded, query: "?lang=zh&unfold=1&top=limited", scheme: "dark", width: 2560},
		{name: "50 limits, phone", visitor: crowded, query: "?lang=en&filter=tenant&sort=near", scheme: "light", width: 390},
		{name: "no such limit", visitor: crowded, query: "?lang=en&filter=none&limit=none", scheme: "dark", width: 1440},
		{name: "limit with a course", visitor: crowded, query: "?lang=en&limit=tenant-07", scheme: "light", width: 2560, prepare: courseDrawn},
		{name: "shadow with a course", visitor: crowded, query: "?lang=zh&limit=tenant-09", scheme: "dark", width: 390, prepare: courseDrawn},
		{name: "right to left", visitor: full, query: "?lang=en" + limited, scheme: "light", width: 1440, prepare: rightToLeft},
		{name: "right to left, phone", visitor: crowded, query: "?lang=en", scheme: "dark", width: 390, prepare: rightToLeft},
	} {
		v := state.visitor
		v.do(chromedp.EmulateViewport(state.width, 900), colorScheme(state.scheme))
		v.open(state.query)
		v.settled()
		eval[chromedp.Void](v, `for (const details of document.querySelectorAll("details")) { details.open = true; }`)
		if state.prepare != nil {
			state.prepare(v)
		}
		for _, violation := range v.violations(source) {
			t.Errorf("%s: %s", state.name, violation)
		}
	}
}

// courseDrawn waits for the two points of a limit's course, which take twenty seconds.
func courseDrawn(v *visitor) { v.until(`document.querySelector("#drawer .course") !== null`) }

func rightToLeft(v *visitor) { eval[chromedp.Void](v, `document.documentElement.dir = "rtl"`) }

// TestAxeWithoutScripts checks the page as it comes, which axe-core sees in a frame of a page with scripts.
func TestAxeWithoutScripts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	source := axeSource(t)
	f := fakeServer(t)
	v := visit(t, f.url)
	v.open("?lang=en")
	for f.calls.Load() < 3 { // two samples make a point
		v.refreshed()
	}
	for _, query := range []string{"?lang=en", "?lang=en&limit=api", "?lang=zh&key=api:user:1"} {
		for _, scheme := range []string{"light", "dark"} {
			v.do(colorScheme(scheme))
			v.open(query)
			v.click("#pause") // so that no script changes it
			eval[chromedp.Void](v, `fetch(location.href).then((answer) => answer.text()).then((html) => {
				const page = new DOMParser().parseFromString(html, "text/html"); // runs no scripts
				document.documentElement.replaceWith(document.adoptNode(page.documentElement));
			})`)
			if eval[bool](v, `document.querySelector("#pause").checkVisibility() || document.documentElement.matches(".scripting")`) {
				t.Error("a script runs")
			}
			for _, violation := range v.violations(source) {
				t.Errorf("%s, %s, without scripts: %s", query, scheme, violation)
			}
		}
	}
}

// TestNoScript checks tiles, tables and links without JavaScript, and that nothing useless is shown.
func TestNoScript(t *testing.T) {
	t.Parallel()
	f := fakeServer(t)
	v := visit(t, f.url)
	v.do(chromedp.EmulateViewport(1440, 900))
	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	f.steady.Store(true)
	for f.calls.Load() < 3 { // two samples make a point
		v.open("?lang=en")
	}
	v.open("?lang=en")
	if got := v.text("#now"); !strings.Contains(got, "Connections\n12") {
		t.Errorf("the tiles are %q", got)
	}
	if !eval[bool](v, `document.querySelector("#history-heading ~ details").getBoundingClientRect().top >=
		document.querySelector("#history-heading").getBoundingClientRect().bottom`) {
		t.Error("the marker of the table is beside the heading")
	}
	if got := v.text("main"); !strings.Contains(got, hostile) {
		t.Errorf("the page lacks the hot keys: %q", got)
	}
	const useless = `[...document.querySelectorAll(".scripted, .copy, #pause, #lost")].filter((e) => e.checkVisibility()).map((e) => e.outerHTML)`
	if got := eval[[]string](v, useless); len(got) > 0 {
		t.Errorf("without a script these do nothing: %q", got)
	}
	v.click("#top tbody a")
	v.opened()
	if got := v.text("#drawer"); !strings.Contains(got, "✓ Allowed: 15 at once") {
		t.Errorf("the drawer is %q", got)
	}
	v.click("#drawer .shut")
	v.do(chromedp.WaitVisible(chromedp.CSS(`#drawer:empty ~ script, body:not(:has(#drawer-heading)) #field-key`)))
	v.send("#field-key", "api"+kb.Enter)
	if got := v.opened(); got != "Limit api" {
		t.Errorf("the field finds %q", got)
	}
	v.click(`#top a[href*="top=limited"]`)
	v.do(chromedp.WaitVisible(chromedp.CSS(`#top th[aria-sort] a[href*="top=limited"]`)))
	if got := v.text("#top tbody"); v.opened() != "Limit api" || !strings.HasPrefix(got, "scraper") {
		t.Errorf("after sorting, the hot keys are %q", got)
	}

	v = visit(t, crowdedServer(t).url)
	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	v.open("?lang=en&sort=name")
	v.click(`#limits a[href*="unfold"]`)
	v.do(chromedp.WaitVisible(chromedp.CSS(`#limits tr[data-k="tenant-48"]`)))
	v.send("#field-filter", "nt-09"+kb.Enter)
	v.do(chromedp.WaitVisible(chromedp.CSS(`#field-filter[value="nt-09"]`)))
	if got := v.limitNames(); !slices.Equal(got, []string{"tenant-09"}) {
		t.Errorf("the filter finds %q", got)
	}
}

// TestKeyboard checks that Tab reaches each control in visual order, and that all can be used.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	f := fakeServer(t)
	f.steady.Store(true)
	v := visit(t, f.url)
	v.open("?lang=en")
	v.settled()
	const focused = `((e) => e.closest("#top, #limits, #ranges")?.id ?? (e.id || e.className || e.localName))(document.activeElement)`
	var order []string
	for range 50 {
		v.do(chromedp.KeyEvent(kb.Tab))
		at := eval[string](v, focused)
		if len(order) > 0 && (at == "body" || at == order[0]) {
			break
		}
		if len(order) == 0 || order[len(order)-1] != at {
			order = append(order, at)
		}
	}
	want := []string{"skip", "field-key", "button", "pause", "a", "copy", "summary", "top", "limits", "ranges", "plot", "summary", "scroll"}
	if !slices.Equal(order, want) {
		t.Errorf("Tab goes %q, want %q", order, want)
	}

	// the drawer: from the field and back, and from a link
	v.do(chromedp.Focus(chromedp.CSS("#field-key")), chromedp.KeyEvent("cl.throttle a 15 30 60"+kb.Enter))
	v.opened()
	v.until(`document.activeElement.id === "drawer-heading"`)
	if got := v.text("#drawer"); !strings.Contains(got, "✓ Allowed: 15 at once") {
		t.Errorf("the drawer is %q", got)
	}
	order = nil
	for range 4 {
		v.do(chromedp.KeyEvent(kb.Tab))
		order = append(order, eval[string](v, `document.activeElement.closest("#drawer") === null ? "left" : document.activeElement.className || "a"`))
	}
	if want := []string{"copy", "shut", "a", "left"}; !slices.Equal(order, want) {
		t.Errorf("in the drawer Tab goes %q, want %q", order, want)
	}
	v.do(chromedp.KeyEvent(kb.Escape))
	v.until(`document.querySelector("#drawer-heading") === null && document.activeElement.id === "field-key"`)
	v.do(chromedp.Focus(chromedp.CSS("#limits tbody a")), chromedp.KeyEvent(kb.Enter))
	if got := v.opened(); got != "Limit api" {
		t.Errorf("Enter on the limit opens %q", got)
	}
}

// TestLanguagesSchemesAndPhone checks both languages at three widths for overflows, and the colours, light
// and dark.
func TestLanguagesSchemesAndPhone(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	call(v, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{
		Headers: network.Headers{"Accept-Language": "zh-CN,zh;q=0.9"},
	})
	v.open("")
	if got := v.text("#history-heading"); got != "历史" {
		t.Errorf("a Chinese browser is shown %q", got)
	}
	v.click("nav a")
	v.do(chromedp.WaitVisible(chromedp.CSS(`html[lang="en"] main`)))
	grounds := map[string]string{}
	for _, lang := range []string{"en", "zh"} {
		for _, width := range []int64{320, 390, 1280} {
			v.do(chromedp.EmulateViewport(width, 844))
			for _, limit := range []string{"", "&by=throttle+15+30+60&key=" + strings.Repeat("long", 1000), "&limit=api&key=" + strings.Repeat("long", 1000), "&limit=api"} {
				v.open("?lang=" + lang + limit)
				v.settled()
				eval[chromedp.Void](v, `for (const details of document.querySelectorAll("details")) { details.open = true; }`)
				if got := eval[int64](v, `document.documentElement.scrollWidth`); got > width {
					t.Errorf("%s, %d pixels, %s: the page is %d wide", lang, width, limit, got)
				}
				if got := eval[[]string](v, tooNarrow); len(got) > 0 {
					t.Errorf("%s, %d pixels, %s: too narrow for %q", lang, width, limit, got)
				}
			}
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		v.do(colorScheme(scheme))
		grounds[scheme] = eval[string](v, `getComputedStyle(document.body).backgroundColor + getComputedStyle(document.querySelector(".stroke.first")).stroke`)
	}
	if grounds["light"] == grounds["dark"] || grounds["light"] != "rgb(246, 247, 249)rgb(36, 87, 214)" {
		t.Errorf("the colours are %q", grounds)
	}
}

// tooNarrow returns texts that overflow their boxes.
const tooNarrow = `[...document.querySelectorAll(".tiles div, figure, .tops > div, #drawer, #drawer :is(div, dl, dd, p, section)")]
	.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText)`

// TestScreenReader checks landmarks, and names of images and controls, in the accessibility tree.
func TestScreenReader(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en&key=a&by=throttle+15+30+60")
	v.settled()
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
		case "image", "searchbox", "button", "link", "region", "slider", "radio", "complementary":
			if name == "" {
				t.Errorf("a %s has no name", role)
			}
		}
	}
	for role, least := range map[string]int{"banner": 1, "navigation": 1, "main": 1, "region": 4, "image": 1, "slider": chartCount, "radio": 3, "search": 1, "searchbox": 1, "complementary": 1, "status": 1, "alert": 1, "heading": 10, "table": 2} {
		if roles[role] < least {
			t.Errorf("%d of role %s, want at least %d (all: %v)", roles[role], role, least, roles)
		}
	}
}

// TestRightToLeft checks that the page is in view where a translation turns its direction, and that a key
// with escapes keeps the order of its bytes.
func TestRightToLeft(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	for _, width := range []int64{1280, 390} {
		v.do(chromedp.EmulateViewport(width, 844))
		v.open("?lang=en")
		v.settled()
		eval[chromedp.Void](v, `document.documentElement.dir = "rtl"`)
		if got := eval[int64](v, `document.documentElement.scrollWidth`); got > width {
			t.Errorf("from right to left, at %d pixels the page is %d wide", width, got)
		}
		if got := eval[float64](v, `document.querySelector("h1").getBoundingClientRect().right`); got < float64(width)/2 || got > float64(width) {
			t.Errorf("from right to left, at %d pixels the heading ends at %v", width, got)
		}
		faults := eval[[]string](v, `[...document.querySelectorAll(".key")].filter((key) => {
			const style = getComputedStyle(key);
			return style.direction !== "ltr" || key.textContent.includes("\\") !== (style.unicodeBidi === "isolate-override");
		}).map((key) => key.textContent)`)
		if len(faults) > 0 {
			t.Errorf("the bytes of %q may be reordered", faults)
		}
	}
}

// TestWide checks that a wide screen is used: one row of tiles, and more charts a row.
func TestWide(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.do(chromedp.EmulateViewport(2560, 1440))
	v.open("?lang=en")
	v.settled()
	rows := func(selector string) int {
		return eval[int](v, `new Set([...document.querySelectorAll("`+selector+`")].map((e) => e.getBoundingClientRect().top)).size`)
	}
	if got := rows(".tile"); got != 1 {
		t.Errorf("the tiles take %d rows", got)
	}
	if got := rows(".chart"); got != 2 {
		t.Errorf("%d charts take %d rows", chartCount, got)
	}
	if got := eval[float64](v, `document.querySelector(".charts").getBoundingClientRect().width`); got < 2400 {
		t.Errorf("the charts take %v of 2560 pixels", got)
	}
}
