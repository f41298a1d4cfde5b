package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"cellserver/internal/edge/server"
)

// shutdownGrace is the time for connections cut off at --shutdown-timeout to end.
const shutdownGrace = time.Second

// backgroundGrace is the time left to scripts and other background commands once a shutdown begins.
const backgroundGrace = 50 * time.Millisecond

// end ends the server gracefully, at the latest shutdownGrace after --shutdown-timeout, or after twice that
// with a data directory. It returns an error for parts that do not end: the process is about to exit and
// leaves them behind.
func (a *app) end(endBackground func()) error {
	cutOff, ended := make(chan error, 1), make(chan struct{})
	go func() {
		cutOff <- a.shutdown()
		endBackground()
		a.parts.wg.Wait()
		close(ended)
	}()
	maxTime := a.options.ShutdownTimeout + shutdownGrace
	if a.storage.Keeper != nil {
		maxTime += a.options.ShutdownTimeout // the disk's time, in addition to the clients'
	}
	late := time.NewTimer(maxTime)
	defer late.Stop()
	hangs := ""
	select {
	case <-ended:
	case <-late.C:
		hangs = "; still running: " + a.parts.String()
	}
	select {
	case err := <-cutOff:
		if err != nil {
			hangs = "; " + err.Error() + hangs
		}
	default:
	}
	if hangs != "" {
		return fmt.Errorf("the shutdown was cut short after --shutdown-timeout (%s)%s", a.options.ShutdownTimeout, hangs)
	}
	if a.keepErr != nil {
		return a.keepErr
	}
	a.log.Info("stopped")
	return nil
}

// shutdown returns an error if connections do not end even though they are cut off.
func (a *app) shutdown() error {
	a.log.Info("shutting down", "clients", a.server.Stats().Connected, "timeout", a.options.ShutdownTimeout.String())
	ctx, cancel := context.WithTimeout(context.Background(), a.options.ShutdownTimeout)
	defer cancel()
	a.notify(daemon.SdNotifyStopping)
	a.drainReplicas(ctx)
	defer time.AfterFunc(backgroundGrace, a.engine.EndBackground).Stop()
	var others sync.WaitGroup
	others.Go(func() { a.doors.Shutdown(ctx) })
	err := a.server.Shutdown(ctx)
	others.Wait()
	a.doors.AwaitPassed(ctx)
	if err != nil {
		a.log.Warn("some clients did not finish in time and were cut off", "error", err)
	}
	a.web.Shutdown(ctx)
	if errors.Is(err, server.ErrStuck) {
		return err
	}
	return nil
}

// parts are the goroutines of a running server by name, so that a shutdown can name those that hang. The zero
// value is ready. It is safe for concurrent use.
type parts struct {
	wg sync.WaitGroup

	mu      sync.Mutex // rank 90: guards running
	running []string   // names
}

func (p *parts) run(name string, part func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = append(p.running, name)
	p.wg.Go(func() {
		defer p.ended(name)
		part()
	})
}

func (p *parts) ended(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.running, name)
	p.running = slices.Delete(p.running, i, i+1)
}

// String lists the running parts.
func (p *parts) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := slices.Clone(p.running)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
