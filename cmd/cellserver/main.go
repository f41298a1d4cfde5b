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
	"syscall"
	"time"
)

const (
	exitError = 1
	exitUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
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

// printError does not wait without end for standard error, which may be a pipe that nobody reads.
func printError(err error) {
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		fmt.Fprintln(os.Stderr, "cellserver:", err)
	}()
	select {
	case <-printed:
	case <-time.After(flushTimeout):
	}
}

// run is the whole program: it returns when its work or ctx is done.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "replay":
			return runReplay(ctx, args[1:], stdin, stdout, stderr)
		case "health":
			return runHealth(ctx, args[1:], stdout)
		case "dump":
			return runDump(ctx, args[1:], stdout, stderr)
		case "load":
			return runLoad(ctx, args[1:], stdin, stdout, stderr)
		case "import":
			return runImport(ctx, args[1:], stdout, stderr)
		case "check":
			return runCheck(ctx, args[1:], stdout)
		}
	}
	return runServe(ctx, args, stdout, stderr)
}
