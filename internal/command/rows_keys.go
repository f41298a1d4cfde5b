package command

func oneKey(at int, flags ...string) keySpec {
	return keySpec{first: at, last: at, step: 1, flags: flags}
}

func manyKeys(flags ...string) keySpec {
	return keySpec{first: 1, last: -1, step: 1, flags: flags}
}

// keyRow completes a row of the group generic that is about keys.
func keyRow(r row, keys keySpec) *row {
	r.keys = keys
	if r.group == "" {
		r.group = "generic"
	}
	if r.categories == nil {
		r.categories = []string{"keyspace"}
	}
	if r.complexity == "" {
		r.complexity = "O(1)"
	}
	if r.args == nil {
		r.args = []arg{{name: "key", kind: "key", multiple: keys.last < 0}}
	}
	return &r
}

func keyRows() []*row {
	const read = flagReadonly | flagFast
	const perKey = "O(N) in the number of keys"
	strings := []string{"string"}
	return []*row{
		keyRow(row{
			name: "del", arity: -2, flags: flagWrite, long: true, run: del,
			since: "1.0.0", complexity: perKey, summary: "Deletes keys, all at once",
		}, manyKeys("RM", "delete")),
		keyRow(row{
			name: "exists", arity: -2, flags: read, long: true, run: exists,
			since: "1.0.0", complexity: perKey, summary: "Counts which of the keys exist",
		}, manyKeys("RO")),
		keyRow(row{
			name: "get", arity: 2, flags: read, categories: strings, run: get, group: "string",
			since: "1.0.0", summary: "Returns when a key's funnel is empty, its TAT, in Unix nanoseconds",
			differs: "A key's value is its funnel's TAT in nanoseconds, as redis-cell stores it.",
		}, oneKey(1, "RO", "access")),
		keyRow(row{
			name: "strlen", arity: 2, flags: read, categories: strings, run: strLen, group: "string",
			since: "2.2.0", summary: "Returns the length of what GET returns",
		}, oneKey(1, "RO")),
		keyRow(row{
			name: "touch", arity: -2, flags: read, long: true, run: exists,
			since: "3.2.1", complexity: perKey, summary: "Counts which of the keys exist",
		}, manyKeys("RO")),
		keyRow(row{
			name: "type", arity: 2, flags: read, run: typeCommand,
			since: "1.0.0", summary: "Returns string, or none for a key that does not exist",
		}, oneKey(1, "RO")),
		keyRow(row{
			name: "unlink", arity: -2, flags: flagWrite | flagFast, long: true, run: del,
			since: "4.0.0", complexity: perKey, summary: "Deletes keys, all at once",
		}, manyKeys("RM", "delete")),
		{
			name: "object", arity: -2, subs: objectRows(),
			group: "generic", since: "2.2.3", complexity: "Depends on subcommand",
			summary: "A container for object introspection commands",
		},
	}
}

func objectRows() []*row {
	help := helpRow()
	help.categories = []string{"keyspace"}
	return []*row{
		keyRow(row{
			name: "encoding", arity: 3, flags: flagReadonly, run: objectEncoding,
			since: "2.2.3", summary: "Returns int, as for a TAT that Redis stores",
		}, oneKey(2, "RO")),
		help,
	}
}

func expiryRows() []*row {
	const read, write = flagReadonly | flagFast, flagWrite | flagFast
	const differs = "Deletes the key if the time is over; else replies 1 and changes nothing, for a funnel drains at its own rate."
	condition := func(name, token string) arg { return arg{name: name, kind: "pure-token", token: token} }
	args := func(time string) []arg {
		return []arg{{name: "key", kind: "key"}, {name: time, kind: "integer"}, {name: "condition", kind: "oneof", optional: true, args: []arg{
			condition("nx", "NX"), condition("xx", "XX"), condition("gt", "GT"), condition("lt", "LT"),
		}}}
	}
	readTime, update := oneKey(1, "RO", "access"), oneKey(1, "RW", "update")
	return []*row{
		keyRow(row{
			name: "expire", arity: -3, flags: write, run: expire, args: args("seconds"), differs: differs,
			since: "1.0.0", summary: "Deletes a key if the time is not positive",
		}, update),
		keyRow(row{
			name: "expireat", arity: -3, flags: write, run: expireAt, args: args("unix-time-seconds"), differs: differs,
			since: "1.2.0", summary: "Deletes a key if the time is over",
		}, update),
		keyRow(row{
			name: "expiretime", arity: 2, flags: read, run: expireTime,
			since: "7.0.0", summary: "Returns the Unix time in seconds at which a key's funnel is empty",
		}, readTime),
		keyRow(row{
			name: "persist", arity: 2, flags: write, run: persist, differs: "Replies 0: every key has its time.",
			since: "2.2.0", summary: "Replies 0: every key has its time",
		}, update),
		keyRow(row{
			name: "pexpire", arity: -3, flags: write, run: pexpire, args: args("milliseconds"), differs: differs,
			since: "2.6.0", summary: "Deletes a key if the time is not positive",
		}, update),
		keyRow(row{
			name: "pexpireat", arity: -3, flags: write, run: pexpireAt, args: args("unix-time-milliseconds"), differs: differs,
			since: "2.6.0", summary: "Deletes a key if the time is over",
		}, update),
		keyRow(row{
			name: "pexpiretime", arity: 2, flags: read, run: pexpireTime,
			since: "7.0.0", summary: "Returns the Unix time in milliseconds at which a key's funnel is empty",
		}, readTime),
		keyRow(row{
			name: "pttl", arity: 2, flags: read, run: pttl,
			since: "2.6.0", summary: "Returns in how many milliseconds a key's funnel is empty",
		}, readTime),
		keyRow(row{
			name: "ttl", arity: 2, flags: read, run: ttl,
			since: "1.0.0", summary: "Returns in how many seconds a key's funnel is empty",
		}, readTime),
	}
}

// keyspaceRows are about all keys.
func keyspaceRows() []*row {
	keyspace, dangerous := []string{"keyspace"}, []string{"keyspace", "dangerous"}
	const perEntry = "O(N) in the number of entries"
	return []*row{
		{
			name: "dbsize", arity: 1, flags: flagReadonly | flagFast | flagWhole, categories: keyspace, run: dbSize,
			group: "server", since: "1.0.0", complexity: perEntry,
			summary: "Counts the live keys of the database",
		},
		{
			name: "flushall", arity: -1, flags: flagWrite | flagWhole, categories: dangerous, long: true, run: flushAll,
			group: "server", since: "1.0.0", complexity: "O(1)",
			summary: "Removes all keys of all databases", args: flushArgs(),
		},
		{
			name: "flushdb", arity: -1, flags: flagWrite | flagWhole, categories: dangerous, run: flushDB,
			group: "server", since: "1.0.0", complexity: perEntry,
			summary: "Removes all keys of the database", args: flushArgs(),
		},
		{
			name: "keys", arity: 2, flags: flagReadonly | flagWhole, categories: dangerous, run: keysCommand,
			group: "generic", since: "1.0.0", complexity: perEntry,
			summary: "Returns the keys that match a pattern", args: []arg{{name: "pattern", kind: "pattern"}},
			differs: "Others are served meanwhile; a reply longer than --max-output-bytes is an error.",
		},
		{
			name: "scan", arity: -2, flags: flagReadonly | flagWhole, categories: keyspace, run: scan,
			group: "generic", since: "2.8.0", complexity: "O(1) for a call, " + perEntry + " for a walk",
			summary: "Returns some keys, and the cursor to go on with",
			args: []arg{
				{name: "cursor", kind: "integer"},
				{name: "pattern", kind: "pattern", token: "MATCH", optional: true},
				{name: "count", kind: "integer", token: "COUNT", optional: true},
				{name: "type", kind: "string", token: "TYPE", optional: true},
			},
			differs: "A key is returned once at most.",
		},
	}
}
