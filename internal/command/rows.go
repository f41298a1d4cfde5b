package command

// The rows of the table, by group. Arity, categories and key positions are Redis 7's, and of the flags those that
// mean something here.

func rows() []*row {
	var all []*row
	for _, group := range [][]*row{cellRows(), connectionRows(), genericRows(), serverRows()} {
		all = append(all, group...)
	}
	return all
}

func cellRows() []*row {
	return []*row{{
		name: "cl.throttle", arity: -1, flags: flagWrite | flagFast | flagModule, batches: true, run: throttle,
		keys:  keySpec{1, 1, 1, []string{"RW", "access", "update"}},
		group: "module", since: "0.1.0", complexity: "O(1)",
		summary: "Asks a key's funnel for units: replies limited (0 or 1), limit, remaining, " +
			"seconds until a retry, seconds until it is empty",
		args: []arg{
			{name: "key", kind: "key"},
			{name: "max_burst", kind: "integer"},
			{name: "count_per_period", kind: "integer"},
			{name: "period", kind: "integer"},
			{name: "quantity", kind: "integer", optional: true},
		},
	}}
}

func connectionRows() []*row {
	const anyTime = flagLoading | flagStale | flagFast
	connection := []string{"connection"}
	return []*row{
		{
			name: "auth", arity: -2, flags: anyTime | flagNoAuth, categories: connection, run: auth,
			group: "connection", since: "1.0.0", complexity: "O(1)",
			summary: "Authenticates the connection",
			args:    []arg{{name: "username", kind: "string", optional: true}, {name: "password", kind: "string"}},
		},
		{
			name: "client", arity: -2, categories: connection, subs: clientRows(),
			group: "connection", since: "2.4.0", complexity: "Depends on subcommand",
			summary: "A container for client connection commands",
		},
		{
			name: "echo", arity: 2, flags: anyTime, categories: connection, run: echo,
			group: "connection", since: "1.0.0", complexity: "O(1)",
			summary: "Replies with its argument",
			args:    []arg{{name: "message", kind: "string"}},
		},
		{
			name: "hello", arity: -1, flags: anyTime | flagNoAuth, categories: connection, run: hello,
			group: "connection", since: "6.0.0", complexity: "O(1)",
			summary: "Chooses the protocol version, and may authenticate and name the connection",
			args: []arg{{name: "arguments", kind: "block", optional: true, args: []arg{
				{name: "protover", kind: "integer"},
				{name: "username_password", kind: "block", token: "AUTH", optional: true, args: []arg{
					{name: "username", kind: "string"}, {name: "password", kind: "string"},
				}},
				{name: "clientname", kind: "string", token: "SETNAME", optional: true},
			}}},
		},
		{
			name: "ping", arity: -1, flags: flagFast, categories: connection, run: ping,
			group: "connection", since: "1.0.0", complexity: "O(1)",
			summary: "Replies PONG, or its argument",
			args:    []arg{{name: "message", kind: "string", optional: true}},
		},
		{
			name: "quit", arity: -1, flags: anyTime | flagNoAuth, categories: connection, run: quit,
			group: "connection", since: "1.0.0", complexity: "O(1)",
			summary: "Closes the connection",
		},
		{
			name: "reset", arity: 1, flags: anyTime | flagNoAuth, categories: connection, run: reset,
			group: "connection", since: "6.2.0", complexity: "O(1)",
			summary: "Makes the connection as if it were new",
		},
		{
			name: "select", arity: 2, flags: anyTime, categories: connection, run: selectDB,
			group: "connection", since: "1.0.0", complexity: "O(1)",
			summary: "Chooses the database of the connection",
			args:    []arg{{name: "index", kind: "integer"}},
		},
	}
}

func clientRows() []*row {
	const flags = flagLoading | flagStale
	connection := []string{"connection"}
	return []*row{
		helpRow(),
		{
			name: "getname", arity: 2, flags: flags, categories: connection, run: clientGetName,
			since: "2.6.9", complexity: "O(1)", summary: "Returns the connection's name",
		},
		{
			name: "id", arity: 2, flags: flags, categories: connection, run: clientID,
			since: "5.0.0", complexity: "O(1)", summary: "Returns the connection's number",
		},
		{
			name: "info", arity: 2, flags: flags, categories: connection, long: true, run: clientInfo,
			since: "6.2.0", complexity: "O(1)", summary: "Returns what is known of the connection",
		},
		{
			name: "setinfo", arity: 4, flags: flags, categories: connection, run: clientSetInfo,
			since: "7.2.0", complexity: "O(1)", summary: "Tells the client library's name or version",
			args: []arg{{name: "attr", kind: "oneof", args: []arg{
				{name: "libname", kind: "string", token: "LIB-NAME"},
				{name: "libver", kind: "string", token: "LIB-VER"},
			}}},
		},
		{
			name: "setname", arity: 3, flags: flags, categories: connection, run: clientSetName,
			since: "2.6.9", complexity: "O(1)", summary: "Names the connection",
			args: []arg{{name: "connection-name", kind: "string"}},
		},
	}
}

func genericRows() []*row {
	keyspace := []string{"keyspace"}
	keys := []arg{{name: "key", kind: "key", multiple: true}}
	key := []arg{{name: "key", kind: "key"}}
	return []*row{
		{
			name: "del", arity: -2, flags: flagWrite, categories: keyspace, long: true, run: del,
			keys:  keySpec{1, -1, 1, []string{"RM", "delete"}},
			group: "generic", since: "1.0.0", complexity: "O(N) in the number of keys",
			summary: "Deletes keys, all at once", args: keys,
		},
		{
			name: "exists", arity: -2, flags: flagReadonly | flagFast, categories: keyspace, long: true, run: exists,
			keys:  keySpec{1, -1, 1, []string{"RO"}},
			group: "generic", since: "1.0.0", complexity: "O(N) in the number of keys",
			summary: "Counts which of the keys exist", args: keys,
		},
		{
			name: "pttl", arity: 2, flags: flagReadonly | flagFast, categories: keyspace, run: pttl,
			keys:  keySpec{1, 1, 1, []string{"RO", "access"}},
			group: "generic", since: "2.6.0", complexity: "O(1)",
			summary: "Returns in how many milliseconds a key's funnel is empty", args: key,
		},
		{
			name: "ttl", arity: 2, flags: flagReadonly | flagFast, categories: keyspace, run: ttl,
			keys:  keySpec{1, 1, 1, []string{"RO", "access"}},
			group: "generic", since: "1.0.0", complexity: "O(1)",
			summary: "Returns in how many seconds a key's funnel is empty", args: key,
		},
		{
			name: "unlink", arity: -2, flags: flagWrite | flagFast, categories: keyspace, long: true, run: del,
			keys:  keySpec{1, -1, 1, []string{"RM", "delete"}},
			group: "generic", since: "4.0.0", complexity: "O(N) in the number of keys",
			summary: "Deletes keys, all at once", args: keys,
		},
	}
}

func serverRows() []*row {
	flushArgs := []arg{{name: "flush-type", kind: "oneof", optional: true, args: []arg{
		{name: "async", kind: "pure-token", token: "ASYNC"}, {name: "sync", kind: "pure-token", token: "SYNC"},
	}}}
	flushCategories := []string{"keyspace", "dangerous"}
	return []*row{
		{
			name: "command", arity: -1, flags: flagLoading | flagStale, categories: []string{"connection"},
			long: true, run: commandAll, subs: commandRows(),
			group: "server", since: "2.8.13", complexity: "O(N) in the number of commands",
			summary: "Describes all commands",
		},
		{
			name: "config", arity: -2, subs: configRows(),
			group: "server", since: "2.0.0", complexity: "Depends on subcommand",
			summary: "A container for configuration commands",
		},
		{
			name: "dbsize", arity: 1, flags: flagReadonly | flagFast, categories: []string{"keyspace"}, run: dbSize,
			group: "server", since: "1.0.0", complexity: "O(N) in the number of entries",
			summary: "Counts the live keys of the database",
		},
		{
			name: "flushall", arity: -1, flags: flagWrite, categories: flushCategories, long: true, run: flushAll,
			group: "server", since: "1.0.0", complexity: "O(1)",
			summary: "Removes all keys of all databases", args: flushArgs,
		},
		{
			name: "flushdb", arity: -1, flags: flagWrite, categories: flushCategories, run: flushDB,
			group: "server", since: "1.0.0", complexity: "O(N) in the number of entries",
			summary: "Removes all keys of the database", args: flushArgs,
		},
		{
			name: "info", arity: -1, flags: flagLoading | flagStale, categories: []string{"dangerous"}, run: info,
			group: "server", since: "1.0.0", complexity: "O(N) in the number of entries",
			summary: "Returns the server's state and counters",
			args:    []arg{{name: "section", kind: "string", optional: true, multiple: true}},
		},
		{
			name: "module", arity: -2, subs: moduleRows(),
			group: "server", since: "4.0.0", complexity: "Depends on subcommand",
			summary: "A container for module commands",
		},
		{
			name: "time", arity: 1, flags: flagLoading | flagStale | flagFast, run: timeCommand,
			group: "server", since: "2.6.0", complexity: "O(1)",
			summary: "Returns the Unix time in seconds, and the microseconds of the second",
		},
	}
}

func commandRows() []*row {
	const flags = flagLoading | flagStale
	connection := []string{"connection"}
	names := []arg{{name: "command-name", kind: "string", optional: true, multiple: true}}
	return []*row{
		{
			name: "count", arity: 2, flags: flags, categories: connection, run: commandCount,
			since: "2.8.13", complexity: "O(1)", summary: "Counts the commands",
		},
		{
			name: "docs", arity: -2, flags: flags, categories: connection, run: commandDocs,
			since: "7.0.0", complexity: "O(N) in the number of commands",
			summary: "Documents commands, by default all", args: names,
		},
		helpRow(),
		{
			name: "info", arity: -2, flags: flags, categories: connection, run: commandInfo,
			since: "2.8.13", complexity: "O(N) in the number of commands",
			summary: "Describes commands, by default all", args: names,
		},
		{
			name: "list", arity: -2, flags: flags, categories: connection, run: commandList,
			since: "7.0.0", complexity: "O(N) in the number of commands",
			summary: "Lists the names of commands, by default all",
			args: []arg{{name: "filterby", kind: "oneof", token: "FILTERBY", optional: true, args: []arg{
				{name: "module-name", kind: "string", token: "MODULE"},
				{name: "category", kind: "string", token: "ACLCAT"},
				{name: "pattern", kind: "pattern", token: "PATTERN"},
			}}},
		},
	}
}

func configRows() []*row {
	return []*row{
		{
			name: "get", arity: -3, flags: flagAdmin | flagLoading | flagStale, run: configGet,
			since: "2.0.0", complexity: "O(N) in the number of settings",
			summary: "Returns the settings whose names match a pattern",
			args:    []arg{{name: "parameter", kind: "string", multiple: true}},
		},
		helpRow(),
	}
}

func moduleRows() []*row {
	return []*row{
		helpRow(),
		{
			name: "list", arity: 2, flags: flagAdmin, run: moduleList,
			since: "4.0.0", complexity: "O(N) in the number of modules",
			summary: "Lists the modules whose commands are here",
		},
	}
}
