package catalog

// operatorRows are what shows operators the server at work.
func operatorRows() []*Command {
	return []*Command{
		{
			Name: "cl.top", Arity: -1, Flags: FlagReadonly | FlagModule | FlagNoScript | FlagWhole,
			Categories: []string{"keyspace", "dangerous"},
			Group:      "module", Since: "0.2.0", Complexity: "O(N log N) in the 1024 keys that are counted",
			Summary: "Returns the keys that are asked or denied most: of each its name, calls per second of late, " +
				"share of all calls from 0 to 1, error of the calls per second, and database",
			Args: []Arg{
				{Name: "kind", Kind: "oneof", Optional: true, Args: []Arg{
					{Name: "asked", Kind: "pure-token", Token: "ASKED"}, {Name: "denied", Kind: "pure-token", Token: "DENIED"},
				}},
				{Name: "count", Kind: "integer", Token: "COUNT", Optional: true},
			},
			Differs: "Not in Redis. Of many calls a random part is counted; counts halve in a minute; long names are cut.",
		},
		{
			Name: "latency", Arity: -2, Subs: latencyRows(),
			Group: "server", Since: "2.8.13", Complexity: "Depends on subcommand",
			Summary: "A container for latency diagnostics commands",
		},
		{
			Name: "monitor", Arity: 1, Flags: byAdmin,
			Group: "server", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Shows all commands as they are executed, until RESET or QUIT",
			Differs: "A client that reads too slowly for what it sees is disconnected; very long calls, scripts and transactions are cut.",
		},
		{
			Name: "slowlog", Arity: -2, Subs: slowlogRows(),
			Group: "server", Since: "2.2.12", Complexity: "Depends on subcommand",
			Summary: "A container for slow log commands",
		},
	}
}

func latencyRows() []*Command {
	event := []Arg{{Name: "event", Kind: "string"}}
	return []*Command{
		{
			Name: "doctor", Arity: 2, Flags: byAdmin,
			Since: "2.8.13", Complexity: "O(1)", Summary: "Tells in words what was slow, and what to do",
			Differs: "In words of its own.",
		},
		{
			Name: "graph", Arity: 3, Flags: byAdmin,
			Since: "2.8.13", Complexity: "O(1)", Summary: "Draws the samples of an event", Args: event,
		},
		helpRow(),
		{
			Name: "histogram", Arity: -2, Flags: byAdmin,
			Since: "7.0.0", Complexity: "O(N) in the number of commands", Summary: "Counts the calls of commands by their time",
			Args:    []Arg{{Name: "command", Kind: "string", Optional: true, Multiple: true}},
			Differs: "The buckets end at powers of two; of a batch of CL.THROTTLE each call took its part.",
		},
		{
			Name: "history", Arity: 3, Flags: byAdmin,
			Since: "2.8.13", Complexity: "O(1)", Summary: "Returns the samples of an event", Args: event,
			Differs: "The events are command, fast-command and sweep.",
		},
		{
			Name: "latest", Arity: 2, Flags: byAdmin,
			Since: "2.8.13", Complexity: "O(1)", Summary: "Returns the last sample of each event, and the worst",
		},
		{
			Name: "reset", Arity: -2, Flags: byAdmin,
			Since: "2.8.13", Complexity: "O(1)", Summary: "Forgets the samples of events, by default of all",
			Args: []Arg{{Name: "event", Kind: "string", Optional: true, Multiple: true}},
		},
	}
}

func slowlogRows() []*Command {
	const flags = FlagAdmin | FlagLoading | FlagStale
	return []*Command{
		{
			Name: "get", Arity: -2, Flags: flags,
			Since: "2.2.12", Complexity: "O(N) in the number of entries", Summary: "Returns the latest entries: by default 10, all with -1",
			Args:    []Arg{{Name: "count", Kind: "integer", Optional: true}},
			Differs: "A slow batch of CL.THROTTLE is one entry, with its first key and its size; EXEC is one, too; 16,384 are kept at most.",
		},
		helpRow(),
		{
			Name: "len", Arity: 2, Flags: flags,
			Since: "2.2.12", Complexity: "O(1)", Summary: "Counts the entries",
		},
		{
			Name: "reset", Arity: 2, Flags: flags,
			Since: "2.2.12", Complexity: "O(N) in the number of entries", Summary: "Forgets the entries",
		},
	}
}
