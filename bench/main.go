// Command bench compares cellserver with its peers, and can put load on any Redis server. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

const (
	exitError = 1
	exitUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	if errors.As(err, new(usageError)) {
		os.Exit(exitUsage)
	}
	os.Exit(exitError)
}

const usage = `bench compares cellserver with its peers.

Usage:
  bench run [flags]     start the servers, measure them interleaved, judge the goals
  bench report [flags]  write the tables and charts of a measurement once more
  bench pictures        draw the pictures of docs/LIMITERS.md
  bench load [flags]    put load on a server that runs, and say what came back

bench COMMAND --help lists the command's flags.
`

// usageError is a mistake in the command line.
type usageError struct{ error }

// run is the whole program: it returns when its work or ctx is done.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	commands := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"run":       runSuite,
		"report":    runReport,
		"pictures":  runPictures,
		"load":      runLoad,
		"inprocess": runInProcess, // started by run for each limiter
		"control":   runControl,   // started by run
	}
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" || args[0] == "help" {
		_, err := io.WriteString(stdout, usage)
		return err
	}
	command, ok := commands[args[0]]
	if !ok {
		return usageError{fmt.Errorf("unknown command %q; see bench --help", args[0])}
	}
	return command(ctx, args[1:], stdout, stderr)
}

// newFlags returns a command's flags. Their help goes to stdout, because the user requested it.
func newFlags(name, synopsis string, stdout io.Writer) *pflag.FlagSet {
	fs := pflag.NewFlagSet("bench "+name, pflag.ContinueOnError)
	fs.SortFlags = false
	fs.SetOutput(stdout)
	fs.Usage = func() {
		_, _ = fmt.Fprintf(stdout, "%s\n\nUsage:\n  bench %s [flags]\n\nFlags:\n%s", synopsis, name, fs.FlagUsages())
	}
	return fs
}

// parse parses args, which must all be flags.
func parse(fs *pflag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return usageError{fmt.Errorf("%w; see %s --help", err, fs.Name())}
	}
	if fs.NArg() > 0 {
		return usageError{fmt.Errorf("unknown argument %q; see %s --help", fs.Arg(0), fs.Name())}
	}
	return nil
}
