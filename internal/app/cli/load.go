package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"cellserver/internal/app/usage"
	"cellserver/internal/migrate/transfer"
)

const loadHelp = `Load the state of every key of a dump into a running server or a new data directory.

Without FILE, or with -, the dump is read from standard input. FILE is checked before anything is loaded; standard input is
loaded as it arrives, and if it turns out to be damaged, the report says what was loaded before.

States are absolute, such as the time at which a funnel is empty, so they stay valid however much time has passed since the
dump; expired ones are left out. A running server keeps a key whose state is later, so no debt is forgiven, and a dump may be
loaded twice. Of two values, the one that expires later stays, else the higher counter, else the server's. The server may
also be a Redis with redis-cell: it takes values, and funnels with the expiry that the module sets; other limiters are
skipped and counted.

A data directory must be new, empty or without data. A server started in it has the keys.`

const loadExample = `  cellserver load keys.dump
  cellserver load --into redis://operator:PASSWORD@limits.example:6380 keys.dump
  cellserver load --into /var/lib/cellserver keys.dump
  printf 'key,tat_ns\nalice,%s000000000\n' $(date -d '+1 hour' +%s) | cellserver load --format csv`

// loadCall is a command line; place is --into.
type loadCall struct{ fileCall }

func loadCommand() *cobra.Command {
	c := &loadCall{}
	cmd := &cobra.Command{
		Use: "load [flags] [FILE|-]", Short: "load the keys of a dump", Long: loadHelp, Example: loadExample, Args: usage.AtMostOne("FILE"),
		Annotations: usage.Exits("all keys were loaded or skipped", "the server refused keys, or an error"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.take(args)
			return c.load(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.define(cmd.Flags(), "into")
	return cmd
}

func (c *loadCall) load(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	counts, err := c.run(ctx, stdin, stderr)
	var usage usage.Error
	if errors.As(err, &usage) {
		return err
	}
	return reportCounts(stdout, "load", "loaded", counts, interrupted(ctx, err, "load it again for the rest"))
}

// reportCounts prints the counts, also those before an error, and returns an error if keys were refused.
func reportCounts(stdout io.Writer, command, done string, counts transfer.Counts, err error) error {
	if err == nil || counts.Seen > 0 {
		if err := counts.Print(stdout, done); err != nil {
			return err
		}
	}
	refused := int64(0)
	for _, n := range counts.Refused {
		refused += n
	}
	switch {
	case err != nil && counts.Seen > 0:
		return fmt.Errorf("%s: ended after %d keys: %w", command, counts.Seen, err)
	case err != nil:
		return fmt.Errorf("%s: %w", command, err)
	case refused > 0:
		return fmt.Errorf("%s: %d keys were refused", command, refused)
	}
	return nil
}

func (c *loadCall) run(ctx context.Context, stdin io.Reader, stderr io.Writer) (transfer.Counts, error) {
	in := stdin
	if c.file != "-" {
		f, err := os.Open(c.file)
		if err != nil {
			return transfer.Counts{}, err
		}
		defer f.Close()
		if err := c.check(f); err != nil {
			return transfer.Counts{}, err
		}
		in = f
	}
	from, err := newReader(c.format, untilDone(ctx, in))
	if err != nil {
		return transfer.Counts{}, err
	}
	if !isURL(c.place) {
		return transfer.LoadDir(c.place, time.Now().UnixNano(), from)
	}
	s, err := openTarget(ctx, c.place)
	if err != nil {
		return transfer.Counts{}, err
	}
	defer s.Close()
	line := newKeyProgress(stderr)
	defer line.clear()
	return transfer.Load(ctx, from, s, func(counts transfer.Counts) { line.update(counts.Seen, 0) })
}

// check reads a regular file to its end, so that a damaged one is not loaded in part.
func (c *loadCall) check(f *os.File) error {
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	from, err := newReader(c.format, f)
	for err == nil {
		_, err = from.Read()
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w; nothing was loaded", c.file, err)
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}
