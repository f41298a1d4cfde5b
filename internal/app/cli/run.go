package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

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
