package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"cellserver/internal/test/processtest"
)

// visitor is a browser tab on the page.
type visitor struct {
	t   *testing.T
	tab context.Context
	url string
}

// visit opens a browser, and fails the test if the page logs to the console, opens a dialog or contacts
// another host.
func visit(t *testing.T, url string) *visitor {
	t.Helper()
	return visitWith(t, url, true)
}

// visitWith is visit, but lets the console complain unless silent, as it does about failed requests.
func visitWith(t *testing.T, url string, silent bool) *visitor {
	t.Helper()
	path, err := findBrowser()
	if err != nil {
		processtest.SkipWithout(t, "chromium")
	}
	ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
	t.Cleanup(cancel)
	tab, closeTab := openTab(ctx, path)
	v := &visitor{t, tab, url}
	call(v, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}) // starts the browser
	var listeners sync.WaitGroup
	v.listen(&listeners, silent)
	t.Cleanup(func() {
		closeTab()
		listeners.Wait()
	})
	return v
}

// listen reports problems until the tab is closed.
func (v *visitor) listen(listeners *sync.WaitGroup, silent bool) {
	messages, dialogs := chromedp.Console(v.tab), chromedp.Events(v.tab, page.JavascriptDialogOpening)
	requests := chromedp.Events(v.tab, network.RequestWillBeSent)
	listeners.Go(func() {
		for m, err := range messages {
			if err == nil && silent {
				v.t.Errorf("the console says: %s %s %s", m.Type, m.Text, m.URL)
			}
		}
	})
	listeners.Go(func() {
		for e, err := range dialogs {
			if err == nil {
				v.t.Errorf("the page opened a dialog: %s", e.Message)
			}
		}
	})
	listeners.Go(func() {
		for e, err := range requests {
			if err == nil && !strings.HasPrefix(e.Request.URL, v.url) && !strings.HasPrefix(e.Request.URL, "data:") {
				v.t.Errorf("the page contacted %s", e.Request.URL)
			}
		}
	})
}

func (v *visitor) do(actions ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	if err := chromedp.Do(v.tab, actions...); err != nil {
		v.t.Fatal(err)
	}
}

// open loads the page with a query, such as "?lang=zh".
func (v *visitor) open(query string) {
	v.t.Helper()
	v.do(chromedp.Navigate(v.url+query), chromedp.WaitReady(chromedp.CSS("main")))
}

func eval[T any](v *visitor, expression string) T {
	v.t.Helper()
	value, err := chromedp.Run(v.tab, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		v.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

func (v *visitor) until(expression string) {
	v.t.Helper()
	if _, err := chromedp.Run(v.tab, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(0))); err != nil {
		v.t.Fatalf("%s: %v", expression, err)
	}
}

// settled waits for figures and curves, which could move what is about to be clicked or reached by Tab.
func (v *visitor) settled() {
	v.t.Helper()
	v.until(`document.querySelector("#now .tiles") !== null && document.querySelector("#chart-decisions .stroke.first") !== null`)
}

func (v *visitor) text(selector string) string {
	v.t.Helper()
	return eval[string](v, `document.querySelector("`+selector+`").innerText`)
}

func (v *visitor) click(selector string) {
	v.t.Helper()
	v.do(chromedp.Click(chromedp.CSS(selector)))
}

// opened waits for the drawer, and returns its heading.
func (v *visitor) opened() string {
	v.t.Helper()
	v.do(chromedp.WaitVisible(chromedp.CSS("#drawer-heading")))
	return eval[string](v, `document.querySelector("#drawer-heading .key, #drawer-heading:not(:has(.key))").textContent`)
}

// clickKey clicks a hot key.
func (v *visitor) clickKey(quotedKey string) {
	v.t.Helper()
	eval[chromedp.Void](v, `[...document.querySelectorAll("#top tbody a")].find((a) => a.textContent === `+quoted(quotedKey)+`).click()`)
}

// find enters a text into the search field.
func (v *visitor) find(text string) {
	v.t.Helper()
	v.do(chromedp.Focus(chromedp.CSS("#field-key")))
	eval[chromedp.Void](v, `document.querySelector("#field-key").select()`)
	v.do(chromedp.KeyEvent(text + kb.Enter))
}

// loadedOnce returns a check that the page was not loaded again.
func (v *visitor) loadedOnce() (check func()) {
	v.t.Helper()
	eval[chromedp.Void](v, `window.loaded = "once"`)
	return func() {
		v.t.Helper()
		if eval[string](v, `window.loaded`) != "once" {
			v.t.Error("the page was loaded again")
		}
	}
}

func (v *visitor) send(selector, keys string) {
	v.t.Helper()
	v.do(chromedp.SendKeys(chromedp.CSS(selector), keys))
}

// call sends a command of the DevTools protocol.
func call[P, R any](v *visitor, command cdp.Command[P, R], params P) R {
	v.t.Helper()
	result, err := chromedp.Run(v.tab, func(ctx context.Context, t *chromedp.Target) (R, error) {
		return cdp.Call(ctx, t, command, params)
	})
	if err != nil {
		v.t.Fatal(err)
	}
	return result
}

// hover moves the pointer to a share of a plot's width.
func hover(chart string, share float64) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		place, err := chromedp.Run(ctx, placeIn(chart, share))
		if err != nil {
			return err
		}
		return chromedp.Do(ctx, chromedp.MouseEvent(chromedp.MouseMoved, place[0], place[1]))
	})
}

// placeIn scrolls a chart to the middle of the window and returns the place at a share of its plot's width.
func placeIn(chart string, share float64) chromedp.Action[[]float64] {
	return chromedp.Evaluate[[]float64](fmt.Sprintf(`(async () => {
		const plot = document.querySelector("#chart-%s .plot"), curves = plot.querySelector(".curves");
		plot.scrollIntoView({ block: "center", behavior: "instant" });
		await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		const box = plot.getBoundingClientRect();
		return [box.left + Number(curves.getAttribute("x")) + %f * curves.getAttribute("width"), box.top + box.height / 2];
	})()`, chart, share), chromedp.EvalAwaitPromise)
}
