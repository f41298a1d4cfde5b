package command

// watchingRows are what shows operators the server at work.
func watchingRows() []*row {
	return []*row{
		{
			name: "cl.top", arity: -1, flags: flagReadonly | flagModule | flagNoScript | flagWhole,
			categories: []string{"keyspace", "dangerous"}, run: topCommand,
			group: "module", since: "0.2.0", complexity: "O(N log N) in the 1024 keys that are counted",
			summary: "Returns the keys that are asked or denied most: of each its name, calls per second of late, " +
				"share of all calls from 0 to 1, error of the calls per second, and database",
			args: []arg{
				{name: "kind", kind: "oneof", optional: true, args: []arg{
					{name: "asked", kind: "pure-token", token: "ASKED"}, {name: "denied", kind: "pure-token", token: "DENIED"},
				}},
				{name: "count", kind: "integer", token: "COUNT", optional: true},
			},
			differs: "Not in Redis. Of many calls a random part is counted; counts halve in a minute; long names are cut.",
		},
		{
			name: "latency", arity: -2, subs: latencyRows(),
			group: "server", since: "2.8.13", complexity: "Depends on subcommand",
			summary: "A container for latency diagnostics commands",
		},
		{
			name: "monitor", arity: 1, flags: byAdmin, run: monitorCommand,
			group: "server", since: "1.0.0", complexity: "O(1)",
			summary: "Shows all commands as they are executed, until RESET or QUIT",
			differs: "A client that reads too slowly for what it sees is disconnected; very long calls, scripts and transactions are cut.",
		},
		{
			name: "slowlog", arity: -2, subs: slowlogRows(),
			group: "server", since: "2.2.12", complexity: "Depends on subcommand",
			summary: "A container for slow log commands",
		},
	}
}

func latencyRows() []*row {
	event := []arg{{name: "event", kind: "string"}}
	return []*row{
		{
			name: "doctor", arity: 2, flags: byAdmin, run: latencyDoctor,
			since: "2.8.13", complexity: "O(1)", summary: "Tells in words what was slow, and what to do",
			differs: "In words of its own.",
		},
		{
			name: "graph", arity: 3, flags: byAdmin, run: latencyGraph,
			since: "2.8.13", complexity: "O(1)", summary: "Draws the samples of an event", args: event,
		},
		helpRow(),
		{
			name: "histogram", arity: -2, flags: byAdmin, run: latencyHistogram,
			since: "7.0.0", complexity: "O(N) in the number of commands", summary: "Counts the calls of commands by their time",
			args:    []arg{{name: "command", kind: "string", optional: true, multiple: true}},
			differs: "The buckets end at powers of two; of a batch of CL.THROTTLE each call took its part.",
		},
		{
			name: "history", arity: 3, flags: byAdmin, run: latencyHistory,
			since: "2.8.13", complexity: "O(1)", summary: "Returns the samples of an event", args: event,
			differs: "The events are command, fast-command and sweep.",
		},
		{
			name: "latest", arity: 2, flags: byAdmin, run: latencyLatest,
			since: "2.8.13", complexity: "O(1)", summary: "Returns the last sample of each event, and the worst",
		},
		{
			name: "reset", arity: -2, flags: byAdmin, run: latencyReset,
			since: "2.8.13", complexity: "O(1)", summary: "Forgets the samples of events, by default of all",
			args: []arg{{name: "event", kind: "string", optional: true, multiple: true}},
		},
	}
}

func slowlogRows() []*row {
	const flags = flagAdmin | flagLoading | flagStale
	return []*row{
		{
			name: "get", arity: -2, flags: flags, run: slowlogGet,
			since: "2.2.12", complexity: "O(N) in the number of entries", summary: "Returns the latest entries: by default 10, all with -1",
			args:    []arg{{name: "count", kind: "integer", optional: true}},
			differs: "A slow batch of CL.THROTTLE is one entry, with its first key and its size; EXEC is one, too; 16,384 are kept at most.",
		},
		helpRow(),
		{
			name: "len", arity: 2, flags: flags, run: slowlogLen,
			since: "2.2.12", complexity: "O(1)", summary: "Counts the entries",
		},
		{
			name: "reset", arity: 2, flags: flags, run: slowlogReset,
			since: "2.2.12", complexity: "O(N) in the number of entries", summary: "Forgets the entries",
		},
	}
}
