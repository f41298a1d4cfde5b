package app

import (
	"context"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/base/clock"
	"cellserver/internal/base/logwriter"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

func optionsOf(args ...string) (*settings.Options, error) {
	o := &settings.Options{}
	fs := o.FlagSet(o.FlagGroups())
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return o, o.Complete(fs, os.LookupEnv)
}

// startApp runs the server within the test, so that a part of it can be blocked. ended receives run's error.
func startApp(t *testing.T, args ...string) (a *app, stop func(), ended <-chan error) {
	t.Helper()
	o, err := optionsOf(append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	a, run := openApp(t, o)
	stop, ended = run()
	return a, stop, ended
}

// openApp returns an app that does not serve before run.
func openApp(t *testing.T, o *settings.Options) (a *app, run func() (stop func(), ended <-chan error)) {
	t.Helper()
	output := &processtest.Log{}
	lines := logwriter.New(output, func(sink io.Writer, lost uint64) { noteLostLines(o, sink, lost) })
	log := newLogger(o, lines)
	clk := clock.New()
	web, err := newWebServer(o, clk.Now, log)
	if err != nil {
		t.Fatal(err)
	}
	if a, err = newApp(t.Context(), o, clk, log, lines, nil, web); err != nil {
		t.Fatal(err)
	}
	return a, func() (func(), <-chan error) {
		ctx, stop := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() {
			result <- a.run(ctx)
			a.listeners.Close()
			lines.Close(flushTimeout)
		}()
		t.Cleanup(func() {
			stop()
			if t.Failed() {
				t.Log(output.String())
			}
		})
		return stop, result
	}
}

// health runs the command health on an app.
func (a *app) health(t *testing.T) error {
	t.Helper()
	return Run(t.Context(), []string{"health", "--metrics-addr", a.listeners.Metrics.Addr().String()}, nil, io.Discard, io.Discard)
}

// awaitHealth waits until the command succeeds, or until its error has all of the texts.
func (a *app) awaitHealth(t *testing.T, texts ...string) {
	t.Helper()
	var err error
	if !patience.Until(func() bool {
		if err = a.health(t); err == nil {
			return len(texts) == 0
		}
		lacks := func(want string) bool { return !strings.Contains(err.Error(), want) }
		return len(texts) > 0 && !slices.ContainsFunc(texts, lacks)
	}) {
		t.Fatalf("health: got %v, want %q", err, texts)
	}
}

// TestHealthAndShutdownWhileShardsAreHeld: health names what does not respond, and a shutdown ends all the
// same.
func TestHealthAndShutdownWhileShardsAreHeld(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for ioThreads, stuck := range []string{"connections outside the event loops: 1", "event loop 1 of 1"} {
		a, stop, ended := startApp(t, "--io-threads", []string{"0", "1"}[ioThreads],
			"--shutdown-timeout", "100ms")
		a.awaitHealth(t)
		held, heldAt := a.storage.Tables.BeginAll(a.now()), time.Now()
		a.awaitHealth(t, "503", "the lock of a shard is not released")
		nc := newTestClient(a)
		if _, err := io.WriteString(nc, "CL.THROTTLE k 1 1 60\r\n"); err != nil {
			t.Fatal(err)
		}
		if ioThreads > 0 {
			a.awaitHealth(t, "503", stuck+" does not respond; the lock of a shard is not released")
		} else {
			patience.Until(func() bool { return a.server.Stats().Received > 0 })
		}
		if err := a.prober.Alive(); err != nil && time.Since(heldAt) < deadAfter*probeInterval {
			t.Errorf("/healthz while shards are held for less than the bound: %v", err)
		}
		stop()
		err := <-ended
		if !strings.Contains(text(err), "--shutdown-timeout (100ms); ") ||
			!strings.Contains(text(err), stuck+"; still running: ") {
			t.Errorf("the shutdown ended with %v, want %s", err, stuck)
		}
		held.End()
		_ = nc.Close()
	}
}

func newTestClient(a *app) net.Conn {
	nc, err := net.Dial("tcp", a.listeners.TCP.Addr().String())
	if err != nil {
		panic(err)
	}
	return nc
}

// TestShutdownWithAPartThatHangs: the server ends and names the part.
func TestShutdownWithAPartThatHangs(t *testing.T) {
	a, stop, ended := startApp(t, "--shutdown-timeout", "100ms")
	release := make(chan struct{})
	a.parts.run("a test", func() { <-release })
	a.awaitHealth(t)
	stop()
	// A busy machine may not have ended the others within the time-out.
	said := text(<-ended)
	if _, running, ok := strings.Cut(said, "still running: "); !ok || !strings.Contains(running, "a test") {
		t.Errorf("got %q", said)
	}
	close(release)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
