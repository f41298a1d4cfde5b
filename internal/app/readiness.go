package app

import (
	"context"
	"errors"
	"net"

	"cellserver/internal/base/buildinfo"
)

func (a *app) letIn() {
	a.setNotReady("")
	a.logReady()
	a.notifyReady()
	close(a.up)
}

// letInOnceLoaded lets clients in once the data directory, if any, is loaded.
func (a *app) letInOnceLoaded(ctx context.Context, start func(name string, part func() error)) {
	if a.storage.Keeper == nil {
		a.letIn()
		return
	}
	a.setNotReady("loading the data directory")
	start("the data directory", func() error {
		a.keepErr = a.storage.Keep(ctx, a.letIn)
		return a.keepErr
	})
}

func (a *app) logReady() {
	attrs := []any{"version", buildinfo.Version}
	for _, on := range []struct {
		kind string
		l    net.Listener
	}{
		{"tcp", a.listeners.TCP}, {"tls", a.listeners.TLS},
		{"unix", a.listeners.Unix}, {"metrics", a.listeners.Metrics},
	} {
		if on.l != nil {
			attrs = append(attrs, on.kind, on.l.Addr().String())
		}
	}
	a.log.Info("ready", attrs...)
	a.warnOfAccess()
	a.web.WarnOfOtherHosts(a.listeners.Metrics, a.log)
}

func (a *app) setNotReady(why string) { a.notReady.Store(&why) }

// ready returns an error while clients are not served.
func (a *app) ready(ctx context.Context) error {
	if why := *a.notReady.Load(); why != "" {
		return errors.New(why)
	}
	if err := a.storage.Ready(); err != nil {
		return err
	}
	return a.prober.Ready(ctx)
}
