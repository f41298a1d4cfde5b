package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"cellserver/internal/app/settings"
)

const (
	probeInterval = time.Second
	// deadAfter is the number of consecutive failed probes after which the process is dead, and Kubernetes
	// restarts it. No budget allows a tenth of that. Probes, unlike time, stand still while the process is
	// stopped.
	deadAfter = 15
	// silentAfter is the number after which a line is logged.
	silentAfter = 3
)

// prober checks whether event loops and shards respond. It is safe for concurrent use.
type prober struct {
	// returns once every event loop has responded, or names one that has not
	Loops  func(context.Context) error
	Shards func() // returns after acquiring every shard's lock once
	Log    *slog.Logger

	mu     sync.Mutex    // rank 90: guards all below
	asking chan struct{} // closed when Shards returns; nil while it is not called
	silent int           // consecutive failed probes
	last   error         // of the last of them
}

// Probe returns once every event loop has responded and every shard's lock was acquired. When ctx ends first,
// the error names what did not respond.
func (p *prober) Probe(ctx context.Context) error {
	shards := p.askShards()
	var silent []string
	if err := p.Loops(ctx); err != nil {
		what := strings.TrimPrefix(err.Error(), "server: ")
		silent = append(silent, strings.TrimSuffix(what, ": "+context.DeadlineExceeded.Error()))
	}
	select {
	case <-shards:
	default:
		select {
		case <-shards:
		case <-ctx.Done():
			silent = append(silent, "the lock of a shard is not released")
		}
	}
	if silent == nil {
		return nil
	}
	return errors.New(strings.Join(silent, "; "))
}

// askShards runs Shards in at most one goroutine.
func (p *prober) askShards() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking == nil {
		done := make(chan struct{})
		p.asking = done
		go func() {
			p.Shards()
			p.mu.Lock()
			p.asking = nil
			p.mu.Unlock()
			close(done)
		}()
	}
	return p.asking
}

// Ready returns an error if the server does not respond now.
func (p *prober) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settings.ProbeTimeout)
	defer cancel()
	return p.Probe(ctx)
}

// Alive returns an error if the server has not responded for longer than anything may take.
func (p *prober) Alive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent < deadAfter {
		return nil
	}
	return fmt.Errorf("no response to %d probes in a row, one a second: %w", p.silent, p.last)
}

// Run probes every probeInterval until ctx is done.
func (p *prober) Run(ctx context.Context) {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		err := p.Ready(ctx)
		if ctx.Err() != nil { // a server that shuts down does not respond
			return
		}
		p.note(err)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (p *prober) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = err
	if err == nil {
		if p.silent >= silentAfter {
			p.Log.Info("the server responds again", "seconds", p.silent)
		}
		p.silent = 0
		return
	}
	if p.silent++; p.silent == silentAfter {
		p.Log.Error("the server does not respond; clients that depend on this are not served", "error", err, "seconds", p.silent)
	}
}

// watchdog calls Feed once an interval while probes succeed. While a probe hangs it does not, and systemd
// acts.
type watchdog struct {
	Interval time.Duration
	Probe    func(context.Context) error
	Feed     func()
	Log      *slog.Logger
}

// Run feeds the watchdog until ctx is done.
func (w watchdog) Run(ctx context.Context) {
	ticker := time.NewTicker(w.Interval)
	defer ticker.Stop()
	for {
		late := time.AfterFunc(w.Interval, func() {
			w.Log.Error("the server hangs; the service manager kills it, with its stacks in the log, unless it recovers",
				"seconds", w.Interval.Seconds())
		})
		err := w.Probe(ctx)
		late.Stop()
		if err != nil { // shutting down
			return
		}
		w.Feed()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
