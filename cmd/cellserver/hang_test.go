package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/base/clock"
	"cellserver/internal/base/logwriter"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

// startApp runs the server within the test, so that a part of it can be held up. What run returns comes from ended.
func startApp(t *testing.T, args ...string) (a *app, stop func(), ended <-chan error) {
	t.Helper()
	o, err := parseOptions(append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	output := &processtest.Log{}
	lines := logwriter.New(output, o.noteLostLines)
	log := o.logger(lines)
	clk := clock.New()
	web, err := o.newWeb(clk.Now, log)
	if err != nil {
		t.Fatal(err)
	}
	l, err := o.listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a, err = newApp(t.Context(), o, clk, log, lines, l, nil, web); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() {
		result <- a.run(ctx)
		l.close()
		lines.Close(flushTimeout)
	}()
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Log(output.String())
		}
	})
	return a, stop, result
}

// health is the command health, asked of an app.
func (a *app) health(t *testing.T) error {
	t.Helper()
	return checkHealth(t.Context(), a.listeners.metrics.Addr().String(), false, io.Discard)
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

// TestHealthAndShutdownWhileShardsAreHeld: what does not respond is named, and a shutdown ends all the same.
func TestHealthAndShutdownWhileShardsAreHeld(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for ioThreads, stuck := range []string{"connections outside the event loops: 1", "event loop 1 of 1"} {
		a, stop, ended := startApp(t, "--io-threads", []string{"0", "1"}[ioThreads],
			"--shutdown-timeout", "2s")
		a.awaitHealth(t)
		held := a.tables.BeginAll(a.now())
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
		if err := a.prober.alive(); err != nil {
			t.Errorf("/healthz while shards are held for less than the bound: %v", err)
		}
		stop()
		err := <-ended
		if !strings.Contains(text(err), "--shutdown-timeout (2s); ") ||
			!strings.Contains(text(err), stuck+"; these parts do not end: ") {
			t.Errorf("the shutdown ended with %v, want %s", err, stuck)
		}
		held.End()
		_ = nc.Close()
	}
}

func newTestClient(a *app) net.Conn {
	nc, err := net.Dial("tcp", a.listeners.tcp.Addr().String())
	if err != nil {
		panic(err)
	}
	return nc
}

// TestShutdownWithAPartThatHangs: whatever it is, the server ends, and says what.
func TestShutdownWithAPartThatHangs(t *testing.T) {
	a, stop, ended := startApp(t, "--shutdown-timeout", "2s")
	release := make(chan struct{})
	a.parts.run("a test", func() { <-release })
	a.awaitHealth(t)
	stop()
	if err := <-ended; err == nil || !strings.HasSuffix(err.Error(), "these parts do not end: a test") {
		t.Errorf("got %v", err)
	}
	close(release)
}

// TestProberCountsProbes: the process counts as dead only after probes in a row without a response, and lives again with one.
func TestProberCountsProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		shardsHeld := make(chan struct{})
		log := &processtest.Log{}
		p := &prober{
			loops: func(ctx context.Context) error {
				if !hangs.Load() {
					return nil
				}
				<-ctx.Done()
				return errors.New("server: event loop 1 of 2 does not respond")
			},
			shards: func() {
				if hangs.Load() {
					<-shardsHeld
				}
			},
			log: slog.New(slog.NewTextHandler(log, nil)),
		}
		ctx, cancel := context.WithCancel(t.Context())
		go p.run(ctx)
		const both = "event loop 1 of 2 does not respond; the lock of a shard is not released"
		step := func(after time.Duration, ready, alive string) {
			t.Helper()
			time.Sleep(after)
			if err := p.ready(t.Context()); text(err) != ready {
				t.Errorf("ready: got %v, want %q", err, ready)
			}
			if err := p.alive(); text(err) != alive {
				t.Errorf("alive: got %v, want %q", err, alive)
			}
		}
		step(time.Hour+probeInterval/2, "", "")
		hangs.Store(true)
		step(0, both, "")
		step((deadAfter-3)*probeInterval, both, "")
		step(probeInterval, both, "no response to 15 probes in a row, one a second: "+both)
		hangs.Store(false)
		close(shardsHeld)
		step(2*probeInterval, "", "")
		for _, want := range []string{"does not respond; no client", "responds again"} {
			if got := strings.Count(log.String(), want); got != 1 {
				t.Errorf("%d lines with %q", got, want)
			}
		}
		cancel()
		synctest.Wait()
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
