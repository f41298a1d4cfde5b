package main

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
)

const (
	exitError = 1
	exitUsage = 2
)

// programMain is the process's main: it runs the program until its work is done, or a signal ends it, and returns the exit code.
func programMain() (code int) {
	cobra.MousetrapHelpText = "" // on Windows a double click serves, as the bare command does
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	ctx = takeHangups(stop).with(ctx)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if err == nil {
		return 0
	}
	printError(err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitError
}

// printError prints one line, also of errors that are joined. It does not wait without end for standard error, which may be a pipe
// that nobody reads.
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

// run is the whole program: it returns when its work or ctx is done.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	return runCommand(ctx, program{logAndServe, checkFiles}, args, stdin, stdout, stderr)
}
