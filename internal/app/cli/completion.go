package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/flagvalue"
)

const completionHelp = `Write a script that makes a shell complete the commands, flags and values of cellserver.

The packages install these scripts. Otherwise, write your shell's (bash, zsh, fish or powershell) to where the shell looks for
them, and start a new shell. The one for bash requires the package bash-completion.`

const completionExample = `  cellserver completion bash > /etc/bash_completion.d/cellserver
  cellserver completion zsh > "${fpath[1]}/_cellserver"
  cellserver completion fish > ~/.config/fish/completions/cellserver.fish
  cellserver completion powershell >> $PROFILE`

func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "write a shell's completion script", Long: completionHelp, Example: completionExample,
		ValidArgs: shells(),
		Args:      usage.ExactlyOne("SHELL: " + flagvalue.Or(shells())),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeCompletion(cmd.Root(), args[0], cmd.OutOrStdout())
		},
	}
}

func writeCompletion(root *cobra.Command, shell string, out io.Writer) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(out, true)
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(out)
	}
	return usage.Errorf("completion: want %s, got %q", flagvalue.Or(shells()), shell)
}

// shortenUsages cuts each flag's usage to fit beside a completion.
func shortenUsages(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		_, usage := pflag.UnquoteUsage(f)
		if end := strings.IndexAny(usage, ";:("); end > 0 {
			usage = strings.TrimRight(usage[:end], " ")
		}
		f.Usage = usage
	})
	for _, below := range cmd.Commands() {
		shortenUsages(below)
	}
}

// completeFlags completes values of flags by their words or by file names; other values have no suggestions.
func completeFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		words, isChoice := f.Value.(interface{ Words() []string })
		kind, _ := pflag.UnquoteUsage(f)
		complete := cobra.FixedCompletions(nil, cobra.ShellCompDirectiveNoFileComp)
		switch {
		case isChoice:
			complete = cobra.FixedCompletions(words.Words(), cobra.ShellCompDirectiveNoFileComp)
		case f.Name == "config":
			complete = cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt)
		case kind == "directory":
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		case kind == "file", kind == "path", kind == "URL":
			return // the shell's own
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails if registered already
	})
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && cmd.HasAvailableSubCommands() {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, below := range cmd.Commands() {
		completeFlags(below)
	}
}
