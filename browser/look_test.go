package main

import (
	"maps"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestKeysAreText checks that any key is shown as text, and that its link inspects exactly that key.
func TestKeysAreText(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en")
	top := v.text("#top")
	for _, want := range []string{hostile, `"\xff\x00\xe2\x80\xae\"><script>alert(2)</script>"`, "{{alert(3)}}'\"`--></style>"} {
		if !strings.Contains(top, want) {
			t.Errorf("the hot keys %q lack %q", top, want)
		}
		v.open("?lang=en") // without an answer
		eval[chromedp.Void](v, `[...document.querySelectorAll("#top a")].find((a) => a.textContent === `+quoted(want)+`).click()`)
		v.answered()
		if got := v.text("#answer h3"); got != "State of "+want {
			t.Errorf("the link to %q leads to %q", want, got)
		}
	}
	if eval[int](v, `document.querySelectorAll("img, script").length`) != 1 {
		t.Error("a key became markup")
	}
}

// TestHotKey checks that a click on a hot key inspects it and fills the form without a reload, and that the
// back button leads back.
func TestHotKey(t *testing.T) {
	t.Parallel()
	f := fakeServer(t)
	f.steady.Store(true)
	v := visit(t, f.url)
	v.open("?lang=en")
	v.settled()
	v.drag("keys", 0.3, 0.7)
	v.until(`!document.querySelector("#whole").hidden`)
	zoomed := v.spanMs()
	eval[chromedp.Void](v, `window.loaded = "once"`)
	v.click(`#top tr[data-k^="0:<img"] a`)
	v.answered()
	query, err := url.ParseQuery(strings.TrimPrefix(eval[string](v, `location.search`), "?"))
	if err != nil || query.Get("key") != hostile || query.Get("lang") != "en" {
		t.Errorf("the address is %q", query)
	}
	if got, want := eval[map[string]string](v, filledIn), (map[string]string{
		"key": hostile, "kind": "throttle", "db": "0", "max_burst": "15", "count": "30", "period": "60",
	}); !maps.Equal(got, want) {
		t.Errorf("the form has %v, want %v", got, want)
	}
	v.until(`document.querySelector("#spoken").textContent.includes("The next call is allowed")`)
	v.until(`document.querySelector("#look").getBoundingClientRect().top < innerHeight`)
	language := eval[string](v, `document.querySelector("nav a").href`)
	if !strings.Contains(language, "key=") || !strings.Contains(language, "lang=zh") {
		t.Errorf("the link to the other language is %s", language)
	}
	if got := v.spanMs(); got != zoomed {
		t.Errorf("a zoom to %v ms became one to %v ms", zoomed, got)
	}
	eval[chromedp.Void](v, `history.back()`)
	v.until(`document.querySelector("#answer").innerText === "" && document.querySelector("#field-key").value === ""`)
	if eval[string](v, `window.loaded`) != "once" {
		t.Error("the page was loaded again")
	}
}

// TestNamedKey checks that a click on a hot key of CL.CHECK inspects it under the name of its limit, and that
// the form finds other keys by the name alone.
func TestNamedKey(t *testing.T) {
	t.Parallel()
	f := fakeServer(t)
	f.steady.Store(true)
	v := visit(t, f.url)
	v.open("?lang=en")
	v.settled()
	eval[chromedp.Void](v, `window.loaded = "once"`)
	v.click(`#top tr[data-k^="0:api:"] a`)
	v.answered()
	if got, want := eval[map[string]string](v, filledIn), (map[string]string{"key": "user:" + hostile, "kind": "named", "db": "0", "limit": "api"}); !maps.Equal(got, want) {
		t.Errorf("the form has %v, want %v", got, want)
	}
	v.until(`document.querySelector("#spoken").textContent.includes("The next call is allowed")`)
	for _, want := range []string{"State of api:user:" + hostile, "6 at once, 1 per hour", "3 of 6 units", "7 of 10 units", "1,000,000 a month (Europe/Berlin)"} {
		if got := v.text("#answer"); !strings.Contains(got, want) {
			t.Errorf("the answer %q lacks %q", got, want)
		}
	}
	eval[chromedp.Void](v, `document.querySelector("#field-key").select()`)
	v.do(chromedp.Focus(chromedp.CSS("#field-key")), chromedp.KeyEvent("out"+kb.Enter))
	v.until(`document.querySelector("#answer").innerText.includes("An override decides: command: DENY")`)
	if eval[string](v, `window.loaded`) != "once" {
		t.Error("the page was loaded again")
	}
}

// filledIn returns what the form would send.
const filledIn = `Object.fromEntries([...new FormData(document.querySelector("#form"))].filter(([name]) => name !== "lang"))`

// TestForm checks that the form is sent without a reload, that errors are shown and get the focus, and that
// another command has other arguments.
func TestForm(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en")
	v.settled()
	eval[chromedp.Void](v, `window.loaded = "once"`)
	v.send("#field-key", "a")
	for _, argument := range []string{"max_burst", "count"} {
		v.send("#field-"+argument, "9")
	}
	v.send("#field-period", "soon"+kb.Enter)
	v.until(`document.activeElement.id === "field-period" && document.activeElement.ariaInvalid === "true"`)
	eval[chromedp.Void](v, `document.activeElement.select()`)
	v.do(chromedp.KeyEvent("60" + kb.Enter))
	v.answered()
	if got := v.text("#answer"); !strings.Contains(got, "9 every 60 s") {
		t.Errorf("the answer is %q", got)
	}
	eval[chromedp.Void](v, `{
		const kind = document.querySelector("#field-kind");
		kind.value = "fixedwindow";
		kind.dispatchEvent(new Event("change", { bubbles: true }));
	}`)
	v.until(`document.querySelector("#field-max_count") !== null && document.querySelector("#field-max_burst") === null`)
	if got := eval[map[string]string](v, filledIn); got["key"] != "a" || got["kind"] != "fixedwindow" || got["max_count"] != "" {
		t.Errorf("after the choice of a fixed window the form has %v", got)
	}
	eval[chromedp.Void](v, `{
		const kind = document.querySelector("#field-kind");
		kind.value = "named";
		kind.dispatchEvent(new Event("change", { bubbles: true }));
	}`)
	v.until(`document.querySelector("#field-limit")?.list.options.length === 1 && document.querySelector("#field-max_count") === null`)
	v.send("#field-limit", "none"+kb.Enter)
	v.until(`document.activeElement.id === "field-limit" && document.activeElement.ariaInvalid === "true"`)
	if eval[string](v, `window.loaded`) != "once" {
		t.Error("the page was loaded again")
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
