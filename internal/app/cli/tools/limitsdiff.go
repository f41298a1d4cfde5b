package tools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/flagvalue"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/migrate/limits"
)

const limitsDiffHelp = `Print what would change on a running server if a file of limits became its --limits-file, a line for each change.

Limits by CL.LIMIT SET that the file does not have would stay, and are not listed. Overrides by CL.LIMIT OVERRIDE would stay, too,
and hold before those of the file. Plans are listed if a limit or an override uses them. The file's max_burst is read as the server
reads it.

It exits with 0 without changes, and with 1 after changes or an error. A user of the server needs +cl.limit +config|get, and to
read all keys, which overrides name.`

const limitsDiffExample = `  cellserver limits diff limits.yml --addr 127.0.0.1:6380
  CELLSERVER_ADDR=rediss://operator:PASSWORD@limits.example:6390 cellserver limits diff limits.yml`

func limitsDiffCommand() *cobra.Command {
	addr := defaultServer
	cmd := &cobra.Command{
		Use: "diff [flags] FILE", Short: "compare a file of limits with a running server", Long: limitsDiffHelp, Example: limitsDiffExample,
		Args: usage.ExactlyOne("FILE"), ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, args []string) error { return diffLimits(cmd, args[0], addr) },
	}
	flagvalue.FuncVar(cmd.Flags(), flagvalue.Func{
		Kind: "host:port", Takes: "host:port, such as 127.0.0.1:6380, or a URL, such as rediss://user:password@host:port",
		Get: func() string { return addr },
		Set: func(text string) bool {
			addr = text
			return isURL(text) || flagvalue.IsAddress(text)
		},
	}, "addr", "`host:port` of the server, or a URL, redis://user:password@host:port, rediss:// or unix://; CELLSERVER_ADDR hides its password from the process list")
	return cmd
}

func diffLimits(cmd *cobra.Command, path, addr string) error {
	if !isURL(addr) {
		addr = "redis://" + addr
	}
	running, err := runningLimits(cmd.Context(), addr)
	var mistake usage.Error
	switch {
	case errors.As(err, &mistake):
		return err
	case err != nil:
		return fmt.Errorf("limits diff: %w", interrupted(cmd.Context(), err, "not all was compared"))
	}
	file, err := readLimitsFile(cmd, path, running.Reading)
	if err != nil {
		return err
	}
	changes := running.Diff(file)
	if err := printChanges(cmd.OutOrStdout(), changes); err != nil {
		return err
	}
	if len(changes) > 0 {
		return errors.New("limits diff: " + counted(int64(len(changes)), "change"))
	}
	return nil
}

func runningLimits(ctx context.Context, url string) (*limits.Running, error) {
	s, err := openServer(ctx, "--addr", url)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return limits.Read(ctx, s)
}

func printChanges(out io.Writer, changes []limitsfile.Change) error {
	w := bufio.NewWriter(out)
	if len(changes) == 0 {
		_, _ = w.WriteString("no changes\n") // Flush returns the error
	}
	for _, c := range changes {
		text := c.Text
		if c.Key != "" {
			text = "key " + plainOrQuoted(c.Key) + strings.TrimPrefix(text, "override")
		}
		if c.Limit != "" {
			text = "limit " + c.Limit + ": " + text
		}
		_, _ = w.WriteString(text + "\n")
	}
	return w.Flush()
}

// plainOrQuoted quotes a key that is not one printable word.
func plainOrQuoted(key string) string {
	odd := func(c rune) bool { return !unicode.IsGraphic(c) || unicode.IsSpace(c) || c == '"' }
	if !utf8.ValidString(key) || strings.ContainsFunc(key, odd) {
		return strconv.Quote(key)
	}
	return key
}
