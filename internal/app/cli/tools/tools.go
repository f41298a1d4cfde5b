package main

import "github.com/spf13/cobra"

// tools returns the subcommands of this package.
func tools() []*cobra.Command {
	return []*cobra.Command{
		checkCommand(),
		dumpCommand(),
		importCommand(),
		loadCommand(),
		replayCommand(),
		shadowCommand(),
	}
}
