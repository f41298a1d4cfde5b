package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const chartCount = 7

// crosshairs returns the place of each chart's crosshair, as a share of its plot's width.
const crosshairs = `[...document.querySelectorAll(".chart")].flatMap((chart) => {
	const curves = chart.querySelector(".curves"), hair = chart.querySelector(".hair");
	return hair === null ? [] : [(hair.getAttribute("x1") - curves.getAttribute("x")) / curves.getAttribute("width")];
})`

// legends returns the values of the legends by column, all at one time.
const legends = `Object.fromEntries([...document.querySelectorAll(".legend li")].map((li) => [li.dataset.col, li.querySelector("b").textContent]))`

// spanMs returns the time span that a chart shows.
func (v *visitor) spanMs() float64 {
	v.t.Helper()
	return eval[float64](v, shownMs)
}

const shownMs = `((plot) => plot.ariaValueMax - plot.ariaValueMin)(document.querySelector("#chart-decisions .plot"))`

// drag presses the mouse's button at a share of a plot's width and releases it at another.
func (v *visitor) drag(chart string, from, to float64) {
	v.t.Helper()
	at := func(share float64) (x, y float64) {
		place, err := chromedp.Run(v.tab, placeIn(chart, share))
		if err != nil {
			v.t.Fatal(err)
		}
		return place[0], place[1]
	}
	event := func(typ input.DispatchMouseEventType, share float64) {
		x, y := at(share)
		v.do(chromedp.MouseEvent(typ, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	}
	event(chromedp.MousePressed, from)
	event(chromedp.MouseMoved, (from+to)/2)
	event(chromedp.MouseMoved, to)
	if got := eval[int](v, `document.querySelectorAll(".chart .selected").length`); got != chartCount {
		v.t.Errorf("while the pointer is dragged, %d charts show what is selected", got)
	}
	event(chromedp.MouseReleased, to)
}

// TestCrosshair checks that all charts show the time and values at the pointer, and the newest ones once it
// has left.
func TestCrosshair(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en")
	v.settled()
	for _, chart := range []string{"decisions", "memory"} {
		v.do(hover(chart, 0.4))
		v.until(crosshairs + `.length === ` + fmt.Sprint(chartCount))
		seen := eval[struct { // at one time, as a refresh moves the time below the pointer
			At     []float64
			Values map[string]string
			Times  []string
			Now    string
		}](v, `({
			At: `+crosshairs+`, Values: `+legends+`,
			Times: [...new Set([...document.querySelectorAll("text.time")].map((text) => text.textContent))],
			Now: new Date(Number(document.querySelector("#chart-keys .plot").ariaValueNow)).toLocaleTimeString("en", { hourCycle: "h23" }),
		})`)
		at, got := seen.At, seen.Values
		for _, share := range at {
			if math.Abs(share-at[0]) > 0.01 || share < 0.25 || share > 0.5 {
				t.Errorf("over %s, the crosshairs are at %v of the charts' widths", chart, at)
				break
			}
		}
		var i int
		if err := json.Unmarshal([]byte(got["connections"]), &i); err != nil || i < 10 || i > inventedPoints {
			t.Fatalf("the legends say %v", got)
		}
		want := map[string]string{"keys": grouped(10 * i), "allowed": grouped(1000 * i), "limited": grouped(500 * i), "memory": fmt.Sprintf("%d\u00a0MiB", i)}
		for name, text := range want {
			if got[name] != text {
				t.Errorf("%s is %q with %d connections, want %q", name, got[name], i, text)
			}
		}
		if len(seen.Times) != 1 || seen.Times[0] != seen.Now {
			t.Errorf("the crosshairs say %q, want %q", seen.Times, seen.Now)
		}
	}
	v.do(chromedp.MouseEvent(chromedp.MouseMoved, 1, 1))
	v.until(crosshairs + `.length === 0`)
}

// TestTouch checks that a tap shows the values until something else is tapped.
func TestTouch(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateTouch))
	v.open("?lang=en")
	v.settled()
	place, err := chromedp.Run(v.tab, placeIn("decisions", 0.5))
	if err != nil {
		t.Fatal(err)
	}
	v.do(chromedp.TapXY(place[0], place[1]))
	v.until(crosshairs + `.length === ` + fmt.Sprint(chartCount))
	v.refreshed()
	if got := eval[int](v, crosshairs+`.length`); got != chartCount {
		t.Errorf("after the tap, and a refresh, %d charts show its values", got)
	}
	v.do(chromedp.Focus(chromedp.CSS("#field-key")))
	v.until(crosshairs + `.length === 0`)
}

// grouped writes a number below a million as the page does.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// TestZoom checks that a drag zooms all charts, and that the button and Escape undo it.
func TestZoom(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en")
	v.settled()
	whole := v.spanMs()
	for _, undo := range []func(){
		func() { v.click("#whole") },
		func() { v.click(`#ranges [value="900000"]`) },
		func() { v.do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Escape)) },
	} {
		v.drag("latency", 0.3, 0.7)
		v.until(shownMs + ` < ` + fmt.Sprint(whole/2))
		if eval[int](v, `document.querySelectorAll("#ranges :checked").length`) != 0 {
			t.Error("a range is selected although the charts show another")
		}
		if got := v.spanMs() / whole; got < 0.38 || got > 0.42 {
			t.Errorf("a drag over 0.4 of the width shows %v of the time", got)
		}
		spans := eval[int](v, `new Set([...document.querySelectorAll(".plot")].map((plot) => plot.ariaValueMin + plot.ariaValueMax)).size`)
		if spans != 1 {
			t.Errorf("the charts show %d different times", spans)
		}
		before := eval[string](v, `document.querySelector("#now").innerText`)
		zoomed := eval[string](v, `document.querySelector("#chart-keys .plot").ariaValueMin`)
		v.until(`document.querySelector("#now").innerText !== ` + quoted(before))
		if eval[string](v, `document.querySelector("#chart-keys .plot").ariaValueMin`) != zoomed {
			t.Error("a refresh moved what was zoomed to")
		}
		undo()
		v.until(shownMs + ` >= ` + fmt.Sprint(whole-stepMs))
		if !eval[bool](v, `document.querySelector("#whole").hidden`) {
			t.Error("the whole range is shown, and so is the button for it")
		}
		if got := eval[string](v, `document.querySelector("#ranges :checked").value`); got != "900000" {
			t.Errorf("the whole range is shown, and %s ms are selected", got)
		}
	}
	v.drag("decisions", 0.5, 0.501) // a click
	if v.spanMs() < whole-stepMs {
		t.Error("a click zooms")
	}
}

// TestRanges checks the radio buttons for the time range, by mouse and keyboard.
func TestRanges(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.do(chromedp.EmulateViewport(1440, 900))
	v.open("?lang=en")
	v.settled()
	v.click(`#ranges [value="60000"]`)
	v.until(shownMs + ` === 60000`)
	v.do(chromedp.KeyEvent(kb.ArrowRight))
	v.until(shownMs + ` === 300000`)
	v.click(`#ranges [value="900000"]`)
	v.until(shownMs + ` > 300000`)
	ticks := eval[[]string](v, `[...document.querySelectorAll("#chart-decisions svg > g:first-child text[text-anchor=middle]")].map((text) => text.textContent)`)
	if len(ticks) < 3 || strings.Count(ticks[0], ":") != 1 {
		t.Errorf("15 minutes have the ticks %q", ticks)
	}
}

// TestChartKeys checks that the arrow keys move the crosshair, which assistive software reads, and that Enter
// twice zooms.
func TestChartKeys(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en")
	v.settled()
	v.click("#pause") // so that no sample is added
	const plot = `document.querySelector("#chart-decisions .plot")`
	v.do(chromedp.Focus(chromedp.CSS("#chart-decisions .plot")))
	now := func() float64 { return eval[float64](v, `Number(`+plot+`.ariaValueNow)`) }
	press := func(keys ...string) {
		for _, k := range keys {
			v.do(chromedp.KeyEvent(k))
		}
	}
	press(kb.Home)
	first := now()
	press(kb.ArrowRight, kb.ArrowRight, kb.ArrowLeft)
	if got := now() - first; got != stepMs {
		t.Errorf("right, right, left from the first sample is %v ms after it", got)
	}
	if got, want := eval[string](v, plot+`.ariaValueText`), ", allowed "; !strings.Contains(got, want) || !strings.Contains(got, ", limited ") {
		t.Errorf("the value is read as %q", got)
	}
	press(kb.End)
	if now() <= first {
		t.Error("End does not lead to the newest sample")
	}
	press(kb.Home, kb.Enter)
	for range 9 {
		v.do(chromedp.KeyEvent(kb.ArrowRight, chromedp.KeyModifiers(chromedp.ModifierShift)))
	}
	press(kb.Enter)
	if got := v.spanMs(); got != 90*stepMs {
		t.Errorf("90 samples were selected, and %v ms are shown", got)
	}
	press(kb.Escape, kb.Escape)
	if v.spanMs() <= 90*stepMs || eval[int](v, crosshairs+`.length`) != 0 {
		t.Error("after Escape there are a zoom or a crosshair still")
	}
}

// TestGap checks that there is no line where there are no values.
func TestGap(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.open("?lang=en")
	v.settled()
	// One part more than the decisions have, which have one unless the test stood still for seconds and
	// missed samples.
	parts := eval[[]int](v, `["latency", "decisions"].map((id) =>
		document.querySelector("#chart-" + id + " .stroke.first").getAttribute("d").split("M").length - 1)`)
	if parts[0] != parts[1]+1 {
		t.Errorf("the curves of latency and decisions have %v parts", parts)
	}
	ticks := eval[[]string](v, `[...document.querySelectorAll("#chart-connections text[text-anchor=end]")].map((text) => text.textContent)`)
	for _, tick := range ticks {
		if strings.Contains(tick, ".") {
			t.Errorf("connections have the ticks %q", ticks)
		}
	}
}

// gridFaults lists faults in the charts' places: rows must fill the page's width, with charts of one width.
const gridFaults = `(() => {
	const box = (e) => e.getBoundingClientRect(), whole = box(document.querySelector(".charts")), rows = new Map(), faults = [];
	for (const chart of document.querySelectorAll(".chart")) {
		rows.set(box(chart).top, [...(rows.get(box(chart).top) ?? []), chart]);
	}
	for (const row of rows.values()) {
		if (Math.abs(box(row[0]).left - whole.left) > 1 || Math.abs(box(row.at(-1)).right - whole.right) > 1) {
			faults.push("a row has a hole: " + row.map((chart) => chart.id));
		}
		for (const [i, chart] of row.entries()) {
			if (i > 0 && box(chart).left - box(row[i - 1]).right > 13) {
				faults.push("there is a hole before " + chart.id);
			}
			if (Math.abs(box(chart).width - box(row[0]).width) > 1) {
				faults.push("a row has charts of several widths: " + row.map((chart) => chart.id));
			}
		}
	}
	return faults;
})()`

// TestGrid checks the rows for any number of charts and any width, and that all plots are aligned.
func TestGrid(t *testing.T) {
	t.Parallel()
	v := visit(t, fakeServer(t).url)
	v.do(chromedp.EmulateViewport(1440, 900))
	v.open("?lang=en")
	v.settled()
	margins := eval[int](v, `new Set([...document.querySelectorAll(".curves")].map((curves) =>
		curves.getAttribute("x") + " " + (curves.ownerSVGElement.clientWidth - curves.getAttribute("x") - curves.getAttribute("width")))).size`)
	if margins != 1 {
		t.Errorf("the plots have %d different margins", margins)
	}
	check := func(charts int) {
		for _, width := range []int64{2560, 1440, 900, 390} {
			v.do(chromedp.EmulateViewport(width, 900))
			if faults := eval[[]string](v, gridFaults); len(faults) > 0 {
				t.Errorf("%d charts, %d pixels: %q", charts, width, faults)
			}
		}
	}
	for charts := chartCount; charts <= 9; charts++ {
		check(charts)
		eval[chromedp.Void](v, `{
			const last = document.querySelector(".charts").lastElementChild, more = last.cloneNode(true);
			more.id += "x";
			last.after(more);
		}`)
	}
	for charts := chartCount - 1; charts >= 1; charts-- {
		eval[chromedp.Void](v, `while (document.querySelectorAll(".chart").length > `+fmt.Sprint(charts)+`) {
			document.querySelector(".charts").lastElementChild.remove();
		}`)
		check(charts)
	}
}

// TestRestart checks that samples from before a restart stay, with a mark in each chart between them and the
// new ones, and that a page that is opened then has a mark of the start.
func TestRestart(t *testing.T) {
	t.Parallel()
	f := fakeServer(t)
	v := visit(t, f.url)
	v.open("?lang=en")
	v.settled()
	if eval[int](v, `document.querySelectorAll("line.start").length`) != 0 {
		t.Error("a server that is older than the charts has a mark")
	}
	const parts = `document.querySelector("#chart-connections .stroke.first").getAttribute("d").split("M").length - 1`
	before := eval[int](v, parts)
	f.restart(t)
	const marks = `[...document.querySelectorAll("text.start")].map((mark) => mark.textContent)`
	v.until(`document.querySelector("line.start") !== null`)
	if got := eval[[]string](v, marks); len(got) != chartCount || got[0] != "restarted" {
		t.Errorf("the marks say %q", got)
	}
	v.until(parts + ` > ` + fmt.Sprint(before)) // a curve of the new samples
	if got := v.spanMs(); got < 14*60_000 {
		t.Errorf("after a restart the charts show %v ms", got)
	}
	v.open("?lang=en")
	v.settled()
	if got := eval[[]string](v, marks); len(got) != chartCount || got[0] != "started" {
		t.Errorf("of a young server the marks say %q", got)
	}
}
