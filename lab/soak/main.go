// Command soak attacks cellserver beside honest clients, kills it repeatedly, kills the Redis servers behind
// it, or measures how long an attack delays others.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

const usage = `soak attacks cellserver, which it builds from the source around it, beside honest clients, or kills it.

Usage:
  soak run [flags]      attack a server with the race detector in all ways at once; fail unless it stays sound
  soak kills [flags]    kill a server under load again and again; fail if it loses what it was to keep
  soak remote [flags]   call servers in front of a Redis cluster; fail unless limits are kept, also while masters are killed
  soak failover [flags] let a replica take over under load again and again; fail if anything confirmed is lost, or doubled
  soak changes [flags]  change the leader as planned over links of each round trip; fail unless one leads and nothing is lost
  soak changekills [flags] kill either server of a pair around a planned change; fail if a debt older than promised is gone
  soak waits [flags]    kill a leader again and again; fail if its replica lacks what WAIT has confirmed
  soak replica [flags]  measure what others notice of a slow replica and of a full sync; fail if either takes too much memory
  soak values [flags]   make the same calls of values at a server and a redis-server; flood a server with values beside honest clients
  soak measure [flags]  attack a server in one way at a time; print how long other clients wait, or what memory it takes

soak COMMAND --help lists the command's flags.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	commands := map[string]func(context.Context, []string, io.Writer) error{"run": runSoak, "kills": runKills, "remote": runRemote,
		"failover": runFailover, "changes": runChanges, "changekills": runChangeKills, "waits": runWaits, "replica": runReplica, "values": runValues, "measure": runMeasure}
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" || args[0] == "help" {
		_, err := io.WriteString(stdout, usage)
		return err
	}
	command, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("unknown command %q; see soak --help", args[0])
	}
	return command(ctx, args[1:], stdout)
}

// newFlags returns a command's flags. Their help goes to stdout, because the user requested it.
func newFlags(name, synopsis string, stdout io.Writer) *pflag.FlagSet {
	fs := pflag.NewFlagSet("soak "+name, pflag.ContinueOnError)
	fs.SortFlags = false
	fs.SetOutput(stdout)
	fs.Usage = func() {
		_, _ = fmt.Fprintf(stdout, "%s\n\nUsage:\n  soak %s [flags]\n\nFlags:\n%s", synopsis, name, fs.FlagUsages())
	}
	return fs
}

// addSeed adds the flag of a number that the calls and the moments of faults follow from. Errors name it.
func addSeed(fs *pflag.FlagSet, seed *uint64) {
	fs.Uint64Var(seed, "seed", rand.Uint64(), "`number` that calls and moments follow from")
}

// parse parses args, which must all be flags.
func parse(fs *pflag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unknown argument %q; see %s --help", fs.Arg(0), fs.Name())
	}
	return nil
}
