// Package app wires the program: cli parses the command line, and the settings say what to serve. Only cmd
// and the tests in e2e import it. Run may be called several times at once.
package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/grpclog"

	"cellserver/internal/app/cli"
	"cellserver/internal/app/settings"
	"cellserver/internal/app/usage"
	"cellserver/internal/base/logwriter"
)

// Main runs the program until its work is done or a signal ends it, and returns the exit code.
func Main() (code int) {
	cobra.MousetrapHelpText = "" // a double click on Windows serves, like the bare command
	// Clients can have grpc-go log any number of lines. What matters of them, the door logs.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	ctx = cli.TakeHangups(stop).With(ctx)
	err := Run(ctx, cli.Arguments(os.Args), os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		printError(err)
	}
	return usage.ExitCode(err)
}

// printError prints one line, even for joined errors. It bounds its wait for standard error, which may be a
// pipe that nobody reads.
func printError(err error) {
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		fmt.Fprintln(os.Stderr, "cellserver:", strings.ReplaceAll(err.Error(), "\n", "; "))
	}()
	logwriter.Await(printed, flushTimeout)
}

// Run runs the program until its work or ctx is done.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	return cli.Run(ctx, cli.Program{Serve: logAndServe, CheckFiles: checkFiles}, args, stdin, stdout, stderr)
}

// flushTimeout bounds the wait for the last log lines at exit: enough for any sink that takes lines at all.
const flushTimeout = 500 * time.Millisecond

func newLogger(o *settings.Options, w io.Writer) *slog.Logger {
	o.Level.Set(settings.SlogLevel(o.LogLevel))
	return loggerAt(&o.Level, o, w)
}

// newAudit returns a logger of what is on record at every --log-level.
func newAudit(o *settings.Options, w io.Writer) *slog.Logger { return loggerAt(slog.LevelInfo, o, w) }

func loggerAt(minLevel slog.Leveler, o *settings.Options, w io.Writer) *slog.Logger {
	handler := &slog.HandlerOptions{Level: minLevel}
	if o.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, handler))
	}
	return slog.New(slog.NewTextHandler(w, handler))
}

// noteLostLines logs lost lines to the sink itself.
func noteLostLines(o *settings.Options, sink io.Writer, lost uint64) {
	newLogger(o, sink).Warn("log lines were lost: they came faster than they could be written", "lines", lost)
}
