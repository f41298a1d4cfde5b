package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"time"

	"github.com/chromedp/chromedp"
)

// pageTimeout is what anything with the page may take, a browser's slow start included.
const pageTimeout = time.Minute

var errNoBrowser = errors.New("needs chromium, of Debian's package chromium: run scripts/deps.sh")

func findBrowser() (path string, err error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err = exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoBrowser
}

// openTab starts a browser without a window, that keeps nothing. Chromium's sandbox cannot be had by root, and what is
// opened here is only our own page.
func openTab(ctx context.Context, browser string) (tab context.Context, closeTab func()) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, endBrowser := chromedp.NewExecAllocator(ctx, options...)
	tab, endTab := chromedp.NewContext(allocator)
	return tab, func() {
		endTab()
		endBrowser()
	}
}
