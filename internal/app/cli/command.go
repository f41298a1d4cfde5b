// Package cli is the command line: the serving root, the subcommands beside a server (on traces, other
// servers and data directories), help and completion. A command belongs to one goroutine.
package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellserver/internal/app/ratelimit"
	"cellserver/internal/app/settings"
	"cellserver/internal/app/usage"
	"cellserver/internal/base/flagvalue"
)

func subcommands(p Program) []*cobra.Command {
	return []*cobra.Command{
		checkCommand(), dumpCommand(), importCommand(), limitsCommand(), loadCommand(), ratelimitCommand(p), replayCommand(), shadowCommand(), topCommand(),
		completionCommand(), configCommand(p), healthCommand(), versionCommand(),
	}
}

// newRoot returns the command line and its help printer. It sets no cobra template: text/template calls
// methods by name, so the linker would keep every method.
func newRoot(p Program) (*cobra.Command, *helpPrinter) {
	help := &helpPrinter{}
	root := serveCommand(p, help)
	root.AddCommand(subcommands(p)...)
	helpCommand := helpCommand()
	finish(helpCommand)
	root.SetHelpCommand(helpCommand)
	root.SetHelpFunc(help.print)
	root.SetUsageFunc(func(*cobra.Command) error { return nil }) // the error suffices
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SilenceErrors, root.SilenceUsage = true, true
	for _, cmd := range root.Commands() {
		finish(cmd)
	}
	completeFlags(root)
	return root, help
}

// finish adds to a subcommand and its children what all subcommands share.
func finish(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolP("help", "h", false, "show this help")
	cmd.DisableFlagsInUseLine = true
	if cmd.PreRunE == nil {
		cmd.PreRunE = setFlags
	}
	if cmd.RunE != nil && cmd.Name() != ratelimit.Name { // which reloads on SIGHUP, as it serves
		endOnHangup(cmd)
	}
	for _, below := range cmd.Commands() {
		finish(below)
	}
}

func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return usage.FlagError(cmd.CommandPath(), cmd.Flags(), err)
}

// setFlags sets the remaining flags from the environment, and from the config file if the command has
// --config. Mistakes in the file only warn: it is the server's, which may run with an earlier version of it.
func setFlags(cmd *cobra.Command, _ []string) error {
	_, file, wrong := settings.SetRest(cmd.Flags(), os.LookupEnv)
	if err := wrong.Err(); err != nil {
		return usage.Errorf("%w", err)
	}
	if file != nil && len(file.Wrong) > 0 {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "cellserver: %v; going on without that\n", file.Wrong)
	}
	return nil
}

// onlySubcommands refuses unknown subcommands and suggests the nearest.
func onlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(cmd, args[0])
}

func unknownCommand(parent *cobra.Command, name string) error {
	var names []string
	for _, below := range parent.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, below.Name())
		}
	}
	meant := usage.Hint(name, names, nil, "see "+parent.CommandPath()+" --help")
	if strings.ContainsAny(name, "./") && !parent.HasParent() { // Redis takes its config file as an argument
		meant = "a config file is named by --config"
	}
	return usage.Errorf("unknown command %s; %s", flagvalue.Quote(name), meant)
}
