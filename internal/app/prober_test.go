package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/test/processtest"
)

// TestProberCountsProbes: the process is dead only after consecutive failed probes, and alive again after a
// response.
func TestProberCountsProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		shardsHeld := make(chan struct{})
		log := &processtest.Log{}
		p := &prober{
			Loops: func(ctx context.Context) error {
				if !hangs.Load() {
					return nil
				}
				<-ctx.Done()
				return errors.New("server: event loop 1 of 2 does not respond")
			},
			Shards: func() {
				if hangs.Load() {
					<-shardsHeld
				}
			},
			Log: slog.New(slog.NewTextHandler(log, nil)),
		}
		ctx, cancel := context.WithCancel(t.Context())
		go p.Run(ctx)
		const both = "event loop 1 of 2 does not respond; the lock of a shard is not released"
		step := func(after time.Duration, ready, alive string) {
			t.Helper()
			time.Sleep(after)
			if err := p.Ready(t.Context()); said(err) != ready {
				t.Errorf("ready: got %v, want %q", err, ready)
			}
			if err := p.Alive(); said(err) != alive {
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
		for _, want := range []string{"does not respond; clients", "responds again"} {
			if got := strings.Count(log.String(), want); got != 1 {
				t.Errorf("%d lines with %q", got, want)
			}
		}
		cancel()
		synctest.Wait()
	})
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
