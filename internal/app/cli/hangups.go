package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Hangups is what SIGHUP comes to: the server reloads its files once it is up, and a subcommand ends as by
// SIGTERM.
type Hangups struct {
	Signals chan os.Signal // holds one, so that none is lost that comes before somebody receives
	ignored bool           // from the start on, as by nohup
	end     func()         // ends the process gracefully
}

// TakeHangups takes SIGHUP, which would end the process otherwise, wherever it is then.
func TakeHangups(end func()) *Hangups {
	h := &Hangups{Signals: make(chan os.Signal, 1), ignored: signal.Ignored(syscall.SIGHUP), end: end}
	signal.Notify(h.Signals, syscall.SIGHUP)
	return h
}

type hangupsKey struct{}

// With returns a context that hands the hangups to the command that runs.
func (h *Hangups) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, hangupsKey{}, h)
}

// HangupsOf returns a context's hangups, or none.
func HangupsOf(ctx context.Context) *Hangups {
	if h, ok := ctx.Value(hangupsKey{}).(*Hangups); ok {
		return h
	}
	return &Hangups{ignored: true}
}

// endOnHangup has a subcommand end by SIGHUP as its terminal goes, so that no file is left half written. A
// second one ends the process immediately.
func endOnHangup(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		h, ended := HangupsOf(cmd.Context()), make(chan struct{})
		defer close(ended)
		go func() {
			if h.ignored {
				return
			}
			select {
			case <-h.Signals:
				signal.Reset(syscall.SIGHUP)
				h.end()
			case <-ended:
			}
		}()
		return run(cmd, args)
	}
}
