package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"cellserver/internal/app/usage"
	"cellserver/internal/migrate/transfer"
)

const dumpHelp = `Write the state of every key to a file: of a running cellserver, or of a data directory whose server does not run.

Without FILE, or with -, the dump goes to standard output. A FILE is replaced when the dump is complete, and only then. A
dump of a running server is not of one moment: a key that changes meanwhile is in it as it was or as it is.

In CSV, db and tat_ns are numbers; a key that is not plain text in UTF-8 is in key_base64 instead of key. Of a limiter that
is no funnel tat_ns is when its key expires, and kind and payload_base64 are the rest of its state. CSV has no checksum: for
a backup use the other format. A user of the server needs the right to DUMP, or all keys must be funnels.`

const dumpExample = `  cellserver dump keys.dump
  cellserver dump --from redis://operator:PASSWORD@limits.example:6380 keys.dump
  CELLSERVER_FROM=rediss://operator:PASSWORD@limits.example:6390 cellserver dump keys.dump
  cellserver dump --from /var/lib/cellserver --format csv - | head`

// dumpCall is a command line; place is --from.
type dumpCall struct{ fileCall }

func dumpCommand() *cobra.Command {
	c := &dumpCall{}
	cmd := &cobra.Command{
		Use: "dump [flags] [FILE|-]", Short: "write all keys' state to a file", Long: dumpHelp, Example: dumpExample, Args: usage.AtMostOne("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.take(args)
			return c.dump(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.define(cmd.Flags(), "from")
	return cmd
}

func (c *dumpCall) dump(ctx context.Context, stdout, stderr io.Writer) error {
	if c.file == "-" && c.format == formatStream && isTerminal(stdout) {
		return usage.Mistake(errors.New("dump: standard output is a terminal; name a FILE, or use --format csv"))
	}
	keys, err := c.run(ctx, stdout, stderr)
	var usage usage.Error
	switch {
	case errors.As(err, &usage):
		return err
	case err != nil:
		return fmt.Errorf("dump: %w", interrupted(ctx, err, "there is no dump"))
	}
	_, err = fmt.Fprintf(stderr, "dump: %d keys\n", keys)
	return err
}

func (c *dumpCall) run(ctx context.Context, stdout, stderr io.Writer) (keys int64, err error) {
	source, err := c.open(ctx, stderr)
	if err != nil {
		return 0, err
	}
	defer source.close()
	err = writeFile(c.file, stdout, func(out io.Writer) error {
		w, err := c.writer(out, source.nowNs)
		if err != nil {
			return err
		}
		if err := source.each(ctx, func(e transfer.Entry) error {
			keys++
			return w.Write(e)
		}); err != nil {
			return err
		}
		return w.Close()
	})
	return keys, err
}

func (c *dumpCall) writer(out io.Writer, nowNs int64) (transfer.Writer, error) {
	if c.format == formatCSV {
		return transfer.NewCSVWriter(out)
	}
	return transfer.NewStreamWriter(out, nowNs)
}

type dumpSource struct {
	nowNs int64
	each  func(ctx context.Context, visit func(e transfer.Entry) error) error
	close func()
}

func (c *dumpCall) open(ctx context.Context, stderr io.Writer) (dumpSource, error) {
	if !isURL(c.place) {
		keys, err := transfer.ReadDir(ctx, c.place, time.Now().UnixNano())
		if err != nil {
			return dumpSource{}, err
		}
		return dumpSource{keys.NowNs, keys.Each, func() {}}, nil
	}
	s, err := openServer("--from", c.place)
	if err != nil {
		return dumpSource{}, err
	}
	nowNs, err := s.NowNs(ctx)
	if err != nil {
		s.Close()
		return dumpSource{}, err
	}
	line := newKeyProgress(stderr)
	each := func(ctx context.Context, visit func(e transfer.Entry) error) error {
		defer line.clear()
		return s.Dump(ctx, visit, line.update)
	}
	return dumpSource{nowNs, each, s.Close}, nil
}
