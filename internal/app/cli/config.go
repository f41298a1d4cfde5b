package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellserver/internal/app/settings"
	"cellserver/internal/app/usage"
)

const configHelp = `Check or show the settings that the server would start with.

A setting has the same name as a flag, an environment variable and a line of a config file: --maxclients,
CELLSERVER_MAXCLIENTS, and maxclients in the file that --config or CELLSERVER_CONFIG names. A flag overrides a variable,
and a variable the file.`

func configCommand(p Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config COMMAND", Short: "check or show the settings", Long: configHelp, Args: onlySubcommands,
		RunE: func(*cobra.Command, []string) error {
			return usage.Errorf("config requires a command: check, show or example; see cellserver config --help")
		},
	}
	cmd.AddCommand(configCheckCommand(p), configShowCommand(), configExampleCommand())
	return cmd
}

// serverFlags adds all server flags to a command; its help shows --config only.
func serverFlags(cmd *cobra.Command) (*settings.Options, []settings.FlagGroup) {
	o := &settings.Options{}
	groups := o.FlagGroups()
	for _, g := range groups {
		g.Flags.VisitAll(func(f *pflag.Flag) {
			if settings.IsSetting(f) {
				f.Hidden = f.Name != "config"
				cmd.Flags().AddFlag(f)
			}
		})
	}
	cmd.PreRunE = func(*cobra.Command, []string) error { return nil } // the command itself reads the file
	return o, groups
}

const configCheckHelp = `Check all settings and the files that they name, without starting a server. It prints ok, or a line for each mistake.

It takes all flags of the server, so a whole command line can be checked. It does not check whether addresses are free or
servers reachable, and does not read the data directory; see cellserver check.`

func configCheckCommand(p Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "check [flags]", Short: "check the settings and the files that they name", Long: configCheckHelp, Args: usage.NoArguments,
		Annotations: usage.Exits("no mistakes", "mistakes, or an error"),
		Example:     "  cellserver config check --config /etc/cellserver/cellserver.yaml",
	}
	o, _ := serverFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		out := cmd.OutOrStdout()
		log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: withoutTime}))
		wrong := p.checkAll(o, cmd.Flags(), log)
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

// checkAll reports every mistake that can be found without a server.
func (p Program) checkAll(o *settings.Options, fs *pflag.FlagSet, log *slog.Logger) settings.Problems {
	err := o.Complete(fs, os.LookupEnv)
	var wrong settings.Problems
	if err != nil && !errors.As(err, &wrong) {
		return settings.Problems{err}
	}
	settings.WarnOfUnknownVariables(os.Environ(), log)
	o.File.WarnOfReaders(log)
	return append(wrong, p.CheckFiles(o, log)...)
}

const configShowHelp = `Show the settings that the server would start with, and the source of each: a flag, an environment variable, a line of the
config file, or the default. The output is a config file without passwords.

It takes all flags of the server. With --json it prints {"settings": [{"name", "value", "source"}, ...]}: values are texts as flags
take them, and null for a password.`

func configShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show [flags]", Short: "show the settings and their sources", Long: configShowHelp, Args: usage.NoArguments,
		Example: "  CELLSERVER_MAXCLIENTS=500 cellserver config show | grep maxclients",
	}
	o, groups := serverFlags(cmd)
	var asJSON bool
	jsonFlag(cmd.Flags(), &asJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.Complete(cmd.Flags(), os.LookupEnv); err != nil {
			return err
		}
		all := o.Shown(groups)
		if asJSON {
			return printJSON(cmd.OutOrStdout(), map[string]any{"settings": all})
		}
		return settings.WriteShown(cmd.OutOrStdout(), all)
	}
	return cmd
}

func configExampleCommand() *cobra.Command {
	return &cobra.Command{
		Use: "example", Short: "show a config file with all settings and their defaults", Args: usage.NoArguments,
		Example: "  cellserver config example > cellserver.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), settings.Example())
			return err
		},
	}
}
