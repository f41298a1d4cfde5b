package catalog

func operatorRows() []*Command {
	return []*Command{
		{
			Name: "cl.top", Arity: -1, Flags: FlagReadonly | FlagModule | FlagNoScript | FlagWhole,
			Categories: []string{"keyspace", "dangerous"},
			Cost:       Cost{Call: 500_000},
			Group:      "module", Since: "0.2.0", Complexity: "O(N log N) in the 1024 keys that are counted",
			Summary: "Returns the most requested or most limited keys: for each its name, its recent calls per second, " +
				"its share of all calls from 0 to 1, the error of the calls per second, and its database",
			Args: []Arg{
				optional(oneOf("ranking", token("REQUESTED"), token("LIMITED"))), optional(option("COUNT", integer("count"))),
			},
			Differs: "Not in Redis. Calls are sampled under load, counts have a half-life of a minute, long names are cut, and " +
				"only keys whose rate is at least four times its error are returned: none if all are requested alike. ASKED and " +
				"DENIED are accepted, too.",
		},
		{Name: "latency", Arity: -2, Subs: latencyRows(),
			Since: "2.8.13", Summary: "A container for latency diagnostics commands"},
		{Name: "monitor", Arity: 1, Flags: byAdmin,
			Since: "1.0.0", Summary: "Streams all commands as they are executed, until RESET or QUIT",
			Differs: "A client that falls too far behind is disconnected. Very long calls, scripts and transactions are cut."},
		{Name: "slowlog", Arity: -2, Subs: slowlogRows(),
			Since: "2.2.12", Summary: "A container for slow log commands"},
	}
}

func latencyRows() []*Command {
	event := []Arg{text("event")}
	return []*Command{
		{Name: "doctor", Arity: 2, Flags: byAdmin,
			Since: "2.8.13", Summary: "Reports what was slow, with advice",
			Differs: "The texts are different."},
		{Name: "graph", Arity: 3, Flags: byAdmin,
			Since: "2.8.13", Summary: "Draws a graph of the samples of an event", Args: event},
		helpRow(),
		{
			Name: "histogram", Arity: -2, Flags: byAdmin, Cost: Cost{Call: 100_000},
			Since: "7.0.0", Complexity: "O(N) in the number of commands", Summary: "Returns the distribution of the durations of commands",
			Args:    []Arg{optional(multiple(text("command")))},
			Differs: "The buckets end at powers of two. The duration of a batch of CL.THROTTLE, or of a command like it, is divided among its calls.",
		},
		{Name: "history", Arity: 3, Flags: byAdmin,
			Since: "2.8.13", Summary: "Returns the samples of an event", Args: event,
			Differs: "The events are command, fast-command and sweep."},
		{Name: "latest", Arity: 2, Flags: byAdmin,
			Since: "2.8.13", Summary: "Returns the latest and the worst sample of each event"},
		{Name: "reset", Arity: -2, Flags: byAdmin,
			Since: "2.8.13", Summary: "Clears the samples of events, by default of all",
			Args: []Arg{optional(multiple(text("event")))}},
	}
}

func slowlogRows() []*Command {
	const flags = FlagAdmin | FlagLoading | FlagStale
	return []*Command{
		{
			Name: "get", Arity: -2, Flags: flags, Cost: Cost{Call: 200_000},
			Since: "2.2.12", Complexity: "O(N) in the number of entries", Summary: "Returns the latest entries: by default 10, all with -1",
			Args: []Arg{optional(integer("count"))},
			Differs: "A slow batch of CL.THROTTLE, or of a command like it, is one entry, with its first key and its size; so " +
				"is a slow EXEC. At most 16,384 entries are kept.",
		},
		helpRow(),
		{Name: "len", Arity: 2, Flags: flags,
			Since: "2.2.12", Summary: "Counts the entries"},
		{Name: "reset", Arity: 2, Flags: flags,
			Since: "2.2.12", Complexity: "O(N) in the number of entries", Summary: "Clears the entries"},
	}
}
