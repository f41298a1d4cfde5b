package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cellserver/internal/app/ratelimit"
	"cellserver/internal/app/settings"
	"cellserver/internal/app/usage"
)

// Arguments returns those of a process: under the name ratelimit, they begin with that subcommand.
func Arguments(process []string) []string {
	switch {
	case len(process) == 0:
		return nil
	case strings.TrimSuffix(filepath.Base(process[0]), ".exe") == ratelimit.Name:
		return append([]string{ratelimit.Name}, process[1:]...)
	}
	return process[1:]
}

// ratelimitCommand serves as the root does. Its arguments are other people's, and are ignored, but for one
// that alone asks for help.
func ratelimitCommand(p Program) *cobra.Command {
	return &cobra.Command{
		Use: ratelimit.Name, Short: "serve in place of envoyproxy/ratelimit, by its environment", Long: ratelimit.About,
		Annotations: usage.Exits("the server was shut down", "an error"), DisableFlagParsing: true,
		PreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Equal(args, []string{"--help"}) || slices.Equal(args, []string{"-h"}) {
				return cmd.Help()
			}
			o := &settings.Options{}
			if err := ratelimit.Complete(o, os.LookupEnv); err != nil {
				return err
			}
			return p.Serve(cmd.Context(), o, cmd.ErrOrStderr())
		},
	}
}

// printVariables prints those of the subcommand.
func printVariables(b *strings.Builder, width int) {
	all, others := ratelimit.Variables()
	rows := make([]Row, len(all))
	for i, v := range all {
		rows[i] = Row{"  " + v.Name, v.Does}
	}
	b.WriteString("\nVariables:\n")
	printRows(b, rows, width)
	b.WriteString("\n" + usage.Wrap("These have no counterpart, and do nothing: "+strings.Join(others, ", ")+".", width) + "\n")
}
