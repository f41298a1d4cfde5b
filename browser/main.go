// Command browser opens the server's page in a real browser, under load, and writes pictures of it for the README.
// Its tests have the browser do what people do with the page.
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

// run serves under load for a while, so that there are curves to see, and then takes the pictures.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("browser", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("o", "../docs", "`folder` for the pictures")
	loadTime := flags.Duration("load", 2*time.Minute, "how long there is load before the pictures are taken")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s is no flag; see -h", flags.Arg(0))
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
	err = takePictures(ctx, path, s.page, *dir)
	endLoad()
	return errors.Join(err, <-loaded)
}

// picture is one file: a window, and how the page is looked at in it.
type picture struct {
	file          string
	width, height int64
	scale         float64
	scheme        string // light or dark
	query         string
}

func takePictures(ctx context.Context, browser, url, dir string) error {
	const look = "key=user:1&db=0&max_burst=15&count=30&period=60"
	for _, p := range []picture{
		{file: "page-desktop.png", width: 1280, height: 720, scale: 1, scheme: "light", query: "lang=en&" + look},
		{file: "page-dark.png", width: 1280, height: 720, scale: 1, scheme: "dark", query: "lang=zh&" + look},
		{file: "page-phone.png", width: 390, height: 844, scale: 2, scheme: "light", query: "lang=en&" + look},
	} {
		if err := takePicture(ctx, browser, url, filepath.Join(dir, p.file), p); err != nil {
			return fmt.Errorf("%s: %w", p.file, err)
		}
	}
	return nil
}

func takePicture(ctx context.Context, browser, url, path string, p picture) error {
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
	return os.WriteFile(path, png, 0o644) //nolint:gosec // it is for everyone to see
}

func colorScheme(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}
