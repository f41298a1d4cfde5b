package main

import (
	"context"
	"errors"
	"net"

	"cellserver/internal/base/buildinfo"
	"cellserver/internal/keep/memory"
	"cellserver/internal/store"
)

// letIn says that clients are served. It is called once.
func (a *app) letIn() {
	a.setNotReady("")
	a.logReady()
	a.notifyReady()
	close(a.up)
}

func (a *app) logReady() {
	attrs := []any{"version", buildinfo.Version}
	for _, on := range []struct {
		kind string
		l    net.Listener
	}{
		{"tcp", a.listeners.tcp}, {"tls", a.listeners.tls},
		{"unix", a.listeners.unix}, {"metrics", a.listeners.metrics},
	} {
		if on.l != nil {
			attrs = append(attrs, on.kind, on.l.Addr().String())
		}
	}
	a.log.Info("ready", attrs...)
	a.warnOfAccess()
	a.web.warnOfOtherHosts(a.listeners.metrics, a.log)
}

func (a *app) setNotReady(why string) { a.notReady.Store(&why) }

// ready returns an error while clients are not served.
func (a *app) ready(ctx context.Context) error {
	if why := *a.notReady.Load(); why != "" {
		return errors.New(why)
	}
	if err := a.options.diskReady(a.persistence()); err != nil {
		return err
	}
	if err := a.remote.ready(); err != nil {
		return err
	}
	return a.prober.ready(ctx)
}

// degraded says in what ways a server that is ready does not do all that it should, each in one line; none
// while all is well. It is the one answer for /readyz and cellserver health. A degraded server stays ready:
// all of a fleet are degraded at once, by a flood of keys or a store that is gone, and what is left of the
// limits is worth more than none.
func (a *app) degraded() (ways []string) {
	disk, keys := diskDegraded(a.persistence()), memoryDegraded(&a.shortage, a.now())
	for _, way := range []string{disk, keys, a.remote.degraded()} {
		if way != "" {
			ways = append(ways, way)
		}
	}
	return ways
}

// diskDegraded leaves the cause to the log, as it may contain a path.
func diskDegraded(status func() store.Durability) string {
	if status == nil {
		return ""
	}
	switch st := status(); {
	case st.Fault == nil:
		return ""
	case st.Interval == 0:
		return "changes do not reach the disk, and calls that would change a key get MISCONF; the log says why"
	default:
		return "changes do not reach the disk, and would be forgotten by a restart; the log says why"
	}
}

func memoryDegraded(s *memory.Shortage, nowNs int64) string {
	switch evicted, refused := s.Recent(nowNs); {
	case evicted && refused:
		return "keys were evicted and new keys refused in the last minute; raise --maxmemory"
	case evicted:
		return "keys were evicted in the last minute, and have their full burst again; raise --maxmemory"
	case refused:
		return "new keys were refused in the last minute; raise --maxmemory"
	}
	return ""
}
