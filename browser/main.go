// Command browser opens the live page of a server under load in a real browser and takes the README's screenshots.
// Its tests use the page as people do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1) //nolint:gocritic // nothing is left for stop to do
	}
}

// run serves under load for a while, so that the charts have curves, and then takes the screenshots.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("browser", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("o", "../docs", "`directory` for the screenshots")
	loadTime := flags.Duration("load", 2*time.Minute, "how long to apply load before the screenshots")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %s; see -h", flags.Arg(0))
	}
	path, err := findBrowser()
	if err != nil {
		return err
	}
	s, err := startServer(ctx, stderr)
	if err != nil {
		return err
	}
	defer s.stop()
	loadCtx, endLoad := context.WithCancel(ctx)
	loaded := make(chan error, 1)
	go func() { loaded <- load(loadCtx, s.redis) }()
	defer endLoad()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-loaded:
		return fmt.Errorf("load: %w", err)
	case <-time.After(*loadTime):
	}
	err = takeScreenshots(ctx, path, s.page, *dir)
	endLoad()
	return errors.Join(err, <-loaded)
}

// screenshot is one file: a window size, and what the page shows in it.
type screenshot struct {
	file          string
	width, height int64
	scale         float64
	scheme        string // light or dark
	query         string
}

func takeScreenshots(ctx context.Context, browser, url, dir string) error {
	const inspect = "key=user:1&db=0&max_burst=15&count=30&period=60"
	for _, p := range []screenshot{
		{file: "page-desktop.png", width: 1280, height: 720, scale: 1, scheme: "light", query: "lang=en&" + inspect},
		{file: "page-dark.png", width: 1280, height: 720, scale: 1, scheme: "dark", query: "lang=zh&" + inspect},
		{file: "page-phone.png", width: 390, height: 844, scale: 2, scheme: "light", query: "lang=en&" + inspect},
	} {
		if err := takeScreenshot(ctx, browser, url, filepath.Join(dir, p.file), p); err != nil {
			return fmt.Errorf("%s: %w", p.file, err)
		}
	}
	return nil
}

func takeScreenshot(ctx context.Context, browser, url, path string, p screenshot) error {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	tab, closeTab := openTab(ctx, browser)
	defer closeTab()
	err := chromedp.Do(tab,
		chromedp.EmulateViewport(p.width, p.height, chromedp.EmulateScale(p.scale)),
		colorScheme(p.scheme),
		chromedp.Navigate(url+"?"+p.query),
		chromedp.WaitVisible(chromedp.CSS("#answer svg")),
	)
	if err != nil {
		return err
	}
	png, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
	if err != nil {
		return err
	}
	return os.WriteFile(path, png, 0o644) //nolint:gosec // the screenshots are public
}

func colorScheme(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}
