package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"time"

	"github.com/chromedp/chromedp"
)

// pageTimeout bounds anything done with the page, including a slow start of the browser.
const pageTimeout = 50 * time.Minute

var errNoBrowser = errors.New("requires chromium from Debian's package chromium: run scripts/deps.sh")

func findBrowser() (path string, err error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err = exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoBrowser
}

// openTab starts a headless browser with an empty profile. Chromium's sandbox does not work as root, and the browser
// opens only our own page.
func openTab(ctx context.Context, browser string) (tab context.Context, closeTab func()) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser), chromedp.WSURLReadTimeout(pageTimeout))
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
