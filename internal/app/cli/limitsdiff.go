package cli

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
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/migrate/limits"
)

const limitsDiffHelp = `Print what would change on a running server if a file of limits became its --limits-file, a line for each change.

Limits by CL.LIMIT SET that the file does not have would stay, and are not listed. Overrides by CL.LIMIT OVERRIDE would stay, too,
and hold before those of the file. Plans are listed if a limit or an override uses them. The file's max_burst is read as the server
reads it.

With --json it prints {"changes": [{"limit", "key", "text"}, ...]}: limit is "" for a change of a plan, and key is there for an
override of a key; key_base64 instead if it is not UTF-8.

A user of the server needs +cl.limit +config|get, and to read all keys, which overrides name.`

const limitsDiffExample = `  cellserver limits diff limits.yml --addr 127.0.0.1:6380
  CELLSERVER_ADDR=rediss://operator:PASSWORD@limits.example:6390 cellserver limits diff limits.yml`

func limitsDiffCommand() *cobra.Command {
	addr, asJSON := defaultServer, false
	cmd := &cobra.Command{
		Use: "diff [flags] FILE", Short: "compare a file of limits with a running server", Long: limitsDiffHelp, Example: limitsDiffExample,
		Args: usage.ExactlyOne("FILE"), ValidArgsFunction: completeYAML, Annotations: usage.Exits("no changes", "changes, or an error"),
		RunE: func(cmd *cobra.Command, args []string) error { return diffLimits(cmd, args[0], addr, asJSON) },
	}
	addrFlag(cmd.Flags(), &addr)
	jsonFlag(cmd.Flags(), &asJSON)
	return cmd
}

func diffLimits(cmd *cobra.Command, path, addr string, asJSON bool) error {
	running, err := runningLimits(cmd.Context(), urlOf(addr))
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
	if asJSON {
		err = printJSON(cmd.OutOrStdout(), changesDocument(changes))
	} else {
		err = printChanges(cmd.OutOrStdout(), changes)
	}
	if err != nil {
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

// changesDocument returns changes for JSON.
func changesDocument(changes []limitsfile.Change) any {
	type change struct {
		Limit string `json:"limit"`
		documentKey
		Text string `json:"text"`
	}
	all := []change{}
	for _, c := range changes {
		one := change{Limit: c.Limit, Text: c.Text}
		if c.Key != "" {
			one.documentKey = documentKeyOf(c.Key)
		}
		all = append(all, one)
	}
	return map[string]any{"changes": all}
}

// plainOrQuoted quotes a key that is not one printable word.
func plainOrQuoted(key string) string {
	odd := func(c rune) bool { return !unicode.IsGraphic(c) || unicode.IsSpace(c) || c == '"' }
	if !utf8.ValidString(key) || strings.ContainsFunc(key, odd) {
		return strconv.Quote(key)
	}
	return key
}
