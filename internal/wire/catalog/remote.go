package catalog

// Remote describes how a command differs over a store on other machines (--store).
type Remote struct {
	Name    string // the full name
	Refusal string // the reason why it is not available; "" if it is
	Differs string
}

// RemoteRows returns the commands that differ from those over the store in memory.
func RemoteRows() []Remote {
	const (
		ofLimits = "over a remote store (--store) named limits come from --limits-file only, so that all servers have the same: change it there and CL.LIMIT RELOAD"
		flushes  = "over a remote store (--store) nothing is flushed, for other data may be on its machines: DEL the keys, or flush it there"
	)
	return []Remote{
		{Name: "cl.bthrottle", Differs: "Its turn is fixed when it debits: a client that gives up returns its debit, but later " +
			"ones do not move up. The five integers are as of the debit. If the store fails when units are to be returned, " +
			"they drain instead."},
		{Name: "cl.limit|del", Refusal: ofLimits},
		{Name: "cl.limit|set", Refusal: ofLimits},
		{Name: "cl.mthrottle", Differs: "On a cluster all keys have to be in one slot: give them the same {tag}. If other clients change them in each attempt " +
			"until --store-timeout is over, it is an error and nothing has changed."},
		{Name: "dbsize", Differs: "Counts all keys of the machines' databases, also those that are not this server's."},
		{Name: "del", Differs: "Deletes only keys that cellserver or redis-cell made. It is one step for a thousand keys at most, on a cluster for those of a slot."},
		{Name: "eval", Differs: "Only a script that is one call of CL.THROTTLE or of a command like it, such as return redis.call('CL.THROTTLE', KEYS[1], ...), is executed."},
		{Name: "eval_ro", Differs: "Every script is an error, for those that are one call write."},
		{Name: "evalsha", Differs: "As EVAL."},
		{Name: "evalsha_ro", Differs: "As EVAL_RO."},
		{Name: "exec", Differs: "On a cluster all keys have to be in one slot, else it is an error that begins with CROSSSLOT, and nothing has changed. " +
			"Commands about all keys are refused in it. Its commands are executed on what the keys were, and all changes are made in one step if nobody has changed them " +
			"meanwhile; else it is executed again, until --store-timeout is over, and then it is an error and nothing has changed. While the store does not answer, --on-store-error decides on " +
			"a transaction that has only CL.THROTTLE and commands like it, on each for itself. Scripts as EVAL."},
		{Name: "flushall", Refusal: flushes},
		{Name: "flushdb", Refusal: flushes},
		{Name: "info", Differs: "Keyspace counts as DBSIZE does, and is empty while the store does not answer."},
		{Name: "keys", Differs: "Only with a store of one machine, as SCAN. It may return a key twice."},
		{Name: "memory|usage", Refusal: "over a remote store (--store) a key takes the memory of its machines: ask them"},
		{Name: "scan", Differs: "Only with a store of one machine; a cluster's error says so. It may return a key twice, or none with a cursor to continue with, as Redis's does."},
		{Name: "select", Differs: "There is database 0 only: the one that --store names."},
		{Name: "unlink", Differs: "As DEL."},
		{Name: "watch", Refusal: "over a remote store (--store) keys can not be watched: use MULTI and EXEC without WATCH, or CL.MTHROTTLE for several limits at once"},
	}
}

// OverRemote returns the catalog for a store on other machines.
func (t *Catalog) OverRemote() *Catalog {
	for _, r := range RemoteRows() {
		if r.Refusal != "" {
			t = t.Without(r.Refusal, r.Name)
		}
	}
	return t
}
