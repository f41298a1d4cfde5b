package cli

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/buildinfo"
)

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version [flags]",
		Short: "show the version and what it was built from",
		Args:  usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := buildinfo.Read()
			if asJSON {
				return printJSON(cmd.OutOrStdout(), info)
			}
			revision, date := info.Revision, ""
			switch {
			case revision == "":
				revision = "unknown"
			case info.Modified:
				revision += ", with uncommitted changes"
			}
			if !info.Time.IsZero() {
				date = "committed\t" + info.Time.UTC().Format(time.RFC3339) + "\n"
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			_, _ = fmt.Fprintf(w, "version\t%s\nrevision\t%s\n%sgo\t%s\nplatform\t%s\n", info.Version, revision, date, info.Go, info.Platform)
			return w.Flush()
		},
	}
	jsonFlag(cmd.Flags(), &asJSON)
	return cmd
}
