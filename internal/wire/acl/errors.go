package acl

import (
	"strconv"
	"strings"
)

// ruleError is an error in a rule, in Redis's words where it has the same.
type ruleError string

func (e ruleError) Error() string { return string(e) }

const (
	errSyntax      ruleError = "Syntax error"
	errUnknownName ruleError = "Unknown command or category name in ACL"
	errFirstArg    ruleError = "Allowing first-arg of a subcommand is not supported"
	errAfterAll    ruleError = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not " +
		"have any effect. Try 'resetkeys' to start with an empty list of patterns"
	errAfterAllChannels ruleError = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and " +
		"does not have any effect. Try 'resetchannels' to start with an empty list of channels"
	errNoSuchPassword ruleError = "The password you are trying to remove from the user does not exist"
	errHash           ruleError = "The password hash must be exactly 64 characters and contain only lowercase " +
		"hexadecimal characters"
	errParenthesis ruleError = "Unmatched parenthesis in selector definition"
	errQuotes      ruleError = "A selector cannot contain quotes: use ? in a pattern instead of a quote"
)

// FileError has all errors of an aclfile in one line: Redis's reply to ACL LOAD, without its code.
type FileError struct {
	text  string
	cause error // if the file could not be read
}

func (e *FileError) Error() string { return e.text }

func (e *FileError) Unwrap() error { return e.cause }

const maxFileErrors = 16 // reported of one file

func newFileError(problems []string) *FileError {
	var b strings.Builder
	for _, problem := range problems[:min(len(problems), maxFileErrors)] {
		b.WriteString(problem + ". ")
	}
	if more := len(problems) - maxFileErrors; more > 0 {
		b.WriteString("And " + strconv.Itoa(more) + " more errors. ")
	}
	b.WriteString("WARNING: ACL errors detected, no change to the previously active ACL rules was performed")
	return &FileError{text: b.String()}
}

// maxPrintedBytes bounds the words of a file in its errors: a wrong name may be that of another file.
const maxPrintedBytes = 32

// printable shortens a text and escapes its control bytes.
func printable(s string) string {
	var b strings.Builder
	for _, c := range []byte(s[:min(len(s), maxPrintedBytes)]) {
		if c < ' ' || c == 0x7f {
			b.WriteString(`\x` + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]))
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
