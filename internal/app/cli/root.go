package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

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

// Hangups delivers SIGHUP: the server reloads its files, a subcommand ends as on SIGTERM.
type Hangups struct {
	Signals chan os.Signal // buffers one, so that an early signal is not lost
	ignored bool           // from the start, as under nohup
	end     func()         // ends the process gracefully
}

// TakeHangups catches SIGHUP, which would otherwise end the process.
func TakeHangups(end func()) *Hangups {
	h := &Hangups{Signals: make(chan os.Signal, 1), ignored: signal.Ignored(syscall.SIGHUP), end: end}
	signal.Notify(h.Signals, syscall.SIGHUP)
	return h
}

type hangupsKey struct{}

// With returns a context that carries the hangups to the running command.
func (h *Hangups) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, hangupsKey{}, h)
}

// HangupsOf returns a context's hangups, or ignored ones.
func HangupsOf(ctx context.Context) *Hangups {
	if h, ok := ctx.Value(hangupsKey{}).(*Hangups); ok {
		return h
	}
	return &Hangups{ignored: true}
}

// endOnHangup ends a subcommand gracefully on SIGHUP, so that no file is left half written. A second one ends
// the process immediately.
func endOnHangup(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		h, ended := HangupsOf(cmd.Context()), make(chan struct{})
		defer close(ended)
		go func() {
			if h.ignored {
				return
			}
			select {
			case <-h.Signals:
				signal.Reset(syscall.SIGHUP)
				h.end()
			case <-ended:
			}
		}()
		return run(cmd, args)
	}
}

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
