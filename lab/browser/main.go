// Command browser takes the screenshots of docs/ from the live page of a server under load, in a real
// browser. Its tests use the page as people do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

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

// run takes screenshots of an empty server, under load, of a page whose server is gone, and of a server that
// evicts keys.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("browser", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("o", "../../docs", "`directory` for the screenshots")
	loadTime := flags.Duration("load", 6*time.Minute, "how long to apply load before the screenshots")
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
	c := camera{browser: path, dir: *dir, rangeMs: shownRange(*loadTime).Milliseconds()}
	if err := c.busyServer(ctx, stderr, *loadTime); err != nil {
		return err
	}
	return c.fullServer(ctx, stderr)
}

// busyServer takes screenshots of a server before, under and after load.
func (c camera) busyServer(ctx context.Context, stderr io.Writer, loadTime time.Duration) error {
	s, err := startServer(ctx, stderr, "throttle-1", "--maxmemory", "157286400", "--limits-file", "limits.yml")
	if err != nil {
		return err
	}
	stop := sync.OnceFunc(s.stop)
	defer stop()
	c.url = s.page
	if err := c.take(ctx, screenshot{file: "page-empty.png", query: english}); err != nil {
		return err
	}
	loads := []func(context.Context, string) error{load, loadNamed}
	if err := underLoad(ctx, s.redis, loads, loadTime, func() error { return c.takeAll(ctx, loadedScreenshots()) }); err != nil {
		return err
	}
	return c.take(ctx, screenshot{file: "page-gone.png", query: english, prepare: chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		stop()
		return chromedp.Do(ctx, chromedp.WaitVisible(chromedp.CSS("#lost")))
	})})
}

// fullServer takes a screenshot of a server that has no room for new keys.
func (c camera) fullServer(ctx context.Context, stderr io.Writer) error {
	s, err := startServer(ctx, stderr, "throttle-1", "--maxmemory", "48mb")
	if err != nil {
		return err
	}
	defer s.stop()
	c.url, c.rangeMs = s.page, time.Minute.Milliseconds()
	loads := []func(context.Context, string) error{load, loadNewKeys}
	return underLoad(ctx, s.redis, loads, time.Minute, func() error {
		return c.take(ctx, screenshot{file: "page-alert.png", query: english, prepare: chromedp.WaitVisible(chromedp.CSS("#fault .alarm"))})
	})
}

// underLoad applies loads for a while, which gives the charts curves, and then calls f.
func underLoad(ctx context.Context, addr string, loads []func(context.Context, string) error, wait time.Duration, f func() error) error {
	ctx, endLoad := context.WithCancel(ctx)
	defer endLoad()
	loaded := make(chan error, len(loads))
	for _, load := range loads {
		go func() { loaded <- load(ctx, addr) }()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-loaded:
		return fmt.Errorf("load: %w", err)
	case <-time.After(wait):
	}
	err := f()
	endLoad()
	for range loads {
		err = errors.Join(err, <-loaded)
	}
	return err
}

// shownRange returns the longest range of the charts that the load fills, or the shortest.
func shownRange(load time.Duration) time.Duration {
	for _, r := range []time.Duration{15 * time.Minute, 5 * time.Minute} {
		if load >= r {
			return r
		}
	}
	return time.Minute
}
