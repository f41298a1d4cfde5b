package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/flagvalue"
	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/migrate/limits"
)

const limitsImportHelp = `Translate configurations of envoyproxy/ratelimit into a file of limits on standard output. The call for each limit is above it.

Constructs that are not translated, or only in part, are named on standard error, each in a line FILE:LINE: NOTE that says what to do.
The limits are written with and without notes.

With --json it prints {"limits_file": "...", "notes": [{"file", "line", "text"}, ...]}.`

const limitsImportExample = `  cellserver limits import ratelimit/config/*.yaml > limits.yml
  cellserver limits import --merge-domains --allow-notes a.yaml b.yaml > limits.yml`

// maxEnvoyFileBytes exceeds what a file of limits has room for.
const maxEnvoyFileBytes = 32 << 20

type limitsImportCall struct {
	options    envoyconfig.Options
	allowNotes bool
	json       bool
}

func limitsImportCommand() *cobra.Command {
	c := &limitsImportCall{}
	cmd := &cobra.Command{
		Use: "import [flags] FILE...", Short: "translate envoyproxy/ratelimit's configuration", Long: limitsImportHelp, Example: limitsImportExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Errorf("import: want at least one FILE; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		Annotations:       usage.Exits("all is translated, or --allow-notes is given", "there are notes, or an error"),
		ValidArgsFunction: completeYAML,
		RunE:              c.run,
	}
	flags := cmd.Flags()
	flagvalue.BoolVar(flags, &c.options.MergeDomains, "merge-domains", "permit several files with the same domain, as MERGE_DOMAIN_CONFIG does there")
	flagvalue.BoolVar(flags, &c.allowNotes, "allow-notes", "exit with 0 even if there are notes")
	jsonFlag(flags, &c.json)
	return cmd
}

func (c *limitsImportCall) run(cmd *cobra.Command, paths []string) error {
	files := make([]envoyconfig.File, len(paths))
	for i, path := range paths {
		text, err := yamlfile.ReadUpTo(path, maxEnvoyFileBytes)
		if err != nil {
			return fmt.Errorf("limits import: %w", err)
		}
		files[i] = envoyconfig.File{Path: path, Text: text}
	}
	out, notes, err := limits.Translate(files, c.options)
	if err != nil {
		return printProblems(cmd, err)
	}
	if c.json {
		err = printJSON(cmd.OutOrStdout(), map[string]any{"limits_file": string(out), "notes": remarksOf(notes)})
	} else {
		_, err = cmd.OutOrStdout().Write(out)
	}
	if err != nil {
		return err
	}
	for _, n := range notes {
		if _, err := fmt.Fprintln(cmd.ErrOrStderr(), n); err != nil {
			return err
		}
	}
	if len(notes) == 0 || c.allowNotes {
		return nil
	}
	return errors.New("limits import: " + counted(int64(len(notes)), "construct") + " not translated, or only in part; --allow-notes accepts that")
}
