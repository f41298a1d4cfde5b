package usage

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"
)

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
