package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"cellserver/docs"
)

// alertAnchor is what the runbook_url of an alert ends with.
const alertAnchor = "cellserverdenialspike"

// textLayout is how the runbook lies in the window. Lengths are CSS pixels.
type textLayout struct {
	Overflow     float64 // by which the page is wider than the window
	HeadingTop   float64
	HeadingRight float64
	Beside       string  // a block that does not begin below the one before it
	Narrowest    float64 // block of text
	Widest       float64
	LongestLine  float64 // characters, on average of a block
	Contrast     float64 // of text and ground
}

const measureText = `(() => {
	const main = document.querySelector("main"), heading = document.getElementById("` + alertAnchor + `").getBoundingClientRect();
	const luminance = (color) => {
		const [r, g, b] = color.match(/[\d.]+/g).map((v) => v / 255).map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b;
	};
	const text = luminance(getComputedStyle(main).color), ground = luminance(getComputedStyle(document.body).backgroundColor);
	let beside = "", bottom = -Infinity, narrowest = Infinity, widest = 0, longest = 0;
	for (const block of main.children) {
		const box = block.getBoundingClientRect();
		if (box.top < bottom - 1) beside ||= block.textContent.slice(0, 40);
		bottom = box.bottom;
	}
	for (const block of main.querySelectorAll(":scope > :is(p, ul, ol)")) {
		const box = block.getBoundingClientRect();
		narrowest = Math.min(narrowest, box.width);
		widest = Math.max(widest, box.width);
		if (block.tagName !== "P") continue;
		const range = document.createRange();
		range.selectNodeContents(block);
		const lines = new Set([...range.getClientRects()].map((line) => Math.round(line.bottom / 8)));
		longest = Math.max(longest, block.textContent.length / lines.size);
	}
	return {
		Overflow: document.documentElement.scrollWidth - innerWidth, HeadingTop: heading.top, HeadingRight: heading.right, Beside: beside,
		Narrowest: narrowest, Widest: widest, LongestLine: longest, Contrast: (Math.max(text, ground) + .05) / (Math.min(text, ground) + .05),
	};
})()`

// TestRunbookIsReadable checks the page that alerts link to, in windows from a phone's to a wall's: one
// column of lines that can be read, without scrolling sideways, from the alert's heading on. With
// SCREENSHOTS, a directory, it writes what it sees.
func TestRunbookIsReadable(t *testing.T) {
	t.Parallel()
	f := &fake{}
	source := f.source()
	source.Runbook = docs.Runbook()
	f.listen(t, f.run(t, source))
	v := visit(t, f.url)
	const height = 900
	for _, width := range []int64{390, 768, 1088, 1440, 2560} {
		for _, scheme := range []string{"light", "dark"} {
			v.do(chromedp.EmulateViewport(width, height), colorScheme(scheme))
			v.open("?lang=en") // else only the fragment changes, and nothing is loaded
			v.open("runbook#" + alertAnchor)
			v.until(`document.readyState === "complete" && scrollY > 0`)
			if dir := os.Getenv("SCREENSHOTS"); dir != "" {
				v.screenshot(filepath.Join(dir, fmt.Sprintf("runbook-%d-%s.png", width, scheme)))
			}
			got := eval[textLayout](v, measureText)
			const narrowest, widest, longest, contrast = 330, 800, 130, 4.5
			if got.Overflow > 0 || got.HeadingTop < 0 || got.HeadingTop > height/2 || got.HeadingRight > float64(width) {
				t.Errorf("%d px, %s: the page does not show the alert's section: %+v", width, scheme, got)
			}
			if got.Beside != "" || got.Narrowest < narrowest || got.Widest > widest || got.LongestLine > longest || got.Contrast < contrast {
				t.Errorf("%d px, %s: the text cannot be read: %+v", width, scheme, got)
			}
		}
	}
}

func (v *visitor) screenshot(path string) {
	v.t.Helper()
	picture, err := chromedp.Run(v.tab, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(path, picture, 0o600)
	}
	if err != nil {
		v.t.Fatal(err)
	}
}
