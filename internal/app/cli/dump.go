package cli

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

const dumpHelp = `Write the state of every key of a running cellserver, or of a stopped server's data directory, to a file.

Without FILE, or with -, the dump goes to standard output. FILE is replaced only once the dump is complete. A dump of a
running server is not a snapshot: a key that changes meanwhile is dumped in either state.

In CSV, db and tat_ns are numbers; a key that is not plain UTF-8 text is in key_base64 instead of key. For limiters other
than funnels and for values, tat_ns is the expiry of the key, and kind and payload_base64 hold the rest of the state: of a
value, its text. CSV has no checksum: use the other format for backups. A user of the server needs permission to DUMP and
PEXPIRETIME.`

const dumpExample = `  cellserver dump keys.dump
  cellserver dump --from redis://operator:PASSWORD@limits.example:6380 keys.dump
  CELLSERVER_FROM=rediss://operator:PASSWORD@limits.example:6390 cellserver dump keys.dump
  cellserver dump --from /var/lib/cellserver --format csv - | head`

// dumpCall is a command line; place is --from.
type dumpCall struct{ fileCall }

func dumpCommand() *cobra.Command {
	c := &dumpCall{}
	cmd := &cobra.Command{
		Use: "dump [flags] [FILE|-]", Short: "write the state of all keys to a file", Long: dumpHelp, Example: dumpExample, Args: usage.AtMostOne("FILE"),
		Annotations: usage.Exits("the dump is complete", "an error; FILE is as before"),
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
		return usage.Errorf("dump: standard output is a terminal; name a FILE, or use --format csv")
	}
	keys, err := c.run(ctx, stdout, stderr)
	var usage usage.Error
	switch {
	case errors.As(err, &usage):
		return err
	case err != nil:
		return fmt.Errorf("dump: %w", interrupted(ctx, err, "no dump was written"))
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
	s, err := openServer(ctx, "--from", c.place)
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
