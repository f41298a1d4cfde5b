// Package reply has the texts of errors, Redis's where it has the same, and turns any error into a reply. It
// is constant.
package reply

import (
	"errors"
	"strconv"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/value"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/store/gate"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

// Error is an error's text on the wire, with its code.
type Error string

func (e Error) Error() string { return string(e) }

// Errors of many commands:
const (
	ErrSyntax     Error = "ERR syntax error"
	ErrArity      Error = "ERR wrong number of arguments" // which Of completes
	ErrNotFloat   Error = "ERR value is not a valid float"
	ErrNotInteger Error = "ERR value is not an integer or out of range"
	ErrInt32      Error = "ERR value is out of range, value must between -2147483648 and 2147483647"
	ErrDBRange    Error = "ERR DB index is out of range"
	ErrNoAuth     Error = "NOAUTH Authentication required."
	ErrWrongPass  Error = "WRONGPASS invalid username-password pair or user is disabled."
	ErrNoScript   Error = "NOSCRIPT No matching script. Please use EVAL."
	ErrNotInMulti Error = "ERR Command not allowed inside a transaction"
)

// Errors about client-side caching:
const (
	ErrNoTracking Error = "ERR CLIENT TRACKING accepts OPTIN alone, as no invalidations are sent and a cache would serve old values; " + cacheOff
	ErrNotCached  Error = "ERR replies cannot be cached, as no invalidations are sent; " + cacheOff

	cacheOff = "turn client-side caching off in the client: leave out redis-py's cache_config, Jedis's CacheConfig, " +
		"node-redis's clientSideCache or go-redis's ClientSideCacheConfig, or set rueidis's DisableCache"
)

// maxNameBytes is Redis's limit for an unknown name, and for its arguments together, in an error.
const maxNameBytes = 128

// UnknownCommand refuses an unknown name, and says which command was meant, unless that is "".
func UnknownCommand(args [][]byte, meant string) error {
	var b strings.Builder
	b.WriteString("ERR unknown command '" + resp.PrintableN(args[0], maxNameBytes) + "', with args beginning with: ")
	for left, i := maxNameBytes, 1; i < len(args) && left > 0; i++ {
		text := resp.PrintableN(args[i], left)
		b.WriteString("'" + text + "' ")
		left -= len(text) + len("'' ")
	}
	if meant == "" {
		return Error(b.String())
	}
	text := b.String()
	if len(args) > 1 {
		text = strings.TrimSuffix(text, " ")
	}
	return Error(text + "; did you mean '" + meant + "'?")
}

func UnknownSubcommand(c *catalog.Command, name []byte) error {
	text := "ERR unknown subcommand '" + resp.PrintableN(name, maxNameBytes) + "'. Try " + strings.ToUpper(c.Name) + " HELP."
	if meant := c.MeantSub(name); meant != "" {
		text += " Did you mean '" + meant + "'?"
	}
	return Error(text)
}

// UnknownOrArity is Redis's reply to a subcommand with too many arguments.
func UnknownOrArity(args [][]byte) error {
	return Error("ERR unknown subcommand or wrong number of arguments for '" + resp.PrintableN(args[1], maxNameBytes) +
		"'. Try " + strings.ToUpper(glob.Fold(args[0])) + " HELP.")
}

// Arity refuses a wrong number of arguments. Redis's clients know the usage of its commands.
func Arity(c *catalog.Command) error {
	return Error("ERR wrong number of arguments for '" + c.FullName() + "' command" + usageOf(c))
}

func usageOf(c *catalog.Command) string {
	if !c.IsLimiters() {
		return ""
	}
	return "; usage: " + c.Usage()
}

// Of returns the error of a command with what only its row knows: the name and the usage.
func Of(c *catalog.Command, err error) error {
	switch known, _ := err.(Error); known { //nolint:errorlint // it is never wrapped
	case ErrArity:
		return Arity(c)
	case ErrSyntax, ErrNotInteger:
		return known + Error(usageOf(c))
	default:
		return err
	}
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

// Cell returns an error of CL.THROTTLE in redis-cell's words. Commands that redis-cell has not begin theirs
// as Redis does.
func Cell(reason string) error { return Error("Cell error: Store error: " + reason) }

// InCell returns an error of an argument in redis-cell's words, and nil for nil.
func InCell(err error) error {
	if err == nil {
		return nil
	}
	return Cell(strings.TrimPrefix(Text(err), "ERR "))
}

// Text turns an error into the text of a reply.
func Text(err error) string {
	var protocol *resp.ProtocolError
	var argument *funnel.ArgumentError
	switch {
	case errors.As(err, &protocol), errors.As(err, &argument), errors.Is(err, funnel.ErrZeroRate), errors.Is(err, funnel.ErrTooSlow):
		return "ERR " + err.Error()
	default:
		return err.Error()
	}
}

// Code returns the error's first word, which identifies it.
func (e Error) Code() string {
	code, _, _ := strings.Cut(string(e), " ")
	return code
}

// RefillDenied ends the error of a call that may change only keys that are not limiters'.
const RefillDenied = ": the key is a limiter's, and to move, replace or remove it needs the right to CL.RESET it (+@refill)"

// RefundDenied ends the error of a call that is denied only because it returns units.
func RefundDenied(c *catalog.Command) string {
	if c.GivesUnits {
		return ": to return units needs the right to CL.RESET the key"
	}
	return ": a negative quantity needs the right to CL.RESET the key"
}

// Errors of transactions, scripts and stores:
const (
	ErrNestedMulti Error = "ERR MULTI calls can not be nested"
	ErrExecFailed  Error = "EXECABORT Transaction discarded because of previous errors."
	ErrACLChanged  Error = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: " // a reason follows
	ErrNotSelected Error = "ERR this command was not executed, because the SELECT in front of it was not"
	ErrEndless     Error = "ERR the value would never expire, which --require-ttl refuses: SET it with EX, or send INCR and EXPIRE in one script or EXEC"
	ErrNotTAT      Error = "ERR the key is a funnel's, and its value its TAT, as redis-cell stores it: in decimal Unix nanoseconds, after now and at most " +
		"2^62 ns ahead of it; to make the key another value, DEL it first"
	ErrNotInScript    Error = "ERR This Redis command is not allowed from script"
	ErrWholeInScript  Error = "ERR a command about all keys is not allowed from a script, which has only the keys that it declared"
	ErrReadOnlyScript Error = "ERR Write commands are not allowed from read-only scripts."
	// Redis's words to a client in MONITOR, and to a subscriber
	ErrMonitorHasNoKeys Error = "ERR Replica can't interact with the keyspace"
	ErrMonitorInMulti   Error = "ERR MONITOR isn't allowed for DENY BLOCKING client"
	ErrSubscribeInMulti Error = "ERR SUBSCRIBE isn't allowed for a DENY BLOCKING client"
	ErrUnknownInScript  Error = "ERR Unknown Redis command called from script"
	ErrArityInScript    Error = "ERR Wrong number of args calling Redis command from script"
	ErrScriptsTooLong   Error = "ERR the scripts of the transaction have taken longer than --lua-time-limit together; this one was not executed"
	ErrEnded            Error = "ERR the command was ended before it was done: the server is shutting down, or its client has gone"
	ErrUnblocked        Error = "UNBLOCKED client unblocked via CLIENT UNBLOCK"
	ErrCancelled        Error = "ERR the client closed its side of the connection before this command was done; it was cancelled"

	ErrKeysChanged     Error = "ERR other clients have changed its keys in each of its attempts; nothing was executed: try again, with fewer commands at once"
	ErrScriptContended Error = "ERR other clients have changed the keys of the script in each of its attempts, " +
		"and a script that takes longer than 5 ms can not keep them out; nothing was written: try again, with fewer keys or a shorter script"

	// ErrLoading has Redis's words, apart from the name.
	ErrLoading Error = "LOADING cellserver is loading the dataset in memory"
	// ErrHeld refuses a change that cannot wait for a planned change of the leader.
	ErrHeld Error = "READONLY a planned change of the leader is under way; nothing was changed: try again"
	// ErrMisconf refuses a change that could not be persisted.
	ErrMisconf Error = "MISCONF the data directory cannot be written, and replies wait for it (--fsync-interval=0): nothing was changed. " +
		"Calls that change nothing answer. Check INFO persistence and the log; it is tried again all the time"
	// ErrUnconfirmed replaces the reply to a change that did not reach the disk in time.
	ErrUnconfirmed Error = "MISCONF the disk has not taken the change within --fsync-timeout: the call may have been charged, and a crash would forget it. " +
		"Check INFO persistence and the log before you repeat it"
	ErrWrongType Error = "WRONGTYPE Operation against a key holding the wrong kind of value"
	// ErrTooManyOpen refuses one more reservation or holder on a full key.
	ErrTooManyOpen Error = "ERR the key has 4096 open reservations or holders, which is the most; commit or release some, or spread them over several keys"
	// ErrTooLarge refuses to copy large states while others wait.
	ErrTooLarge Error = "ERR the keys of the call, script or transaction have more than 4 MiB of windows, reservations, holders and holds together, or it copies more than 8 MiB of them; use fewer of them at once"
	ErrOOM      Error = "OOM command not allowed when used memory > 'maxmemory'."

	// ErrContended reports conflicts on a remote store, whose keys cannot be held.
	ErrContended Error = "ERR conflicts with other clients lasted longer than --store-timeout; no key was changed: try again"
	// ErrOneCallScript refuses other scripts on a remote store.
	ErrOneCallScript Error = "ERR over a remote store (--store) a script is executed only if it is one call of CL.THROTTLE or of a command like it; " +
		"send its commands one by one, or between MULTI and EXEC"

	ErrNoTransactions Error = "ERR the store of this server has no transactions; send the commands one by one"
	ErrNoWatch        Error = "ERR the store of this server cannot watch keys"
	ErrNoWalk         Error = "ERR the store of this server has no commands about all keys"
)

// Undeclared refuses a key that a script did not declare.
func Undeclared(key []byte) error {
	return Error("ERR script used the key '" + resp.Printable(key) + "', which is not among the keys that it was given; pass it in KEYS")
}

// NotSubscribed refuses a command to a subscriber by RESP2.
func NotSubscribed(c *catalog.Command) error {
	return Error("ERR Can't execute '" + c.FullName() + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
}

// NotWithKeys refuses a transaction with a command that is too slow beside held keys.
func NotWithKeys(c *catalog.Command) error {
	return Error("ERR '" + c.FullName() + "' can not be executed in a transaction together with commands on keys; send it on its own")
}

// TooLongHeld refuses a transaction that would hold keys too long, in steps of a nanosecond, mostly for one
// command.
func TooLongHeld(c *catalog.Command, steps, most int) error {
	ms := func(steps int) string { return strconv.FormatFloat(float64(steps)/1e6, 'f', 1, 64) }
	return Error("ERR it could hold up all other clients for " + ms(steps) + " ms, and " + ms(most) + " are allowed; most of that is for '" +
		c.FullName() + "': send that command outside the transaction, or fewer commands at once")
}

// TooManyKeys refuses a script or transaction whose number of keys would hold up others.
func TooManyKeys(most int) error {
	return Error("ERR more than " + strconv.Itoa(most) + " different keys at once could hold up all other clients; use fewer in one script or transaction")
}

// WholeInExec refuses a command about all keys in a transaction on a remote store.
func WholeInExec(c *catalog.Command) error {
	return Error("ERR '" + c.FullName() + "' is about all keys, and can not be executed in a transaction over a remote store (--store); send it on its own")
}

// maxFailureBytes truncates a remote store's error.
const maxFailureBytes = 512

// StoreFailed returns the reply to a store's error, in one line; nil for nil.
func StoreFailed(err error) error {
	if err == nil { // first, as the variables below escape to the heap
		return nil
	}
	var failure store.Failure
	var known Error
	var refusal gate.Refusal
	switch {
	case errors.Is(err, store.ErrFull):
		return ErrOOM
	case errors.Is(err, limiter.ErrEndless):
		return ErrEndless
	case errors.Is(err, limiter.ErrNotTAT):
		return ErrNotTAT
	case errors.As(err, &refusal):
		return Error(refusal)
	case errors.Is(err, store.ErrFrozen):
		return ErrMisconf
	case errors.Is(err, limiter.ErrWrongType):
		return ErrWrongType
	case errors.Is(err, limiter.ErrTooManyOpen):
		return ErrTooManyOpen
	case errors.As(err, &failure): // clients know its code
		return Error(resp.PrintableN([]byte(failure.Line), maxFailureBytes))
	case errors.Is(err, store.ErrTooLarge):
		return ErrTooLarge
	case errors.As(err, &known):
		return known
	}
	if of := ofValue(err); of != nil {
		return of
	}
	const maxReasonBytes = 256
	return Error("ERR the store failed: " + resp.PrintableN([]byte(err.Error()), maxReasonBytes))
}

// ofValue returns the reply to an error about a value, nil for others.
func ofValue(err error) error {
	switch {
	case errors.Is(err, value.ErrNotInteger):
		return ErrNotInteger
	case errors.Is(err, value.ErrOverflow):
		return Error("ERR increment or decrement would overflow")
	case errors.Is(err, value.ErrAppliedOverflow):
		return Error("ERR applied increment would overflow")
	case errors.Is(err, value.ErrInfinite):
		return Error("ERR value cannot be Infinity")
	case errors.Is(err, value.ErrAppliedInfinite):
		return Error("ERR applied increment would be Infinity")
	case errors.Is(err, limiter.ErrExpireTime):
		return InvalidExpireTime("increx")
	case errors.Is(err, value.ErrNotFloat):
		return ErrNotFloat
	case errors.Is(err, value.ErrNotFinite):
		return Error("ERR increment would produce NaN or Infinity")
	case errors.Is(err, limiter.ErrComparison):
		return Error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE")
	case errors.Is(err, limiter.ErrDigest):
		return Error("ERR must be exactly 16 hexadecimal characters")
	}
	return nil
}

// InvalidExpireTime refuses a time of a command.
func InvalidExpireTime(name string) error {
	return Error("ERR invalid expire time in '" + name + "' command")
}

// TooLongReplies refuses the rest of a transaction.
func TooLongReplies(maxBytes int) error {
	return Error("ERR the replies of the transaction are longer than " + strconv.Itoa(maxBytes) +
		" bytes, the limit of --max-output-bytes; this command was not executed")
}

// TooLongTransaction refuses a whole transaction.
func TooLongTransaction(maxBytes int) error {
	return Error("ERR the replies of the transaction are longer than " + strconv.Itoa(maxBytes) + " bytes, the limit of --max-output-bytes")
}

// TooManyNewKeys refuses a call that would create a key.
func TooManyNewKeys(perSec int) error {
	return Error("ERR more than " + strconv.Itoa(perSec) + tooManyNewKeys)
}

const tooManyNewKeys = " new keys per second from this address, the limit of --max-new-keys-per-second; existing keys still answer"

// IsTooManyNewKeys reports whether the error is that of TooManyNewKeys, which is temporary.
func (e Error) IsTooManyNewKeys() bool { return strings.HasSuffix(string(e), tooManyNewKeys) }
