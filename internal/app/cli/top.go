package cli

import (
	"context"
	"io"
	"math"
	"os"
	"time"

	"github.com/spf13/cobra"

	"cellserver/internal/app/cli/top"
	"cellserver/internal/app/usage"
	"cellserver/internal/base/flagvalue"
)

const topHelp = `Show the hot keys and the named limits of a running server, refreshed, in a terminal until q or Ctrl-C.

Hot keys are those that CL.TOP returns, with calls per second of the last ten seconds; a key that is too new or too seldom has an
average of the last minutes. LIMITED/S is - for a key that is not among the most limited; with --limited, CALLS/S is - for one that
is not among the most requested. Figures of the server and of named limits are differences of its counters per second.

If the server goes away, the screen says so and keeps the last figures until it is back. When standard output is no terminal, or
with --rounds, each round is printed as text, and a line on standard error says when the server goes away and comes back.

A user of the server needs +info +cl.top +cl.limit|list +cl.limit|get; without the last two there are no named limits.`

const topExample = `  cellserver top
  cellserver top --limited --addr limits.example:6380
  cellserver top -n 1 | head -20
  cellserver top --addr rediss://operator@limits.example:6390 --password-file password`

const defaultTopInterval = 2 * time.Second

type topCall struct {
	addr    string
	account account
	options top.Options
}

func topCommand() *cobra.Command {
	c := &topCall{addr: defaultServer}
	cmd := &cobra.Command{
		Use: "top [flags]", Short: "show hot keys and named limits in a terminal", Long: topHelp, Example: topExample, Args: usage.NoArguments,
		Annotations: usage.Exits("it was ended, or all rounds are printed", "the server does not answer at the start, or an error"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	addrFlags(flags, &c.addr, &c.account)
	flagvalue.DurationVar(flags, &c.options.Interval, "interval", defaultTopInterval, 100*time.Millisecond, math.MaxInt64, "`time` between two rounds")
	flagvalue.NumberVarP(flags, &c.options.Rounds, "rounds", "n", 0, 0, math.MaxInt, "`number` of rounds to print as text; 0 for no end")
	flagvalue.BoolVar(flags, &c.options.ByLimited, "limited", "rank keys by limited calls instead of by all calls")
	return cmd
}

func (c *topCall) run(ctx context.Context, in io.Reader, out, problems io.Writer) error {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	s, err := openServer(ctx, "--addr", urlOf(c.addr), &c.account, problems)
	if err != nil {
		return err
	}
	defer s.Close()
	c.options.Server, c.options.Out, c.options.Err = s, out, problems
	c.options.In, _ = in.(*os.File)
	c.options.Quit = quit
	return top.Run(ctx, c.options)
}
