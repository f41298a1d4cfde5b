package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// hangups is what SIGHUP comes to: the server reloads its files once it is up, and a subcommand ends as by
// SIGTERM.
type hangups struct {
	signals chan os.Signal // holds one, so that none is lost that comes before somebody receives
	ignored bool           // from the start on, as by nohup
	end     func()         // ends the process gracefully
}

// takeHangups takes SIGHUP, which would end the process otherwise, wherever it is then.
func takeHangups(end func()) *hangups {
	h := &hangups{signals: make(chan os.Signal, 1), ignored: signal.Ignored(syscall.SIGHUP), end: end}
	signal.Notify(h.signals, syscall.SIGHUP)
	return h
}

type hangupsKey struct{}

// with returns a context that hands the hangups to the command that runs.
func (h *hangups) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, hangupsKey{}, h)
}

// hangupsOf returns a context's hangups, or none.
func hangupsOf(ctx context.Context) *hangups {
	if h, ok := ctx.Value(hangupsKey{}).(*hangups); ok {
		return h
	}
	return &hangups{ignored: true}
}

// endOnHangup has a subcommand end by SIGHUP as its terminal goes, so that no file is left half written. A
// second one ends the process immediately.
func endOnHangup(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		h, ended := hangupsOf(cmd.Context()), make(chan struct{})
		defer close(ended)
		go func() {
			if h.ignored {
				return
			}
			select {
			case <-h.signals:
				signal.Reset(syscall.SIGHUP)
				h.end()
			case <-ended:
			}
		}()
		return run(cmd, args)
	}
}
