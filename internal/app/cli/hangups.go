package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Hangups delivers SIGHUP: the server reloads its files, a subcommand ends as on SIGTERM.
type Hangups struct {
	Signals chan os.Signal // buffers one, so that an early signal is not lost
	ignored bool           // from the start, as under nohup
	end     func()         // ends the process gracefully
}

// TakeHangups catches SIGHUP, which would otherwise end the process.
func TakeHangups(end func()) *Hangups {
	h := &Hangups{Signals: make(chan os.Signal, 1), ignored: signal.Ignored(syscall.SIGHUP), end: end}
	signal.Notify(h.Signals, syscall.SIGHUP)
	return h
}

type hangupsKey struct{}

// With returns a context that carries the hangups to the running command.
func (h *Hangups) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, hangupsKey{}, h)
}

// HangupsOf returns a context's hangups, or ignored ones.
func HangupsOf(ctx context.Context) *Hangups {
	if h, ok := ctx.Value(hangupsKey{}).(*Hangups); ok {
		return h
	}
	return &Hangups{ignored: true}
}

// endOnHangup ends a subcommand gracefully on SIGHUP, so that no file is left half written. A second one ends
// the process immediately.
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
