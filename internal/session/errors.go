package session

import (
	"strconv"

	"cellserver/internal/catalog"
	"cellserver/internal/reply"
	"cellserver/internal/resp"
)

const (
	errNestedMulti reply.Error = "ERR MULTI calls can not be nested"
	errExecFailed  reply.Error = "EXECABORT Transaction discarded because of previous errors."
	errACLChanged  reply.Error = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: " // which follows
	errNotInScript      reply.Error = "ERR This Redis command is not allowed from script"
	errWholeInScript    reply.Error = "ERR a command about all keys is not allowed from a script, which has only the keys that it declared"
	errReadOnlyScript   reply.Error = "ERR Write commands are not allowed from read-only scripts."
	errMonitorHasNoKeys reply.Error = "ERR Replica can't interact with the keyspace" // what Redis says to a client in MONITOR
	errMonitorInMulti   reply.Error = "ERR MONITOR isn't allowed for DENY BLOCKING client"
	errUnknownInScript  reply.Error = "ERR Unknown Redis command called from script"
	errArityInScript    reply.Error = "ERR Wrong number of args calling Redis command from script"
	errScriptsTooLong   reply.Error = "ERR the scripts of the transaction have taken longer than --lua-time-limit together; this one was not executed"
	errCancelled        reply.Error = "ERR the client closed its side of the connection before this command was done; it was cancelled"

	errNoTransactions reply.Error = "ERR the store of this server has no transactions; send the commands one by one"
	errNoWatch        reply.Error = "ERR the store of this server cannot watch keys"
	errNoWalk         reply.Error = "ERR the store of this server has no commands about all keys"
)

func errUndeclared(key []byte) error {
	return reply.Error("ERR script used the key '" + resp.Printable(key) + "', which is not among the keys that it was given; pass it in KEYS")
}

// errNotWithKeys refuses a transaction that would do, while it holds keys, what others should not wait for.
func errNotWithKeys(c *catalog.Command) error {
	return reply.Error("ERR '" + c.FullName() + "' can not be executed in a transaction together with commands on keys; send it on its own")
}

// errStore is an error of the store, in one line.
func errStore(err error) error {
	const maxReasonBytes = 256
	return reply.Error("ERR the store failed: " + resp.PrintableN([]byte(err.Error()), maxReasonBytes))
}

func errTooLongReplies(maxBytes int) error {
	return reply.Error("ERR the replies of the transaction are longer than " + strconv.Itoa(maxBytes) +
		" bytes, the limit of --max-output-bytes; this command was not executed")
}
