package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/flagvalue"
	"cellserver/internal/limiter"
	"cellserver/internal/migrate/transfer"
)

const importHelp = `Import redis-cell's keys from a running Redis into a running cellserver, without forgiving any debt.

The Redis is only read (SCAN, GET or GETRANGE, PTTL, INFO, and TIME within MULTI). A key is imported if it holds a number of
nanoseconds and expires at that time, within 2 s; others are skipped and counted. Times are shifted by the difference of the
two servers' clocks. A key whose state is later on the target stays, so an import may be repeated, and clients may use the
target already. From a cellserver into a Redis with redis-cell it works the same way: keys get the expiry that the module
sets, and limiters other than funnels are skipped and counted. Between cellservers all limiters are copied, by DUMP and
RESTORE. Counters and other values are copied from a cellserver, with their time to live, never from a Redis. Of two values
of a key, the one that expires later stays, else the higher counter, else the target's.`

const importExample = `  cellserver import --dry-run redis://redis.example:6379
  cellserver import --resume import.state --rate 20000 --from-password-file password redis://reader@redis.example:6379
  cellserver import --into redis://redis.example:6379 redis://127.0.0.1:6380`

type importCall struct {
	from, into, match, resume string
	fromAccount, intoAccount  account
	db, rate                  int
	dryRun                    bool
}

func importCommand() *cobra.Command {
	c := &importCall{}
	cmd := &cobra.Command{
		Use: "import [flags] URL", Short: "import redis-cell's keys from a Redis", Long: importHelp, Example: importExample, Args: usage.AtMostOne("URL"),
		Annotations: usage.Exits("all keys were seen", "the target refused keys, or an error"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				c.from = args[0]
			}
			if err := c.check(); err != nil {
				return usage.Errorf("%w", err)
			}
			return c.importAll(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.from, "from", "", "`host:port` of the source, or a URL, redis://user@host:port, rediss:// or unix://, instead of the argument")
	c.fromAccount.define(flags, "from-password-file", "the source", passwordVariable)
	flags.StringVar(&c.into, "into", defaultServer, "`host:port` of the target, or a URL, as of the source")
	c.intoAccount.define(flags, "into-password-file", "the target", "")
	flags.StringVar(&c.match, "match", "*", "import only keys that match a `pattern` in Redis's syntax")
	c.db = -1
	flagvalue.FuncVar(flags, flagvalue.Func{
		Kind: "number", Takes: "all, or a whole number from 0 to 65535, such as 3", Get: c.whichDB, Set: c.setDB,
	}, "db", "import only the database of this `number`; the URL may name it, too")
	flagvalue.NumberVar(flags, &c.rate, "rate", 0, 0, math.MaxInt, "most `keys` to read per second; 0 for no limit")
	flagvalue.BoolVar(flags, &c.dryRun, "dry-run", "write nothing; count the keys and show the first few")
	flags.StringVar(&c.resume, "resume", "", "`file` for the state of the import: resume from it if it exists; removed on completion")
	return cmd
}

func (c *importCall) whichDB() string {
	if c.db < 0 {
		return "all"
	}
	return strconv.Itoa(c.db)
}

func (c *importCall) setDB(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	if err == nil {
		c.db = int(n)
	} else if text == "all" {
		c.db = -1
	}
	return err == nil || text == "all"
}

func (c *importCall) check() error {
	switch {
	case c.from == "":
		return errors.New("import: want the source's URL, such as redis://127.0.0.1:6379; see cellserver import --help")
	case c.dryRun && c.resume != "":
		return errors.New("import: --dry-run and --resume are mutually exclusive")
	}
	return nil
}

func (c *importCall) importAll(ctx context.Context, stdout, stderr io.Writer) error {
	counts, err := c.run(ctx, stdout, stderr)
	done, again := "imported", "give --resume FILE to continue interrupted imports"
	if c.dryRun {
		done = "to import"
	}
	if c.resume != "" {
		again = "call it again, with --resume " + c.resume + ", to continue"
	}
	return reportCounts(stdout, "import", done, counts, interrupted(ctx, err, again))
}

func (c *importCall) run(ctx context.Context, stdout, stderr io.Writer) (transfer.Counts, error) {
	from, err := openServer(ctx, "--from", urlOfAddress(c.from), &c.fromAccount, stderr)
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
		line.updateKeys(counts.Seen, of)
	}}
	if c.dryRun {
		im.Example = func(e transfer.Entry, left time.Duration) {
			_, _ = fmt.Fprintf(stdout, "db %d  %q  %s\n", e.Key.DB, e.Key.Name, describeState(&e.State, left))
		}
		return im.Run(ctx)
	}
	if im.Into, err = openTarget(ctx, urlOfAddress(c.into), &c.intoAccount, stderr); err != nil {
		return transfer.Counts{}, err
	}
	defer im.Into.Close()
	return im.Run(ctx)
}

func describeState(s *limiter.State, left time.Duration) string {
	switch {
	case s.Kind == limiter.Funnel:
		return "empty in " + left.Round(time.Millisecond).String()
	case s.ExpiresNs == limiter.NeverNs:
		return s.Kind.String()
	}
	return s.Kind.String() + ", expires in " + left.Round(time.Millisecond).String()
}
