package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	shutAgain = `document.querySelector("#drawer").innerText === "" && document.querySelector("#field-key").value === ""`
	spoken    = `document.querySelector("#spoken").textContent`
	focusedIs = `document.activeElement.id`
)

// TestKeysAreText checks that any key is shown as text, and that its link opens exactly that key.
func TestKeysAreText(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en")
	for _, want := range []string{hostile, `"\xff\x00\xe2\x80\xae\"><script>alert(2)</script>"`, braces, "api:user:" + hostile} {
		v.open("?lang=en") // without an answer
		v.clickKey(want)
		if got := v.opened(); got != want {
			t.Errorf("the link to %q leads to %q", want, got)
		}
		if got := eval[string](v, `document.querySelector("#field-key").value`); got != want {
			t.Errorf("the field has %q, want %q", got, want)
		}
		v.open(eval[string](v, `location.search`))
		if got := v.opened(); got != want {
			t.Errorf("the address of %q leads to %q", want, got)
		}
	}
	if eval[int](v, `document.querySelectorAll("img, script").length`) != 1 {
		t.Error("a key became markup")
	}
}

// TestHotKey checks that a click on a hot key opens it beside the page without a reload, that zoom and
// language stay, and that the back button leads back, with the focus, and forward again.
func TestHotKey(t *testing.T) {
	t.Parallel()
	f := fakeServer(t)
	f.steady.Store(true)
	v := visit(t, f.url)
	v.do(chromedp.EmulateViewport(1440, 900))
	v.open("?lang=en")
	v.settled()
	once := v.loadedOnce()
	v.drag("keys", 0.3, 0.7)
	v.until(`!document.querySelector("#whole").hidden`)
	zoomed := v.spanMs()
	v.click(`#top tr[data-k^="0:<img"] a`)
	v.opened()
	v.until(focusedIs + ` === "drawer-heading" && ` + spoken + `.includes("Allowed: 15 at once")`)
	query, err := url.ParseQuery(strings.TrimPrefix(eval[string](v, `location.search`), "?"))
	if err != nil || query.Get("key") != hostile || query.Get("lang") != "en" || query.Get("by") != "throttle 15 30 60" {
		t.Errorf("the address is %q", query)
	}
	for _, want := range []string{"✓ Allowed: 15 at once", "CL.THROTTLE · 16 at once, 30 per minute", "0.50 of 16 units", "0 16 14 -1"} {
		if got := v.text("#drawer"); !strings.Contains(got, want) {
			t.Errorf("the drawer %q lacks %q", got, want)
		}
	}
	if eval[bool](v, `document.querySelector("main").getBoundingClientRect().right > document.querySelector("#drawer").getBoundingClientRect().left`) {
		t.Error("the drawer covers the page")
	}
	language := eval[string](v, `document.querySelector("nav a").href`)
	if !strings.Contains(language, "key=") || !strings.Contains(language, "lang=zh") {
		t.Errorf("the link to the other language is %s", language)
	}
	if got := v.spanMs(); got != zoomed {
		t.Errorf("a zoom to %v ms became one to %v ms", zoomed, got)
	}
	eval[chromedp.Void](v, `history.back()`)
	v.until(shutAgain + ` && document.activeElement.matches("#top tr[data-k^='0:<img'] a")`)
	eval[chromedp.Void](v, `history.forward()`)
	if got := v.opened(); got != hostile {
		t.Errorf("forward leads to %q", got)
	}
	once()
}

// TestShut checks that the cross and Escape close the drawer, after which the focus is where it was before,
// and that Escape first undoes what it undoes without a drawer.
func TestShut(t *testing.T) {
	t.Parallel()
	f := fakeServer(t)
	f.steady.Store(true)
	v := visit(t, f.url)
	v.do(chromedp.EmulateViewport(1440, 900))
	v.open("?lang=en")
	v.settled()
	once := v.loadedOnce()
	for _, shut := range []func(){
		func() { v.click("#drawer .shut") },
		func() { v.do(chromedp.KeyEvent(kb.Escape)) },
		func() { v.do(chromedp.Focus(chromedp.CSS("#drawer .shut")), chromedp.KeyEvent(kb.Enter)) },
	} {
		v.click(`#top tr[data-k^="0:api:"] a`)
		v.opened()
		v.until(focusedIs + ` === "drawer-heading"`)
		v.click(`#drawer a[href*="limit=api"]`) // and from there to the limit
		v.until(`document.querySelector("#drawer-heading")?.textContent === "Limit api" && ` + focusedIs + ` === "drawer-heading"`)
		shut()
		v.until(shutAgain + ` && document.activeElement.matches("#top tr[data-k^='0:api:'] a")`)
	}

	v.find("a")
	v.opened()
	v.drag("keys", 0.3, 0.7)
	v.until(`!document.querySelector("#whole").hidden`)
	v.do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Escape))
	v.until(`document.querySelector("#whole").hidden`)
	if v.opened() != "a" {
		t.Error("the Escape that zooms out closed the drawer")
	}
	eval[chromedp.Void](v, `document.activeElement.blur()`)
	v.do(chromedp.KeyEvent(kb.Escape))
	v.until(shutAgain + ` && ` + focusedIs + ` === "field-key"`)
	once()
}

// TestFind checks what the field finds: a key of any kind in any database, a key of a named limit, a limit,
// and a whole call.
func TestFind(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en")
	v.settled()
	once := v.loadedOnce()
	for _, tt := range []struct {
		entered, heading string
		want             []string
	}{
		{hostile, hostile, []string{"By the limit of its last call.", "0.50 of 16 units"}},
		{"a", "a", []string{"The limit is not known", "a whole call, such as"}},
		{"cl.throttle a 8 9 60", "a", []string{"✓ Allowed: 8 at once", "9 at once, 9 per minute", "9 every 60 s"}},
		{`CL.THROTTLE "a b" 8 9 60`, "a b", []string{"✓ Allowed: 9 at once", "has no state for this key"}},
		{`cl.fixedwindow exports 5 3600`, exports, []string{"✕ Limited; allowed in 1h0m0s", "5 of 5 units"}},
		{"cl.bucket take cards 5", cards, []string{"✓ Allowed: 2 at once", "2 of 5 units"}},
		{"cl.check api user:1", "api:user:1", []string{"By the named limit api"}},
		{cards, cards, []string{"Units\n2"}},
		{pages, pages, []string{"value"}},
		{twice, twice, []string{"Also in database 3"}},
		{"api:user:1", "api:user:1", []string{"✓ Allowed: 3 at once", "By the named limit api", "6 at once, 1 per hour", "3 of 6 units", "3 of 10 units\nAvailable\n7\n", "1,000,000 a month (Europe/Berlin)"}},
		{"api:out", "api:out", []string{"✕ Limited; waiting does not help", "An override decides: command: DENY"}},
		{"api", "Limit api", []string{"together", "out\tdenied\tcommand\tnever"}},
		{"nobody", "nobody", []string{"No such key", "enter the whole call"}},
		{"alert(2)", "alert(2)", []string{"No such key", "<script>alert(2)</script>"}}, // part of a hot key
		{`"half`, "No answer", []string{"must end with one"}},
		{"cl.throttle a 8 9 0", "No answer", []string{"count and period must be at least 1"}},
	} {
		v.find(tt.entered)
		v.until(`document.querySelector("#drawer-heading .key, #drawer-heading:not(:has(.key))")?.textContent === ` + quoted(tt.heading) +
			` && ` + focusedIs + ` === "drawer-heading"`)
		for _, want := range tt.want {
			if got := v.text("#drawer"); !strings.Contains(got, want) {
				t.Errorf("%s: the drawer %q lacks %q", tt.entered, got, want)
			}
		}
		if got := eval[string](v, `document.querySelector("#field-key").value`); got != tt.entered {
			t.Errorf("of %q the field keeps %q", tt.entered, got)
		}
	}
	v.do(chromedp.KeyEvent(kb.Escape))
	v.until(shutAgain + ` && ` + focusedIs + ` === "field-key"`)
	once()
}

// TestDrawerUpdates checks that the open drawer is patched in place: its figures follow, while focus,
// selection and scroll position stay and nothing is announced.
func TestDrawerUpdates(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.do(chromedp.EmulateViewport(1440, 400))
	v.open("?lang=en")
	v.settled()
	v.clickKey(`"\xff\x00\xe2\x80\xae\"><script>alert(2)</script>"`)
	v.opened()
	v.until(spoken + `.startsWith("✕ Limited; allowed in 59m")`)
	eval[chromedp.Void](v, `{
		const drawer = document.querySelector("#drawer");
		window.kept = [...drawer.querySelectorAll("#drawer-heading, .verdict, .vessel, .self a")];
		window.told = 0;
		new MutationObserver(() => window.told++).observe(document.querySelector("#spoken"), { childList: true, characterData: true });
		document.querySelector(".self a").focus();
		getSelection().selectAllChildren(document.querySelector("#drawer-heading .key"));
		drawer.scrollTop = 120;
	}`)
	for range 2 {
		before := v.text("#drawer .verdict")
		v.until(`document.querySelector("#drawer .verdict").innerText !== ` + quoted(before))
	}
	if !eval[bool](v, `window.kept.length === 4 && window.kept.every((e) => e.isConnected)`) {
		t.Error("a refresh replaced what it could have patched")
	}
	if got := eval[string](v, `document.activeElement.textContent + ", " + document.querySelector("#drawer").scrollTop + ", " + window.told`); got != "Link to this key, 120, 0" {
		t.Errorf("focus, scroll position and announcements are %q", got)
	}
	if got := eval[string](v, `getSelection().toString()`); !strings.Contains(got, "alert(2)") {
		t.Errorf("the selection is %q", got)
	}
}

// TestDrawerOnPhone checks that the drawer is as large as the screen, and that nothing below it can be
// reached until it is closed.
func TestDrawerOnPhone(t *testing.T) {
	t.Parallel()
	f := fakeServer(t)
	f.steady.Store(true)
	v := visit(t, f.url)
	v.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateTouch))
	v.open("?lang=en")
	v.settled()
	once := v.loadedOnce()
	eval[chromedp.Void](v, `document.querySelector("#top tbody a").scrollIntoView({ block: "center" })`)
	scrolled := eval[float64](v, `scrollY`)
	eval[chromedp.Void](v, `document.querySelector("#top tbody a").click()`)
	v.opened()
	v.until(focusedIs + ` === "drawer-heading"`)
	if got := eval[string](v, `((box) => [box.left, box.top, box.width, box.height].join())(document.querySelector("#drawer").getBoundingClientRect())`); got != "0,0,390,844" {
		t.Errorf("the drawer is at %s", got)
	}
	const reachable = `[...document.querySelectorAll("a, button, input, summary, [tabindex]")].filter((e) =>
		e.closest("#drawer") === null && e.checkVisibility({ visibilityProperty: true }) && !e.closest("[inert]")).map((e) => e.outerHTML)`
	if got := eval[[]string](v, reachable); len(got) > 0 {
		t.Errorf("below the drawer these can be reached: %q", got)
	}
	for range 12 {
		v.do(chromedp.KeyEvent(kb.Tab))
		if at := eval[string](v, `document.activeElement.closest("#drawer, body").localName`); at != "aside" && at != "body" {
			t.Errorf("Tab leads to %s", at)
		}
	}
	v.click("#drawer .shut")
	v.until(shutAgain + ` && document.activeElement.matches("#top tbody a")`)
	if got := eval[float64](v, `scrollY`); got != scrolled {
		t.Errorf("the page was scrolled to %v, and then to %v", scrolled, got)
	}
	if got := eval[[]string](v, reachable); len(got) < 10 {
		t.Errorf("without a drawer only these can be reached: %q", got)
	}
	once()
}

// TestTypedStays checks that what is typed in the field stays when something else is chosen.
func TestTypedStays(t *testing.T) {
	t.Parallel()
	v := visit(t, crowdedServer(t).url)
	v.open("?lang=en")
	v.settled()
	v.send("#field-key", "half a ke")
	v.click(`#limits a[href*="sort=name"]`)
	v.until(`document.querySelector("#limits tbody tr").dataset.k === "api" && location.search.includes("sort=name")`)
	v.refreshed()
	if got := eval[string](v, `document.querySelector("#field-key").value`); got != "half a ke" {
		t.Errorf("what was typed became %q", got)
	}
}

// TestEmptyPage checks that a server without calls shows a command to copy.
func TestEmptyPage(t *testing.T) {
	t.Parallel()
	v := visit(t, emptyServer(t).url)
	for _, language := range []string{"en", "zh"} {
		v.open("?lang=" + language)
		v.until(`document.querySelector("#now .tiles") !== null`)
		const call = "redis-cli -p 6380 cl.throttle laoqian:reply 15 30 60 1"
		if got := v.text("#top"); !strings.Contains(got, call) {
			t.Errorf("the page says %q", got)
		}
		v.until(`document.querySelector("#top .copy").dataset.copy === ` + quoted(call) + ` && document.querySelector("#top .copy").checkVisibility()`)
	}
}
