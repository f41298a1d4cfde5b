// Command cellserver is a rate limiter that speaks the Redis protocol and answers CL.THROTTLE as the redis-cell
// module does.
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

func main() {
	cobra.MousetrapHelpText = "" // on Windows a double click serves, as the bare command does
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	ctx = takeHangups(stop).with(ctx)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if err == nil {
		return
	}
	printError(err)
	var usage usageError
	if errors.As(err, &usage) {
		os.Exit(exitUsage)
	}
	os.Exit(exitError)
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
	root, help := newRoot()
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		shortenUsages(root)
	}
	root.SetArgs(append([]string{}, args...)) // not nil, which would be the process's own
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return help.err
}
