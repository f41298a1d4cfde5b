package main

import (
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

// violations returns what axe-core finds by all its rules but the experimental ones.
func (v *visitor) violations(source string) []string {
	v.t.Helper()
	eval[chromedp.Void](v, source+"; undefined")
	return eval[[]string](v, `axe.run({ rules: { "target-size": { enabled: true } } }).then(({ violations }) =>
		violations.flatMap((found) => found.nodes.map((node) => found.id + ": " + node.html + ": " + node.failureSummary)))`)
}

func TestAxe(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil {
		processtest.SkipUnlessCI(t, "requires npm from Debian's package npm: run scripts/deps.sh")
	}
	source, err := axe()
	if err != nil {
		t.Fatal(err)
	}
	const answer, named = "&key=a&max_burst=15&count=30&period=60", "&kind=named&limit=api&key=a"
	full, empty := visit(t, fakeServer(t).url), visit(t, emptyServer(t).url)
	for _, state := range []struct {
		name string
		*visitor
		query, scheme string
		width         int64
		prepare       func(v *visitor)
	}{
		{name: "light", visitor: full, query: "?lang=en" + answer, scheme: "light", width: 1440},
		{name: "dark", visitor: full, query: "?lang=en" + answer, scheme: "dark", width: 1440},
		{name: "phone", visitor: full, query: "?lang=en" + answer, scheme: "light", width: 390},
		{name: "Chinese", visitor: full, query: "?lang=zh" + answer, scheme: "dark", width: 390},
		{name: "wrong form", visitor: full, query: "?lang=en&key=a&max_burst=x&count=30&period=60", scheme: "light", width: 900},
		{name: "named", visitor: full, query: "?lang=en" + named, scheme: "light", width: 1440},
		{name: "named, phone", visitor: full, query: "?lang=zh" + named, scheme: "dark", width: 390},
		{name: "denied by name", visitor: full, query: "?lang=en&kind=named&limit=api&key=out", scheme: "light", width: 900},
		{name: "wrong name", visitor: full, query: "?lang=en&kind=named&limit=none&key=a", scheme: "dark", width: 900},
		{name: "wrong quota", visitor: full, query: "?lang=en&kind=quota&max_count=5&window=FORTNIGHT&key=a", scheme: "light", width: 390},
		{name: "empty", visitor: empty, query: "?lang=en", scheme: "light", width: 1440},
		{name: "hover", visitor: full, query: "?lang=en", scheme: "dark", width: 1440, prepare: func(v *visitor) { v.do(hover("latency", 0.7)) }},
	} {
		v := state.visitor
		v.do(chromedp.EmulateViewport(state.width, 900), colorScheme(state.scheme))
		v.open(state.query)
		v.settled()
		v.click("summary")
		if state.prepare != nil {
			state.prepare(v)
		}
		for _, violation := range v.violations(source) {
			t.Errorf("%s: %s", state.name, violation)
		}
	}
}

// TestNoScript checks tiles, tables and links without JavaScript, and that nothing useless is shown.
func TestNoScript(t *testing.T) {
	t.Parallel()
	f := fakeServer(t)
	v := visit(t, f.url)
	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	for f.calls.Load() < 3 { // two samples make a point
		v.open("?lang=en&max_burst=15&count=30&period=60")
	}
	v.open("?lang=en&max_burst=15&count=30&period=60")
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
	v.click("#top a")
	v.answered()
	if got := v.text("#answer"); !strings.Contains(got, "The next call is allowed") {
		t.Errorf("the answer is %q", got)
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
	const focused = `((e) => e.closest("#top, #ranges")?.id ?? (e.id || e.className || e.localName))(document.activeElement)`
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
	want := []string{"skip", "pause", "a", "copy", "top", "ranges", "plot", "summary", "scroll", "field-key", "field-kind", "field-db", "field-max_burst", "field-count", "field-period", "button"}
	if !slices.Equal(order, want) {
		t.Errorf("Tab goes %q, want %q", order, want)
	}

	// the form, from the key to the button
	v.do(chromedp.Focus(chromedp.CSS("#field-key")))
	for _, text := range []string{"a", "", "", "15", "30", "60"} {
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
			for _, limit := range []string{"max_burst=15&count=30&period=60", "kind=named&limit=api"} {
				v.open("?lang=" + lang + "&key=" + strings.Repeat("long", 1000) + "&" + limit)
				v.settled()
				v.click("summary")
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
const tooNarrow = `[...document.querySelectorAll(".tiles div, figure, .tops > div, .funnel dl")]
	.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText)`

// TestScreenReader checks landmarks, and names of images and controls, in the accessibility tree.
func TestScreenReader(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en&key=a&max_burst=15&count=30&period=60")
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
		case "image", "textbox", "button", "link", "region", "slider", "radio":
			if name == "" {
				t.Errorf("a %s has no name", role)
			}
		}
	}
	for role, least := range map[string]int{"banner": 1, "navigation": 1, "main": 1, "region": 4, "image": 1, "slider": chartCount, "radio": 3, "textbox": 5, "status": 1, "alert": 1, "heading": 10, "table": 2} {
		if roles[role] < least {
			t.Errorf("%d of role %s, want at least %d (all: %v)", roles[role], role, least, roles)
		}
	}
}

// TestRightToLeft checks that the page is in view where a translation turns its direction, and that a key with escapes keeps the
// order of its bytes.
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
