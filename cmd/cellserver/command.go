package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// subcommands are all but serving. Each has a file of its own.
func subcommands() []*cobra.Command {
	return []*cobra.Command{
		checkCommand(),
		dumpCommand(),
		healthCommand(),
		importCommand(),
		loadCommand(),
		replayCommand(),
		shadowCommand(),
		versionCommand(),
	}
}

// newRoot returns the command line, and what prints its help. It sets no template of cobra's: text/template calls
// methods by name, and so the linker would have to keep every method of the program.
func newRoot() (*cobra.Command, *helpPrinter) {
	help := &helpPrinter{}
	root := serveCommand(help)
	root.AddCommand(subcommands()...)
	root.SetHelpCommand(helpCommand())
	root.SetHelpFunc(help.print)
	root.SetUsageFunc(func(*cobra.Command) error { return nil }) // an error says enough
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return setFromEnvironment(cmd.Flags(), os.LookupEnv) }
	for _, cmd := range root.Commands() {
		finish(cmd)
	}
	return root, help
}

// finish gives a subcommand, and those below it, what all have.
func finish(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolP("help", "h", false, "show this help")
	cmd.DisableFlagsInUseLine = true
	for _, below := range cmd.Commands() {
		finish(below)
	}
}

// flagError makes an error of pflag's one of the command line.
func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
}

// noArguments refuses arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no argument, got %q", cmd.Name(), args[0])}
	}
	return nil
}

// atMostOne refuses more than one argument of a name.
func atMostOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usageError{fmt.Errorf("%s: want at most one %s, got %d", cmd.Name(), name, len(args))}
		}
		return nil
	}
}

// onlySubcommands refuses what is no subcommand, and names the nearest.
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
	hint := "see " + parent.CommandPath() + " --help"
	if nearest := nearestName(name, names); nearest != "" {
		hint = "did you mean " + nearest + "?"
	}
	return usageError{fmt.Errorf("unknown command %q; %s", name, hint)}
}

// nearestName returns the name with the fewest edits, unless that is half of it or more.
func nearestName(name string, names []string) (nearest string) {
	fewest := (len(name) + 1) / 2
	for _, other := range names {
		if n := edits(name, other); n < fewest {
			nearest, fewest = other, n
		}
	}
	return nearest
}

// edits is the Levenshtein distance of two texts: how many bytes must be inserted, removed or replaced.
func edits(a, b string) int {
	row := make([]int, len(b)+1) // of the part of a so far, to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			n := diagonal
			if a[i] != b[j] {
				n = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], n
		}
	}
	return row[len(b)]
}
