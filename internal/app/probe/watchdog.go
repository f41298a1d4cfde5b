package main

import (
	"context"
	"log/slog"
	"time"
)

// watchdog calls feed once an interval while probes succeed. While a probe hangs it does not, and systemd takes action.
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
			w.log.Error("the server hangs; unless it recovers, the service manager kills it and its stacks are logged",
				"seconds", w.interval.Seconds())
		})
		err := w.probe(ctx)
		late.Stop()
		if err != nil { // the server is shutting down
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
