package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestKeysAreText: the tables show any key as text, and its link inspects exactly that key.
func TestKeysAreText(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
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

// TestHotKey: a click on a hot key shows its funnel and fills the form without loading the page again, and the browser's back
// button leads back.
func TestHotKey(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en&max_burst=15&count=30&period=60")
	v.drawn()
	v.drag("keys", 0.3, 0.7)
	zoomed := v.spanMs()
	eval[chromedp.Void](v, `window.loaded = "once"`)
	v.click(`#top tr[data-k^="0:<img"] a`)
	v.answered()
	query, err := url.ParseQuery(strings.TrimPrefix(eval[string](v, `location.search`), "?"))
	if err != nil || query.Get("key") != hostile || query.Get("lang") != "en" {
		t.Errorf("the address is %q", query)
	}
	if got := eval[string](v, `document.querySelector("#field-key").value`); got != hostile {
		t.Errorf("the form has the key %q", got)
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
