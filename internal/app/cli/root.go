package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"cellserver/internal/base/buildinfo"
)

const serveHelp = `cellserver is a rate limiter that speaks the Redis protocol and answers CL.THROTTLE.`

const serveExample = `  cellserver &
  redis-cli -p 6380 cl.throttle laoqian:reply 15 30 60 1`

// program is what a command line runs that is above this package.
type program struct {
	serve      func(ctx context.Context, o *options, stderr io.Writer) error
	checkFiles func(o *options, log *slog.Logger) problems // those that settings name
}

// serveCommand is the root: without a subcommand the program serves.
func serveCommand(p program, help *helpPrinter) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: "cellserver [flags]", Short: "serve Redis clients", Long: serveHelp, Example: serveExample, Args: onlySubcommands,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.version {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), buildinfo.Read())
				return err
			}
			if err := o.complete(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			return p.serve(cmd.Context(), o, cmd.ErrOrStderr())
		},
	}
	help.groups = o.flagGroups()
	for _, g := range help.groups {
		cmd.Flags().AddFlagSet(g.flags)
	}
	return cmd
}
