// Package app wires the program: cli parses the command line, and the settings say what to serve. Only cmd
// and the tests in e2e import it. Run may be called several times at once.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"cellserver/internal/app/cli"
	"cellserver/internal/app/usage"
)

const (
	exitError = 1
	exitUsage = 2
)

// Main runs the program until its work is done or a signal ends it, and returns the exit code.
func Main() (code int) {
	cobra.MousetrapHelpText = "" // a double click on Windows serves, like the bare command
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	ctx = cli.TakeHangups(stop).With(ctx)
	err := Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if err == nil {
		return 0
	}
	printError(err)
	var usage usage.Error
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitError
}

// printError prints one line, even for joined errors. It bounds its wait for standard error, which may be a
// pipe that nobody reads.
func printError(err error) {
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		fmt.Fprintln(os.Stderr, "cellserver:", strings.ReplaceAll(err.Error(), "\n", "; "))
	}()
	select {
	case <-printed:
	case <-time.After(flushTimeout):
	}
}

// Run runs the program until its work or ctx is done.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	return cli.Run(ctx, cli.Program{Serve: logAndServe, CheckFiles: checkFiles}, args, stdin, stdout, stderr)
}
