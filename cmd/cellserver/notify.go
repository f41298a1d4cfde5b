package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"cellserver/internal/store"
)

// notify tells the service manager, where one started the server and wants to know, as sd_notify(3) has it.
func (a *app) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		a.log.Warn("cannot tell the service manager how the server is; look at NOTIFY_SOCKET and NotifyAccess=", "error", err)
	}
}

func (a *app) notifyReady() { a.notify(daemon.SdNotifyReady) }

func (a *app) notifyStopping() { a.notify(daemon.SdNotifyStopping) }

// notifyReloading says that a reload has begun, and when, which a unit with Type=notify-reload asks for.
func (a *app) notifyReloading() {
	a.notify(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
}

// feedWatchdog tells the service manager that the server is alive, for as long as it is and the manager asks for it.
func (a *app) feedWatchdog(ctx context.Context) {
	timeout, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		a.log.Warn("the service manager's watchdog is not fed; look at WATCHDOG_USEC and WATCHDOG_PID", "error", err)
		return
	}
	if timeout == 0 {
		return
	}
	watchdog{interval: timeout / 2, probe: a.probe, feed: func() { a.notify(daemon.SdNotifyWatchdog) }, log: a.log}.run(ctx)
}

// probe returns when every event loop has come around and every shard's lock could be had: then clients are served.
func (a *app) probe(ctx context.Context) error {
	if err := a.server.Probe(ctx); err != nil {
		return err
	}
	var st store.Stats
	a.store.UpdateStats(&st)
	return nil
}

// watchdog feeds once an interval while probes succeed. While one hangs nothing is fed, and whoever waits for it acts.
type watchdog struct {
	interval time.Duration
	probe    func(context.Context) error
	feed     func()
	log      *slog.Logger
}

func (w watchdog) run(ctx context.Context) {
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		late := time.AfterFunc(w.interval, func() {
			w.log.Error("the server hangs; unless it comes around, the service manager ends it and logs what it hangs in",
				"seconds", w.interval.Seconds())
		})
		err := w.probe(ctx)
		late.Stop()
		if err != nil { // the server is ending
			return
		}
		w.feed()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
