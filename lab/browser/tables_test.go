package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// limitNames returns the named limits of the table, without marks beside the names.
func (v *visitor) limitNames() []string {
	v.t.Helper()
	return eval[[]string](v, `[...document.querySelectorAll("#limits tbody th")].map((th) => (th.querySelector("a") ?? th).innerText)`)
}

// TestHotTable checks that the one table of hot keys is sorted by all calls or by the limited ones, and has
// both.
func TestHotTable(t *testing.T) {
	t.Parallel()
	f := fakeServer(t)
	f.steady.Store(true)
	v := visit(t, f.url)
	v.do(chromedp.EmulateViewport(1440, 900))
	v.open("?lang=en")
	v.settled()
	once := v.loadedOnce()
	rows := func() []string {
		return eval[[]string](v, `[...document.querySelectorAll("#top tbody tr")].map((row) => [...row.cells].map((cell) => cell.innerText.replace("Copy", "").trim()).join(" | "))`)
	}
	got := rows()
	if len(got) != 6 || !strings.HasPrefix(got[0], hostile) || !strings.HasSuffix(got[0], " | 100 | 0 | 16 at once, 30 per minute | 50\u00a0% | ") {
		t.Errorf("the hot keys are %q", got)
	}
	if !strings.HasSuffix(got[1], "db 2 | 50 | 40 | 16 at once, 30 per minute | 25\u00a0% | ") || got[5] != "scraper | 60 | 60 | 16 at once, 30 per minute | – | " {
		t.Errorf("the limited keys are %q", got)
	}
	v.click(`#top a[href*="top=limited"]`)
	v.until(`document.querySelector("#top tbody th").innerText.startsWith("scraper") && document.activeElement.matches("#top th[aria-sort=descending] a")`)
	v.refreshed()
	if got := rows(); !strings.HasPrefix(got[0], "scraper") || !strings.Contains(got[1], "alert(2)") {
		t.Errorf("sorted by limited calls the hot keys are %q", got)
	}
	v.click(`#top thead a:not([href*="top=limited"])`)
	v.until(`document.querySelector("#top tbody th").innerText.startsWith("<img") && !location.search.includes("top=")`)
	once()
}

// TestLimitsTable checks that ten of many limits are shown, and how others are found: unfolded, sorted, and
// filtered while one types.
func TestLimitsTable(t *testing.T) {
	t.Parallel()
	v := visit(t, crowdedServer(t).url)
	v.do(chromedp.EmulateViewport(1440, 900))
	v.open("?lang=en")
	v.settled()
	once := v.loadedOnce()
	if got := v.limitNames(); len(got) != 10 {
		t.Errorf("of 50 limits these are shown: %q", got)
	}
	v.click(`#limits a[href*="unfold"]`)
	v.until(`document.querySelectorAll("#limits tbody tr").length === 50`)
	v.click(`#limits a[href*="sort=name"]`)
	v.until(`document.querySelector("#limits tbody tr").dataset.k === "api" && document.activeElement.matches("#limits a[href*='sort=name']")`)
	if got := v.limitNames(); !slices.IsSorted(got) {
		t.Errorf("sorted by name the limits are %q", got)
	}
	v.click(`#limits a[href*="sort=limited"]`)
	v.until(`document.querySelector("#limits tbody tr").dataset.k === "tenant-07"`) // once there are rates, after twenty seconds
	v.click(`#limits p a.in`)
	v.until(`document.querySelectorAll("#limits tbody tr").length === 10 && !location.search.includes("unfold")`)

	v.do(chromedp.Focus(chromedp.CSS("#field-filter")))
	for i, typed := range []string{"N", "T", "-", "0"} {
		v.do(chromedp.KeyEvent(typed))
		if i%2 == 1 {
			v.refreshed()
		}
	}
	v.until(`location.search.includes("filter=NT-0") && document.querySelectorAll("#limits tbody tr").length === 10`)
	v.do(chromedp.KeyEvent("9"))
	v.until(`document.querySelectorAll("#limits tbody tr").length === 1`)
	if got := v.text("#limits tbody"); !strings.Contains(got, "tenant-09") || !strings.Contains(got, "shadow") {
		t.Errorf("the filter finds %q", got)
	}
	v.refreshed()
	const entered = `((field) => [document.activeElement === field, field.value, field.selectionStart].join())(document.querySelector("#field-filter"))`
	if got := eval[string](v, entered); got != "true,NT-09,5" {
		t.Errorf("focus, text and caret of the filter are %s", got)
	}
	v.do(chromedp.KeyEvent("x" + kb.Enter))
	v.until(`document.querySelector("#limits").innerText.includes("No limit has this in its name.")`)
	v.do(chromedp.KeyEvent(kb.Backspace))
	v.until(`document.querySelectorAll("#limits tbody tr").length === 1`)

	v.click("#limits tbody a") // the filter stays while the drawer is open, and after it
	v.until(`document.querySelector("#drawer-heading")?.textContent === "Limit tenant-09"`)
	if got := v.text("#drawer"); !strings.Contains(got, "This limit is a shadow") || !strings.Contains(got, "100 at once, 100 per minute") {
		t.Errorf("the drawer says %q", got)
	}
	v.do(chromedp.KeyEvent(kb.Escape))
	v.until(shutAgain + ` && document.activeElement.matches("#limits tbody a")`)
	if got := v.limitNames(); !slices.Equal(got, []string{"tenant-09"}) {
		t.Errorf("after the drawer the filter finds %q", got)
	}
	eval[chromedp.Void](v, `document.querySelector("#field-filter").select()`)
	v.do(chromedp.Focus(chromedp.CSS("#field-filter")), chromedp.KeyEvent(kb.Delete))
	v.until(`document.querySelectorAll("#limits tbody tr").length === 10`)
	once()
}

// TestFewLimits checks that a table of few limits has nothing to filter.
func TestFewLimits(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en")
	v.settled()
	if got := v.limitNames(); !slices.Equal(got, []string{"api"}) || eval[bool](v, `document.querySelector("#filter, #limits p a.in") !== null`) {
		t.Errorf("of one limit the page has %q, and a filter", got)
	}
}
