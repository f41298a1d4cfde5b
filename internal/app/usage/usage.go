// Package usage words mistakes in a command line, suggests corrections and fills help to a width. Its
// functions are safe for concurrent use.
package usage

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Error is a mistake in the command line.
type Error struct{ err error }

// Error implements error.
func (e Error) Error() string { return e.err.Error() }

// Errorf returns a mistake in the command line, worded as by fmt.Errorf.
func Errorf(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }

// Unwrap returns the mistake itself.
func (e Error) Unwrap() error { return e.err }

// NoArguments refuses arguments.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Errorf("%s takes no argument, got %q", strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" "), args[0])
	}
	return nil
}

// AtMostOne refuses more than one argument.
func AtMostOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return Errorf("%s: want at most one %s, got %d", cmd.Name(), name, len(args))
		}
		return nil
	}
}

// ExactlyOne requires one argument.
func ExactlyOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Errorf("%s: want one %s; see %s --help", cmd.Name(), name, cmd.CommandPath())
		}
		return nil
	}
}
