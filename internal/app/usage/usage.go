// Package usage words mistakes in a command line, suggests corrections and fills help to a width. Its
// functions are safe for concurrent use.
package usage

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
	"cellserver/internal/base/nearest"
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
		return Errorf("%s takes no argument, got %s", strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" "), flagvalue.Quote(args[0]))
	}
	return nil
}

// nameOf returns such as "limits diff".
func nameOf(cmd *cobra.Command) string {
	_, name, _ := strings.Cut(cmd.CommandPath(), " ")
	return name
}

// AtMostOne refuses more than one argument.
func AtMostOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return Errorf("%s: want at most one %s, got %d", nameOf(cmd), name, len(args))
		}
		return nil
	}
}

// ExactlyOne requires one argument.
func ExactlyOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Errorf("%s: want one %s; see %s --help", nameOf(cmd), name, cmd.CommandPath())
		}
		return nil
	}
}

// The exit codes of every command.
const (
	exitDone = iota
	exitFailed
	exitMistake
)

// ExitCode returns the program's exit code after a command's error, or nil.
func ExitCode(err error) int {
	var mistake Error
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &mistake):
		return exitMistake
	}
	return exitFailed
}

const exitAnnotation = "exit code "

// Exits returns the annotations of a command that say what its exit codes 0 and 1 mean.
func Exits(done, failed string) map[string]string {
	return map[string]string{
		exitAnnotation + strconv.Itoa(exitDone):    done,
		exitAnnotation + strconv.Itoa(exitFailed):  failed,
		exitAnnotation + strconv.Itoa(exitMistake): "a mistake in the command line, a variable or the config file",
	}
}

// Exit is an exit code and its meaning.
type Exit struct{ Code, Meaning string }

// ExitsOf returns a command's exit codes; none if it has no Exits.
func ExitsOf(cmd *cobra.Command) (all []Exit) {
	for code := range exitMistake + 1 {
		text := strconv.Itoa(code)
		if meaning, ok := cmd.Annotations[exitAnnotation+text]; ok {
			all = append(all, Exit{text, meaning})
		}
	}
	return all
}

// Wrap fills paragraphs, except those with indented lines.
func Wrap(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if IsTable(p) {
			continue
		}
		var b strings.Builder
		column := 0
		for _, word := range strings.Fields(p) {
			switch {
			case column == 0:
			case column+1+len(word) > width:
				b.WriteByte('\n')
				column = 0
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += len(word)
		}
		paragraphs[i] = b.String()
	}
	return strings.Join(paragraphs, "\n\n")
}

// IsTable reports whether a paragraph is left as it is.
func IsTable(paragraph string) bool {
	return strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ")
}

// otherNames maps names of Redis and its tools to ours where no spelling is near.
func otherNames() map[string]string {
	return map[string]string{
		"port": "addr", "p": "addr", "bind": "addr", "host": "addr", "listen": "addr",
		"tls-port": "tls-addr", "tls-ca-cert-file": "tls-client-ca",
		"dir": "data-dir", "appendonly": "data-dir", "save": "data-dir", "appendfsync": "fsync-interval",
		"c": "config", "addr": "metrics-addr", // of commands that ask the server there
		"metrics-addr": "from", "from": "into", // of commands that copy
		"a": "password-file", "pass": "password-file", "password": "password-file", "askpass": "password-file",
	}
}

// Removed maps settings of earlier versions to what to do instead.
func Removed() map[string]string {
	return map[string]string{
		"handshake-timeout":     "delete it; TLS and authentication have 10 seconds",
		"metrics-password-file": "use metrics-token-file, with the password alone; any user name has it",
		"prefilter":             "delete it; it is always on",
		"repl-interval":         "delete it; the time between rounds of changes adapts itself",
	}
}

// Hint suggests the name that was meant, written by show (nil for as is), or returns otherwise.
func Hint(name string, names []string, show func(name string) string, otherwise string) string {
	if show == nil {
		show = func(name string) string { return name }
	}
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	if instead := Removed()[name]; instead != "" {
		return "it was removed: " + instead
	}
	for meant := otherNames()[name]; meant != ""; meant = otherNames()[meant] {
		if slices.Contains(names, meant) && !slices.Contains(names, name) {
			return "use " + show(meant)
		}
	}
	if meant := nearest.Word(name, names); meant != "" {
		return "did you mean " + show(meant) + "?"
	}
	return otherwise
}

// FlagError returns a mistake in the flags for pflag's error, whose text it replaces.
func FlagError(command string, fs *pflag.FlagSet, err error) error {
	see := "see " + command + " --help"
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var bare *pflag.ValueRequiredError
	switch {
	case errors.As(err, &invalid):
		return Errorf("%w", flagvalue.Describe("--"+invalid.GetFlag().Name, invalid.GetValue(), err))
	case errors.As(err, &bare):
		return Errorf("--%s requires a value; %s", bare.GetFlag().Name, see)
	case errors.As(err, &unknown):
		return unknownFlag(fs, unknown, see)
	}
	return Errorf("%w; %s", err, see)
}

func unknownFlag(fs *pflag.FlagSet, unknown *pflag.NotExistError, see string) error {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	slices.Sort(names)
	name, given := unknown.GetSpecifiedName(), "--"+unknown.GetSpecifiedName()
	if short := unknown.GetSpecifiedShortnames(); short != "" { // or a long flag with one hyphen
		name, _, _ = strings.Cut(short, "=")
		given = "-" + name
	}
	show := func(name string) string { return "--" + name }
	hint := Hint(name, names, show, "")
	if hint == "" && unknown.GetSpecifiedShortnames() != "" { // the rest may be a value, as the password of -a is
		_, size := utf8.DecodeRuneInString(name)
		name = name[:size]
		given = "-" + name
		hint = Hint(name, names, show, "")
	}
	return Errorf("unknown flag %s; %s", given, cmp.Or(hint, see))
}
