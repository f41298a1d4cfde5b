package command

func serverRows() []*row {
	admin := []string{"admin", "dangerous"}
	return []*row{
		{
			name: "time", arity: 1, flags: anyTime, run: timeCommand,
			group: "server", since: "2.6.0", complexity: "O(1)",
			summary: "Returns the Unix time in seconds, and the microseconds of the second",
		},
		{
			name: "role", arity: 1, flags: transacting, categories: admin, run: role,
			group: "server", since: "2.8.12", complexity: "O(1)",
			summary: "Returns that this is a master without replicas",
		},
		{
			name: "lastsave", arity: 1, flags: anyTime, categories: admin, run: lastSave,
			group: "server", since: "1.0.0", complexity: "O(1)",
			summary: "Returns when the server started", differs: "When the server started: nothing is saved.",
		},
		{
			name: "command", arity: -1, flags: flagLoading | flagStale, categories: []string{"connection"},
			long: true, run: commandAll, subs: commandRows(),
			group: "server", since: "2.8.13", complexity: "O(N) in the number of commands",
			summary: "Describes all commands",
		},
		{
			name: "info", arity: -1, flags: flagLoading | flagStale | flagWhole, categories: []string{"dangerous"}, run: info,
			group: "server", since: "1.0.0", complexity: "O(N) in the number of entries",
			summary: "Returns the server's state and counters",
			args:    []arg{{name: "section", kind: "string", optional: true, multiple: true}},
		},
		{
			name: "memory", arity: -2, subs: memoryRows(),
			group: "server", since: "4.0.0", complexity: "Depends on subcommand",
			summary: "A container for memory diagnostics commands",
		},
		{
			name: "module", arity: -2, subs: moduleRows(),
			group: "server", since: "4.0.0", complexity: "Depends on subcommand",
			summary: "A container for module commands",
		},
		{
			name: "wait", arity: 3, flags: flagNoScript, categories: []string{"connection"}, run: waitCommand,
			group: "generic", since: "3.0.0", complexity: "O(1)",
			summary: "Replies 0: there are no replicas",
			args:    []arg{{name: "numreplicas", kind: "integer"}, {name: "timeout", kind: "integer"}},
		},
	}
}

func commandRows() []*row {
	const flags = flagLoading | flagStale
	connection := []string{"connection"}
	names := []arg{{name: "command-name", kind: "string", optional: true, multiple: true}}
	call := []arg{{name: "command", kind: "string"}, {name: "arg", kind: "string", multiple: true}}
	help := helpRow()
	help.categories = connection
	return []*row{
		{
			name: "count", arity: 2, flags: flags, categories: connection, run: commandCount,
			since: "2.8.13", complexity: "O(1)", summary: "Counts the commands",
		},
		{
			name: "docs", arity: -2, flags: flags, categories: connection, long: true, run: commandDocs,
			since: "7.0.0", complexity: "O(N) in the number of commands",
			summary: "Documents commands, by default all", args: names,
		},
		{
			name: "getkeys", arity: -4, flags: flags, categories: connection, run: commandGetKeys,
			since: "2.8.13", complexity: "O(N) in the number of arguments",
			summary: "Returns the keys of a command", args: call,
		},
		{
			name: "getkeysandflags", arity: -4, flags: flags, categories: connection, run: commandGetKeysAndFlags,
			since: "7.0.0", complexity: "O(N) in the number of arguments",
			summary: "Returns the keys of a command, and what it does with them", args: call,
		},
		help,
		{
			name: "info", arity: -2, flags: flags, categories: connection, long: true, run: commandInfo,
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

func memoryRows() []*row {
	return []*row{
		helpRow(),
		{
			name: "purge", arity: 2, long: true, run: memoryPurge,
			since: "4.0.0", complexity: "O(N) in the memory used", summary: "Gives free memory back to the system",
		},
		keyRow(row{
			name: "usage", arity: -3, flags: flagReadonly | flagWhole, categories: []string{}, run: memoryUsage,
			since: "4.0.0", summary: "Returns how many bytes a key takes: its share of the table",
			args: []arg{
				{name: "key", kind: "key"}, {name: "count", kind: "integer", token: "SAMPLES", optional: true},
			},
		}, oneKey(2, "RO")),
	}
}

func moduleRows() []*row {
	return []*row{
		helpRow(),
		{
			name: "list", arity: 2, flags: flagAdmin | flagNoScript, run: moduleList,
			since: "4.0.0", complexity: "O(N) in the number of modules",
			summary: "Lists the modules whose commands are here",
		},
	}
}
