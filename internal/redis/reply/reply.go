// Package reply has the texts of errors, Redis's where it has the same, and turns any error into a reply. It
// is constant.
package reply

import (
	"errors"
	"strconv"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

// Error is an error's text on the wire, with its code.
type Error string

func (e Error) Error() string { return string(e) }

// Errors of many commands:
const (
	ErrSyntax     Error = "ERR syntax error"
	ErrNotFloat   Error = "ERR value is not a valid float"
	ErrNotInteger Error = "ERR value is not an integer or out of range"
	ErrInt32      Error = "ERR value is out of range, value must between -2147483648 and 2147483647"
	ErrDBRange    Error = "ERR DB index is out of range"
	ErrNoAuth     Error = "NOAUTH Authentication required."
	ErrWrongPass  Error = "WRONGPASS invalid username-password pair or user is disabled."
	ErrNoScript   Error = "NOSCRIPT No matching script. Please use EVAL."
	ErrNotInMulti Error = "ERR Command not allowed inside a transaction"
)

// maxNameBytes is Redis's limit for an unknown name, and for its arguments together, in an error.
const maxNameBytes = 128

func UnknownCommand(args [][]byte) error {
	var b strings.Builder
	b.WriteString("ERR unknown command '" + resp.PrintableN(args[0], maxNameBytes) + "', with args beginning with: ")
	for left, i := maxNameBytes, 1; i < len(args) && left > 0; i++ {
		text := resp.PrintableN(args[i], left)
		b.WriteString("'" + text + "' ")
		left -= len(text) + len("'' ")
	}
	return Error(b.String())
}

func UnknownSubcommand(c *catalog.Command, name []byte) error {
	return Error("ERR unknown subcommand '" + resp.PrintableN(name, maxNameBytes) + "'. Try " + strings.ToUpper(c.Name) + " HELP.")
}

// UnknownOrArity is Redis's reply to a subcommand with too many arguments.
func UnknownOrArity(args [][]byte) error {
	return Error("ERR unknown subcommand or wrong number of arguments for '" + resp.PrintableN(args[1], maxNameBytes) +
		"'. Try " + strings.ToUpper(glob.Fold(args[0])) + " HELP.")
}

// Arity refuses a wrong number of arguments.
func Arity(c *catalog.Command) error {
	return Error("ERR wrong number of arguments for '" + c.FullName() + "' command")
}

// TooManyArguments refuses more arguments than any call needs.
func TooManyArguments(c *catalog.Command) error {
	return Error("ERR more than " + strconv.Itoa(c.Most()) + " arguments for '" + c.FullName() + "'; send fewer at once")
}

// ExecAborted returns why EXEC executed nothing. A remote store's error stays as it is: clients know its
// code.
func ExecAborted(cause error) error {
	if failure := (store.Failure{}); errors.As(cause, &failure) {
		return StoreFailed(cause)
	}
	reason := strings.TrimPrefix(Text(cause), "ERR ")
	return Error("EXECABORT Transaction discarded because of: " + reason)
}

func KeyTooLong(maxBytes int) error {
	return Error("ERR key is longer than " + strconv.Itoa(maxBytes) + " bytes, the limit of --max-key-bytes")
}

// TooLong refuses something longer than the limit set by a flag.
func TooLong(what string, maxBytes int, flag string) error {
	return Error("ERR " + what + " longer than " + strconv.Itoa(maxBytes) + " bytes, the limit of " + flag)
}

// Cell returns an error of CL.THROTTLE in redis-cell's words.
func Cell(reason string) error { return Error("Cell error: Store error: " + reason) }

// Text turns an error into the text of a reply.
func Text(err error) string {
	var protocol *resp.ProtocolError
	var argument *funnel.ArgumentError
	switch {
	case errors.As(err, &protocol):
		return "ERR " + err.Error()
	case errors.As(err, &argument), errors.Is(err, funnel.ErrZeroRate), errors.Is(err, funnel.ErrTooSlow):
		return Text(Cell(err.Error()))
	default:
		return err.Error()
	}
}

// Code returns the error's first word, which identifies it.
func (e Error) Code() string {
	code, _, _ := strings.Cut(string(e), " ")
	return code
}
