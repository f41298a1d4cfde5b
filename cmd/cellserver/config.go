package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

const configHelp = `Check or show the settings that the server would start with.

A setting is a flag, an environment variable or a line of a config file, and has the same name in each: --maxclients,
CELLSERVER_MAXCLIENTS, and maxclients in the file that --config or CELLSERVER_CONFIG names. A flag goes before a variable,
and that before the file.`

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config COMMAND", Short: "check or show the settings", Long: configHelp, Args: onlySubcommands,
		RunE: func(*cobra.Command, []string) error {
			return usageError{errors.New("config requires a command: check, show or example; see cellserver config --help")}
		},
	}
	cmd.AddCommand(configCheckCommand(), configShowCommand(), configExampleCommand())
	return cmd
}

// serverFlags gives a command all flags of the server, and shows only --config in its help.
func serverFlags(cmd *cobra.Command) (*options, []flagGroup) {
	o := &options{}
	groups := o.flagGroups()
	for _, g := range groups {
		g.flags.VisitAll(func(f *pflag.Flag) {
			if isSetting(f) {
				f.Hidden = f.Name != "config"
				cmd.Flags().AddFlag(f)
			}
		})
	}
	cmd.PreRunE = func(*cobra.Command, []string) error { return nil } // the command itself reads the file
	return o, groups
}

const configCheckHelp = `Check all settings, and the files that they name, without starting a server: prints ok and exits with 0, or prints a line for
each mistake and exits with 1.

It takes all flags of the server, so that a whole command line can be checked. It does not ask whether addresses are free or
servers answer, and does not read the data directory; see cellserver check.`

func configCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check [flags]", Short: "check the settings, and the files that they name", Long: configCheckHelp, Args: noArguments,
		Example: "  cellserver config check --config /etc/cellserver/cellserver.yaml",
	}
	o, _ := serverFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		out := cmd.OutOrStdout()
		log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: withoutTime}))
		wrong := o.checkAll(cmd.Flags(), os.LookupEnv, log)
		for _, mistake := range wrong {
			if _, err := fmt.Fprintln(out, mistake); err != nil {
				return err
			}
		}
		switch len(wrong) {
		case 0:
		case 1:
			return errors.New("config check: 1 mistake")
		default:
			return fmt.Errorf("config check: %d mistakes", len(wrong))
		}
		_, err := fmt.Fprintln(out, "ok")
		return err
	}
	return cmd
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// checkAll is all that can be said of settings without a server.
func (o *options) checkAll(fs *pflag.FlagSet, getenv func(string) (string, bool), log *slog.Logger) problems {
	err := o.complete(fs, getenv)
	var wrong problems
	if err != nil && !errors.As(err, &wrong) {
		return problems{err}
	}
	warnOfUnknownVariables(os.Environ(), log)
	o.file.warnOfReaders(log)
	return append(wrong, o.checkFiles(log)...)
}

const configShowHelp = `Show the settings that the server would start with, and where each is from: a flag, an environment variable, a line of the
config file, or the default. The output is a config file; passwords are left out of it.

It takes all flags of the server.`

func configShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show [flags]", Short: "show the settings, and where each is from", Long: configShowHelp, Args: noArguments,
		Example: "  CELLSERVER_MAXCLIENTS=500 cellserver config show | grep maxclients",
	}
	o, groups := serverFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.complete(cmd.Flags(), os.LookupEnv); err != nil {
			return err
		}
		return o.show(cmd.OutOrStdout(), groups)
	}
	return cmd
}

// show prints all settings.
func (o *options) show(out io.Writer, groups []flagGroup) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, g := range groups {
		g.flags.VisitAll(func(f *pflag.Flag) {
			if !isSetting(f) || f.Name == "config" {
				return
			}
			line, from := f.Name+": "+yamlValue(f, f.Value.String()), o.from[f.Name]
			if hasSecret(f.Name, f.Value.String()) {
				line = "#" + f.Name + ": (not shown)"
			}
			if from == "" {
				from = "default"
			}
			_, _ = fmt.Fprintf(w, "%s\t# %s\n", line, from)
		})
	}
	return w.Flush()
}

var plainValue = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9._/%|-]*(:[0-9]+)?$`)

// yamlValue is a flag's value as a config file has it.
func yamlValue(f *pflag.Flag, text string) string {
	if _, ok := f.Value.(*flagvalue.List); ok {
		return "[" + strings.ReplaceAll(text, ",", ", ") + "]"
	}
	if plainValue.MatchString(text) && !strings.EqualFold(text, "null") {
		return text
	}
	quoted, _ := json.Marshal(text) // which YAML includes
	return string(quoted)
}

func configExampleCommand() *cobra.Command {
	return &cobra.Command{
		Use: "example", Short: "show a config file with all settings and their defaults", Args: noArguments,
		Example: "  cellserver config example > cellserver.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), exampleConfig())
			return err
		},
	}
}

const exampleHead = `# The settings of cellserver, each with its default. To change one, remove the # in front of its name.
#
# A flag (--maxclients 500) goes before an environment variable (CELLSERVER_MAXCLIENTS=500), and that before this file.
# cellserver config check --config FILE checks the file, and cellserver config show --config FILE shows what holds and why.
# A time is 30s, 1m30s or 500ms, or seconds: 30 or 0.5; lua-time-limit, store-timeout and lease-time require a unit.
# SIGHUP makes a server read it again: what can change while it runs does, and of the rest the log says that it
# requires a restart.
`

const exampleWidth = 120

// exampleConfig is a config file that changes nothing.
func exampleConfig() string {
	var b strings.Builder
	b.WriteString(exampleHead)
	for _, g := range (&options{}).flagGroups() {
		fmt.Fprintf(&b, "\n# --- %s ---\n", g.title)
		g.flags.VisitAll(func(f *pflag.Flag) {
			if !isSetting(f) || f.Name == "config" {
				return
			}
			_, usage := pflag.UnquoteUsage(f)
			for line := range strings.Lines(wrap(usage, exampleWidth-2)) {
				b.WriteString("\n# " + strings.TrimRight(line, "\n"))
			}
			fmt.Fprintf(&b, "\n#%s: %s\n", f.Name, yamlValue(f, f.DefValue))
		})
	}
	return b.String()
}
