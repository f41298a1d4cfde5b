package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"cellserver/internal/app/settings"
	"cellserver/internal/app/usage"
	"cellserver/internal/base/buildinfo"
)

const serveHelp = `cellserver is a rate limiter that speaks the Redis protocol and answers CL.THROTTLE.`

const serveExample = `  cellserver &
  redis-cli -p 6380 cl.throttle laoqian:reply 15 30 60 1`

// Program holds what the command line runs from the package above.
type Program struct {
	Serve      func(ctx context.Context, o *settings.Options, stderr io.Writer) error
	CheckFiles func(o *settings.Options, log *slog.Logger) settings.Problems // the files that settings name
}

func serveCommand(p Program, help *helpPrinter) *cobra.Command {
	o := &settings.Options{}
	cmd := &cobra.Command{
		Use: "cellserver [flags]", Short: "serve Redis clients", Long: serveHelp, Example: serveExample, Args: onlySubcommands,
		DisableFlagsInUseLine: true, Annotations: usage.Exits("the server was shut down", "an error"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Version {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), buildinfo.Read())
				return err
			}
			if err := o.Complete(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			return p.Serve(cmd.Context(), o, cmd.ErrOrStderr())
		},
	}
	help.groups = o.FlagGroups()
	for _, g := range help.groups {
		cmd.Flags().AddFlagSet(g.Flags)
	}
	return cmd
}

// Run runs a command line until its work or ctx is done.
func Run(ctx context.Context, p Program, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	root, help := newRoot(p)
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		shortenUsages(root)
	}
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return help.err
}

// Root returns the command line and the groups of its flags, for the manual.
func Root(p Program) (*cobra.Command, []settings.FlagGroup) {
	root, help := newRoot(p)
	root.InitDefaultHelpCmd()
	return root, help.groups
}
