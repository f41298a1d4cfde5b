package reply

import (
	"strconv"

	"cellserver/internal/catalog"
	"cellserver/internal/resp"
)

// Errors of transactions, scripts and stores:
const (
	ErrNestedMulti Error = "ERR MULTI calls can not be nested"
	ErrExecFailed  Error = "EXECABORT Transaction discarded because of previous errors."
	ErrACLChanged  Error = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: " // which follows
	ErrNotSelected      Error = "ERR this command was not executed, because the SELECT in front of it was not"
	ErrNotInScript      Error = "ERR This Redis command is not allowed from script"
	ErrWholeInScript    Error = "ERR a command about all keys is not allowed from a script, which has only the keys that it declared"
	ErrReadOnlyScript   Error = "ERR Write commands are not allowed from read-only scripts."
	ErrMonitorHasNoKeys Error = "ERR Replica can't interact with the keyspace" // what Redis says to a client in MONITOR
	ErrMonitorInMulti   Error = "ERR MONITOR isn't allowed for DENY BLOCKING client"
	ErrUnknownInScript  Error = "ERR Unknown Redis command called from script"
	ErrArityInScript    Error = "ERR Wrong number of args calling Redis command from script"
	ErrScriptsTooLong   Error = "ERR the scripts of the transaction have taken longer than --lua-time-limit together; this one was not executed"
	ErrCancelled        Error = "ERR the client closed its side of the connection before this command was done; it was cancelled"

	ErrNoTransactions Error = "ERR the store of this server has no transactions; send the commands one by one"
	ErrNoWatch        Error = "ERR the store of this server cannot watch keys"
	ErrNoWalk         Error = "ERR the store of this server has no commands about all keys"
)

// Undeclared refuses a key that a script did not declare.
func Undeclared(key []byte) error {
	return Error("ERR script used the key '" + resp.Printable(key) + "', which is not among the keys that it was given; pass it in KEYS")
}

// NotWithKeys refuses a transaction that would do, while it holds keys, what others should not wait for.
func NotWithKeys(c *catalog.Command) error {
	return Error("ERR '" + c.FullName() + "' can not be executed in a transaction together with commands on keys; send it on its own")
}

// StoreFailed is an error of the store, in one line.
func StoreFailed(err error) error {
	const maxReasonBytes = 256
	return Error("ERR the store failed: " + resp.PrintableN([]byte(err.Error()), maxReasonBytes))
}

// TooLongReplies refuses the rest of a transaction.
func TooLongReplies(maxBytes int) error {
	return Error("ERR the replies of the transaction are longer than " + strconv.Itoa(maxBytes) +
		" bytes, the limit of --max-output-bytes; this command was not executed")
}

// TooManyNewKeys refuses a call that would make a key.
func TooManyNewKeys(perSec int) error {
	return Error("ERR more than " + strconv.Itoa(perSec) +
		" new keys per second from this address, the limit of --max-new-keys-per-second; existing keys still answer")
}
