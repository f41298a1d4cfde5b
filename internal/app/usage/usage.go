package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }

// mistake makes an error one of the command line; it is not nil.
func mistake(err error) error { return usageError{err} }

func (e usageError) Unwrap() error { return e.err }

// noArguments refuses arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return mistake(fmt.Errorf("%s takes no argument, got %q", strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" "), args[0]))
	}
	return nil
}

// atMostOne refuses more than one argument of a name.
func atMostOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return mistake(fmt.Errorf("%s: want at most one %s, got %d", cmd.Name(), name, len(args)))
		}
		return nil
	}
}

// exactlyOne requires an argument.
func exactlyOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return mistake(fmt.Errorf("%s: want one %s; see %s --help", cmd.Name(), name, cmd.CommandPath()))
		}
		return nil
	}
}
