package app

import (
	"context"

	"github.com/coreos/go-systemd/v22/daemon"

	"cellserver/internal/app/probe"
)

// notify sends a state to the service manager by sd_notify(3), if there is one.
func (a *app) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		a.log.Warn("cannot notify the service manager; check NOTIFY_SOCKET and NotifyAccess=", "error", err)
	}
}

func (a *app) notifyReady() { a.notify(daemon.SdNotifyReady) }

func (a *app) notifyStopping() { a.notify(daemon.SdNotifyStopping) }

// notifyReloading reports the start of a reload and its time, as Type=notify-reload requires.
func (a *app) notifyReloading() {
	a.notify(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
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
	probe.Watchdog{Interval: timeout / 2, Probe: a.prober.Probe, Feed: func() { a.notify(daemon.SdNotifyWatchdog) }, Log: a.log}.Run(ctx)
}
