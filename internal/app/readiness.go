package app

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/coreos/go-systemd/v22/daemon"

	"cellserver/internal/base/buildinfo"
)

func (a *app) letIn(ctx context.Context, start func(name string, part func() error)) error {
	if hasLate(a.options) {
		if err := a.listeners.openEnvoy(ctx, a.options); err != nil {
			return err
		}
	}
	a.setNotReady("")
	a.doors.Serve(true, start)
	a.logReady()
	a.notify(daemon.SdNotifyReady)
	close(a.up)
	return nil
}

// letInOnceLoaded lets clients in once the data directory, if any, is loaded.
func (a *app) letInOnceLoaded(ctx context.Context, start func(name string, part func() error)) {
	replicated := make(chan struct{})
	replicate := func() {
		start("replication", func() error {
			defer close(replicated)
			return a.replicate(ctx, start)
		})
	}
	if a.storage.Keeper == nil {
		replicate()
		return
	}
	a.setNotReady("loading the data directory")
	start("the data directory", func() error {
		var begun atomic.Bool
		// until all that was followed is on the disk, and nobody else writes to it
		keeping, end := context.WithCancel(context.WithoutCancel(ctx))
		defer end()
		defer context.AfterFunc(ctx, func() {
			a.writers.Wait()
			if begun.Load() {
				<-replicated
			}
			end()
		})()
		a.keepErr = a.storage.Keep(keeping, func() {
			begun.Store(true)
			replicate()
		}, a.replication.KeepPlace)
		return a.keepErr
	})
}

// logPage logs where the live page is: before all else that a start in order logs.
func (a *app) logPage() {
	if l := a.listeners.Metrics; l != nil && !a.options.NoDashboard {
		a.log.Info("live page", "url", a.web.URL(l.Addr()))
	}
}

// logStart logs what has bounds; maxClients is what the settings permit.
func (a *app) logStart(maxClients int) {
	if fitted := a.options.MaxClients; fitted < maxClients {
		a.log.Warn("the limit of open files allows fewer clients than --maxclients; raise it with ulimit -n",
			"maxclients", maxClients, "lowered_to", fitted)
	}
	a.storage.LogStart()
}

func (a *app) logReady() {
	attrs := []any{"version", buildinfo.Version}
	for name, l := range a.listeners.All() {
		attrs = append(attrs, name, l.Addr().String())
	}
	a.log.Info("ready", attrs...)
	a.warnOfAccess()
	a.web.WarnOfOtherHosts(a.listeners.Metrics, a.log)
}

const shuttingDown = "shutting down"

// setNotReady has no effect once the server is shutting down, as it may still be loading then.
func (a *app) setNotReady(why string) {
	for {
		was := a.notReady.Load()
		if was != nil && *was == shuttingDown || a.notReady.CompareAndSwap(was, &why) {
			return
		}
	}
}

func (a *app) ready(ctx context.Context) error {
	if why := *a.notReady.Load(); why != "" {
		return errors.New(why)
	}
	if err := a.storage.Ready(); err != nil {
		return err
	}
	if err := a.replicaReady(); err != nil {
		return err
	}
	return a.prober.Ready(ctx)
}

// notify sends a state to the service manager by sd_notify(3), if there is one.
func (a *app) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		a.log.Warn("cannot notify the service manager; check NOTIFY_SOCKET and NotifyAccess=", "error", err)
	}
}

// feedWatchdog feeds the service manager's watchdog, if enabled, while the server responds.
func (a *app) feedWatchdog(ctx context.Context) {
	timeout, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		a.log.Warn("the service manager's watchdog is not fed; check WATCHDOG_USEC and WATCHDOG_PID", "error", err)
		return
	}
	if timeout == 0 {
		return
	}
	watchdog{Interval: timeout / 2, Probe: a.prober.Probe, Feed: func() { a.notify(daemon.SdNotifyWatchdog) }, Log: a.log}.Run(ctx)
}
