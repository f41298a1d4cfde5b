// Package probe tells whether what serves the clients still does, and feeds the service manager's watchdog as
// long as it does.
package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// Timeout is how long what serves the clients may take to respond: a thousand times what is usual, and as
	// long as the whole time limit of a script, which is the longest that anything may take.
	Timeout = time.Second
	// probeInterval is how often the server looks at itself.
	probeInterval = time.Second
	// deadAfter is after how many probes in a row without a response the process is no longer alive, which Kubernetes
	// restarts. No budget allows a tenth of that; and probes, unlike time, do not pass while the process is stopped.
	deadAfter = 15
	// silentAfter is after how many of them a line is logged.
	silentAfter = 3
)

// Prober tells whether what serves the clients still does its work. It is safe for concurrent use.
type Prober struct {
	Loops  func(context.Context) error // returns once every event loop has responded, or an error that names one
	Shards func()                      // returns once every shard's lock was acquired
	Log    *slog.Logger

	mu     sync.Mutex    // guards all below
	asking chan struct{} // closed when shards returns; nil while it is not called
	silent int           // probes in a row that had no response
	last   error         // of the last of them
}

// Probe returns once every event loop has responded and every shard's lock was acquired: then clients are
// served. When ctx is done first, the error names what did not respond.
func (p *Prober) Probe(ctx context.Context) error {
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

// askShards has at most one goroutine wait for the shards' locks.
func (p *Prober) askShards() <-chan struct{} {
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

// Ready returns an error if what serves the clients does not respond now.
func (p *Prober) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	return p.Probe(ctx)
}

// Alive returns an error if it has not responded for longer than anything that is allowed.
func (p *Prober) Alive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent < deadAfter {
		return nil
	}
	return fmt.Errorf("no response to %d probes in a row, one a second: %w", p.silent, p.last)
}

// Run probes once an interval until ctx is done.
func (p *Prober) Run(ctx context.Context) {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		err := p.Ready(ctx)
		if ctx.Err() != nil { // what shuts down no longer responds
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

func (p *Prober) note(err error) {
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
		p.Log.Error("the server does not respond; no client is served that needs this", "error", err, "seconds", p.silent)
	}
}
