package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func (v *visitor) refreshed() {
	v.t.Helper()
	v.until(`document.querySelector("#now").innerText !== ` + quoted(v.text("#now")))
}

// order is the order of the hot keys.
const order = `[...document.querySelectorAll("#top tr[data-k]")].map((row) => row.dataset.k).join()`

func (v *visitor) reordered() {
	v.t.Helper()
	v.until(order + ` !== ` + quoted(eval[string](v, order)))
}

// TestSelectionStays checks that a selection stays while the rows around it change places.
func TestSelectionStays(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en")
	v.refreshed()
	for _, within := range []string{`row.querySelector(".key")`, `row.closest("table")`} {
		selected := eval[string](v, `{
			const row = document.querySelector("#top tr[data-k='0:{{alert(3)}}\\'\"`+"`"+`--></style>'], #top tr[data-k^='0:{{']");
			window.row = row;
			getSelection().selectAllChildren(`+within+`);
			getSelection().toString()
		}`)
		for range 2 {
			v.reordered()
		}
		if !eval[bool](v, `window.row.isConnected`) {
			t.Error("a refresh replaced the row")
		}
		got := eval[string](v, `getSelection().toString()`)
		if within == `row.querySelector(".key")` && got != selected {
			t.Errorf("the selection of %q became %q", selected, got)
		}
		if strings.Count(got, "alert") != strings.Count(selected, "alert") {
			t.Errorf("of the selected keys %q are left: %q", selected, got)
		}
	}
}

// TestFocusStays checks that focus, open details and typed text survive updates, and that updates can be
// paused.
func TestFocusStays(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en")
	v.refreshed()
	v.send("#field-key", "half a ke")
	eval[chromedp.Void](v, `location.hash = "main"`) // as the link to the content does
	v.click("summary")
	eval[chromedp.Void](v, `window.link = document.querySelector("#top tbody a"); window.link.focus()`)
	for range 2 {
		v.reordered()
	}
	if !eval[bool](v, `document.activeElement === window.link && window.link.isConnected`) {
		t.Errorf("the focus went to %q", eval[string](v, `document.activeElement.outerHTML`))
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
	if got := v.text("#paused"); !strings.HasPrefix(got, "Paused: figures as of ") || strings.Count(got, ":") != 3 {
		t.Errorf("a paused page says %q", got)
	}
	if got := eval[string](v, `document.title + getComputedStyle(document.querySelector("#now")).filter`); got != "Paused · cellservergrayscale(1)" {
		t.Errorf("the title and colours of a paused page are %q", got)
	}
	before := v.text("#now")
	eval[chromedp.Void](v, `new Promise((done) => setTimeout(done, 3000))`)
	if v.text("#now") != before {
		t.Error("the values change although the page is paused")
	}
	v.click("#pause")
	v.until(`document.querySelector("#now").innerText !== ` + quoted(before))
	if eval[bool](v, `!document.querySelector("#paused").hidden || document.title.startsWith("Paused")`) {
		t.Error("the page goes on and still says that it is paused")
	}
}

// TestCopy checks that a button copies a hot key and says so, with the Clipboard API and without it.
func TestCopy(t *testing.T) {
	t.Parallel()
	f := fakeServer(t)
	f.steady.Store(true)
	v := visit(t, f.url)
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		call(v, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted,
		})
	}
	v.open("?lang=en")
	v.settled()
	for _, api := range []bool{true, false} {
		eval[chromedp.Void](v, `document.querySelector("#spoken").textContent = ""`)
		eval[chromedp.Void](v, `navigator.clipboard.writeText("nothing")`)
		if !api {
			eval[chromedp.Void](v, `Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true })`)
		}
		v.click(`#top tr[data-k^="0:<img"] .copy`)
		v.until(`document.querySelector("#spoken").textContent === "Copied"`)
		if !api {
			eval[chromedp.Void](v, `delete navigator.clipboard`)
		}
		if got := eval[string](v, `navigator.clipboard.readText()`); got != hostile {
			t.Errorf("with the Clipboard API %v, %q was copied", api, got)
		}
	}
}

// TestLostServer checks that the page says that the server is gone, dims its figures, and goes on when it is
// back.
func TestLostServer(t *testing.T) {
	t.Parallel()
	f := fakeServer(t)
	v := visitWith(t, f.url, false)
	for _, language := range []struct{ query, before, after string }{
		{"?lang=en", "The server has not answered since ", ""},
		{"?lang=zh", "自 ", " 起服务器无响应"},
	} {
		v.open(language.query)
		v.refreshed()
		const opacity = `Number(getComputedStyle(document.querySelector("#now")).opacity)`
		if got := eval[float64](v, opacity); got != 1 {
			t.Errorf("the figures have the opacity %v", got)
		}
		f.gone.Store(true)
		v.until(`!document.querySelector("#lost").hidden && ` + opacity + ` < 0.7`)
		v.send("#field-key", "typed"+kb.Enter)
		v.until(`location.search.includes("typed")`)
		got := v.text("#lost")
		since, hasBefore := strings.CutPrefix(got, language.before)
		if since, hasAfter := strings.CutSuffix(since, language.after); !hasBefore || !hasAfter || strings.Count(since, ":") != 2 {
			t.Errorf("the page says %q", got)
		}
		if title := eval[string](v, `document.title`); title != got+" · cellserver" {
			t.Errorf("the title says %q", title)
		}
		f.gone.Store(false)
		v.until(`document.querySelector("#lost").hidden && ` + opacity + ` === 1`)
		if got := eval[string](v, `document.querySelector("#field-key").value`); got != "typed" {
			t.Errorf("what was asked of a server that did not answer became %q", got)
		}
		v.refreshed()
		title := eval[string](v, `document.title`)
		if strings.Contains(title, language.before) || !strings.Contains(title, "%") {
			t.Errorf("of a server that answers again the title says %q", title)
		}
	}
}

// TestFault checks that the warning is announced once, not at each update, that the cause is text, that the
// other faults stay open, and that the tile says so beside its colour.
func TestFault(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en")
	v.until(`document.querySelector("#faults details") !== null`) // errors, after two samples
	eval[chromedp.Void](v, `document.querySelector("#fault [role=alert]").announced = true`)
	v.click("#faults summary")
	for range 2 {
		v.refreshed()
	}
	if !eval[bool](v, `document.querySelector("#fault [role=alert]").announced === true`) {
		t.Error("an update replaced the warning")
	}
	got := v.text("#fault") + v.text("#faults")
	for _, want := range []string{"Changes have not reached the disk since", hostile + "/directory", "and 1 more", "Calls get error replies"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page warns: %q, which lacks %q", got, want)
		}
	}
	signs := eval[[]string](v, `[...document.querySelectorAll("#now .tile")].filter((tile) => tile.matches(".critical, .warning")).map((tile) =>
		tile.dataset.k + " " + tile.querySelector(".sign").ariaLabel)`)
	if want := []string{"durability Critical", "errors Warning"}; !slices.Equal(signs, want) {
		t.Errorf("coloured tiles are %q, want %q", signs, want)
	}
	if title := eval[string](v, `document.title`); !strings.HasPrefix(title, "⚠ ") {
		t.Errorf("the title is %q", title)
	}
}
