// Package tools has the subcommands on traces, other servers and data directories.
package tools

import "github.com/spf13/cobra"

// Commands returns the subcommands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		checkCommand(),
		dumpCommand(),
		importCommand(),
		limitsCommand(),
		loadCommand(),
		replayCommand(),
		shadowCommand(),
		topCommand(),
	}
}
