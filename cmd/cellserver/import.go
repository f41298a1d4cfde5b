package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"cellserver/internal/limiter"
	"cellserver/internal/transfer"
)

const importHelp = `Take redis-cell's keys from a running Redis into a running cellserver, so that nobody's debt is forgiven.

Usage:
  cellserver import [flags] redis://user:password@host:port[/db]

The Redis is only read (SCAN, GET or GETRANGE, PTTL, INFO, and TIME within MULTI). A key is taken if it is a number of
nanoseconds and expires at that time, within 2 s; others are passed over and counted. The times are shifted by the
difference of the two servers' clocks. A key whose state is later on the target stays as it is, so an import may be
repeated, and clients may be there already. The other way round, from a cellserver into a Redis with redis-cell, it is the
same: keys get the expiry that the module gives them, and limiters other than funnels are passed over and counted. From one
cellserver into another go all limiters, by DUMP and RESTORE.

Flags:
%s
Examples:
  cellserver import --dry-run redis://redis.example:6379
  cellserver import --resume import.state --rate 20000 redis://reader:PASSWORD@redis.example:6379
  cellserver import --into redis://redis.example:6379 redis://127.0.0.1:6380
`

// importCall is a parsed command line.
type importCall struct {
	from, into, match, resume string
	db, rate                  int
	dryRun                    bool
}

// runImport is the subcommand import.
func runImport(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, flags, err := parseImport(args)
	if err != nil {
		return helpOr(err, importHelp, flags, stdout)
	}
	counts, err := c.run(ctx, stdout, stderr)
	var usage usageError
	if errors.As(err, &usage) {
		return err
	}
	done, again := "imported", "with --resume FILE the next one can go on where one has ended"
	if c.dryRun {
		done = "to import"
	}
	if c.resume != "" {
		again = "call it again, with --resume " + c.resume + ", to go on"
	}
	return reportCounts(stdout, "import", done, counts, interrupted(ctx, err, again))
}

func parseImport(args []string) (*importCall, *pflag.FlagSet, error) {
	c := &importCall{}
	flags := pflag.NewFlagSet("cellserver import", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringVar(&c.from, "from", "", "the source's `URL`, instead of the argument: CELLSERVER_FROM hides its password from who can list processes")
	flags.StringVar(&c.into, "into", defaultServer, "`URL` of the target")
	flags.StringVar(&c.match, "match", "*", "import only keys that match a `pattern` in Redis's syntax")
	flags.IntVar(&c.db, "db", -1, "import only this database; a URL may name it, too")
	flags.Lookup("db").DefValue = "all"
	flags.IntVar(&c.rate, "rate", 0, "read at most so many `keys` a second; 0 for no limit")
	flags.BoolVar(&c.dryRun, "dry-run", false, "write nothing: count, and show the first few keys")
	flags.StringVar(&c.resume, "resume", "", "`file` with the state of the import: if it is there, go on; it is removed when all is done")
	if err := parseFlags(flags, args, os.LookupEnv); err != nil {
		return nil, flags, err
	}
	if flags.NArg() == 1 {
		c.from = flags.Arg(0)
	}
	switch {
	case flags.NArg() > 1 || c.from == "":
		return nil, flags, errors.New("import: want the source's URL, such as redis://127.0.0.1:6379; see cellserver import --help")
	case c.rate < 0:
		return nil, flags, fmt.Errorf("import: --rate must not be negative, got %d", c.rate)
	case c.db < -1 || c.db >= 1<<16:
		return nil, flags, fmt.Errorf("import: --db must be from 0 to 65535, got %d", c.db)
	case c.dryRun && c.resume != "":
		return nil, flags, errors.New("import: --dry-run has no use for --resume")
	}
	return c, flags, nil
}

func (c *importCall) run(ctx context.Context, stdout, stderr io.Writer) (transfer.Counts, error) {
	from, err := openServer("import", c.from)
	if err != nil {
		return transfer.Counts{}, err
	}
	defer from.Close()
	db := c.db
	if n, ok := from.NamesDB(); ok && db < 0 {
		db = n
	}
	line := newKeyProgress(stderr)
	defer line.clear()
	im := transfer.Import{From: from, Match: c.match, DB: db, Rate: c.rate, StateFile: c.resume, Progress: func(counts transfer.Counts, of int64) {
		line.update(counts.Seen, of)
	}}
	if c.dryRun {
		im.Example = func(e transfer.Entry, left time.Duration) {
			_, _ = fmt.Fprintf(stdout, "db %d  %q  %s\n", e.Key.DB, e.Key.Name, remains(&e.State, left))
		}
		return im.Run(ctx)
	}
	if im.Into, err = openTarget(c.into); err != nil {
		return transfer.Counts{}, err
	}
	defer im.Into.Close()
	return im.Run(ctx)
}

// remains says what a key is, and for how long.
func remains(s *limiter.State, left time.Duration) string {
	switch {
	case s.Kind == limiter.Funnel:
		return "empty in " + left.Round(time.Millisecond).String()
	case s.ExpiresNs == limiter.NeverNs:
		return s.Kind.String()
	}
	return s.Kind.String() + ", expires in " + left.Round(time.Millisecond).String()
}
