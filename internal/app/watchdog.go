package app

import (
	"context"
	"log/slog"
	"time"
)

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
