package command

import (
	"errors"
	"strconv"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/resp"
)

// replyError is an error's whole text on the wire, with its code in front.
type replyError string

func (e replyError) Error() string { return string(e) }

const (
	errSyntax     replyError = "ERR syntax error"
	errNotInteger replyError = "ERR value is not an integer or out of range"
	errInt32      replyError = "ERR value is out of range, value must between -2147483648 and 2147483647"
	errDBRange    replyError = "ERR DB index is out of range"
	errNoAuth     replyError = "NOAUTH Authentication required."
	errWrongPass  replyError = "WRONGPASS invalid username-password pair or user is disabled."
	errNoPassword replyError = "ERR AUTH <password> called without any password configured for the default user. " +
		"Are you sure your configuration is correct?"
	errHelloNoAuth replyError = "NOAUTH HELLO must be called with the client already authenticated, otherwise the " +
		"HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP " +
		"protocol version at the same time"
	errNoScript    replyError = "NOSCRIPT No matching script. Please use EVAL."
	errNestedMulti replyError = "ERR MULTI calls can not be nested"
	errNotInMulti  replyError = "ERR Command not allowed inside a transaction"
	errExecFailed  replyError = "EXECABORT Transaction discarded because of previous errors."
	errACLChanged  replyError = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: " // which follows
	errNotInScript      replyError = "ERR This Redis command is not allowed from script"
	errWholeInScript    replyError = "ERR a command about all keys is not allowed from a script, which has only the keys that it declared"
	errReadOnlyScript   replyError = "ERR Write commands are not allowed from read-only scripts."
	errMonitorHasNoKeys replyError = "ERR Replica can't interact with the keyspace" // what Redis says to a MONITOR
	errUnknownInScript  replyError = "ERR Unknown Redis command called from script"
	errScriptsTooLong   replyError = "ERR the scripts of the transaction have taken longer than --lua-time-limit together; this one was not executed"
	errArityInScript    replyError = "ERR Wrong number of args calling Redis command from script"

	errProtoVersion    replyError = "NOPROTO unsupported protocol version"
	errProtoNotInteger replyError = "ERR Protocol version is not an integer or out of range"
)

// Redis repeats this much of an unknown command, and of its arguments together.
const maxUnknownBytes = 128

func errUnknownCommand(args [][]byte) error {
	var b strings.Builder
	b.WriteString("ERR unknown command '" + resp.PrintableN(args[0], maxUnknownBytes) + "', with args beginning with: ")
	for left, i := maxUnknownBytes, 1; i < len(args) && left > 0; i++ {
		text := resp.PrintableN(args[i], left)
		b.WriteString("'" + text + "' ")
		left -= len(text) + len("'' ")
	}
	return replyError(b.String())
}

func errUnknownSubcommand(r *row, name []byte) error {
	return replyError("ERR unknown subcommand '" + resp.PrintableN(name, maxUnknownBytes) + "'. Try " +
		strings.ToUpper(r.name) + " HELP.")
}

func errArity(r *row) error {
	return replyError("ERR wrong number of arguments for '" + r.fullName() + "' command")
}

func errExecAborted(cause error) error {
	reason := strings.TrimPrefix(replyText(cause), "ERR ")
	return replyError("EXECABORT Transaction discarded because of: " + reason)
}

func errUndeclared(key []byte) error {
	return replyError("ERR script used the key '" + resp.Printable(key) + "', which is not among the keys that it was given; pass it in KEYS")
}

func errKeyTooLong(maxBytes int) error {
	return replyError("ERR key is longer than " + strconv.Itoa(maxBytes) + " bytes, the limit of --max-key-bytes")
}

// cellError is an error of CL.THROTTLE in redis-cell's words.
type cellError struct{ reason string }

func (e *cellError) Error() string { return "Cell error: Store error: " + e.reason }

// replyText is the one place where an error becomes the text of a reply.
func replyText(err error) string {
	var protocol *resp.ProtocolError
	var argument *funnel.ArgumentError
	switch {
	case errors.As(err, &protocol):
		return "ERR " + err.Error()
	case errors.As(err, &argument), errors.Is(err, funnel.ErrZeroRate), errors.Is(err, funnel.ErrTooSlow):
		return (&cellError{err.Error()}).Error()
	default:
		return err.Error()
	}
}
