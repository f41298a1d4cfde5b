package catalog

// describeSteps bounds a description of all commands: 200 us were measured.
const describeSteps = 300_000

func serverRows() []*Command {
	admin := []string{"admin", "dangerous"}
	return []*Command{
		{Name: "time", Arity: 1, Flags: anyTime,
			Since: "2.6.0", Summary: "Returns the Unix time in seconds, and the microseconds of the second"},
		{Name: "role", Arity: 1, Flags: transacting, Categories: admin,
			Since: "2.8.12", Summary: "Returns the role in replication, and the replicas or the leader"},
		{Name: "lastsave", Arity: 1, Flags: anyTime, Categories: admin,
			Since:   "1.0.0",
			Summary: "Returns the Unix time of the last snapshot, or of the start if there has been none since"},
		{
			Name: "command", Arity: -1, Flags: FlagLoading | FlagStale, Categories: []string{"connection"},
			Long: true, Subs: group("server", "connection", commandRows()),
			Cost: Cost{Call: describeSteps}, Since: "2.8.13", Complexity: "O(N) in the number of commands",
			Summary: "Describes all commands",
		},
		{
			Name: "info", Arity: -1, Flags: FlagLoading | FlagStale | FlagWhole, Categories: []string{"dangerous"},
			Since: "1.0.0", Complexity: "O(N) in the number of entries",
			Summary: "Returns the state and the statistics of the server",
			Args:    []Arg{optional(multiple(text("section")))},
			Cost:    Cost{Call: 300_000, Slot: countSteps},
		},
		container("memory", "4.0.0", "memory diagnostics commands", memoryRows()),
		container("module", "4.0.0", "module commands", moduleRows()),
		{
			Name: "wait", Arity: 3, Flags: FlagNoScript, Categories: []string{"connection"},
			Group: "generic", Since: "3.0.0",
			Summary: "Waits until replicas have applied the changes before it, and returns their number",
			Differs: "A round of changes begins at once. With a timeout of 0 it waits without end, as in Redis. In a transaction, where it cannot wait, it returns 0.",
			Args:    []Arg{integer("numreplicas"), integer("timeout")},
		},
	}
}

func commandRows() []*Command {
	const flags = FlagLoading | FlagStale
	names := []Arg{optional(multiple(text("command-name")))}
	call := []Arg{text("command"), multiple(text("arg"))}
	return []*Command{
		{Name: "count", Arity: 2, Flags: flags,
			Since: "2.8.13", Summary: "Counts the commands"},
		{Name: "docs", Arity: -2, Flags: flags, Long: true,
			Cost: Cost{Call: describeSteps}, Since: "7.0.0", Complexity: "O(N) in the number of commands",
			Summary: "Documents commands, by default all", Args: names},
		{Name: "getkeys", Arity: -4, MaxArgs: 2 + maxListed, Flags: flags,
			Since: "2.8.13", Complexity: "O(N) in the number of arguments",
			Summary: "Returns the keys of a command", Args: call, Differs: "At most 10,000 arguments."},
		{Name: "getkeysandflags", Arity: -4, MaxArgs: 2 + maxListed, Flags: flags,
			Since: "7.0.0", Complexity: "O(N) in the number of arguments",
			Summary: "Returns the keys of a command and how it accesses them", Args: call, Differs: "At most 10,000 arguments."},
		helpRow(),
		{Name: "info", Arity: -2, Flags: flags, Long: true,
			Cost: Cost{Call: describeSteps}, Since: "2.8.13", Complexity: "O(N) in the number of commands",
			Summary: "Describes commands, by default all", Args: names},
		{
			Name: "list", Arity: -2, Flags: flags,
			Cost: Cost{Call: 50_000}, Since: "7.0.0", Complexity: "O(N) in the number of commands",
			Summary: "Lists the names of commands, by default all",
			Args: []Arg{optional(option("FILTERBY", oneOf("filterby", option("MODULE", text("module-name")),
				option("ACLCAT", text("category")), option("PATTERN", Arg{Name: "pattern", Type: "pattern"}))))},
		},
	}
}

func memoryRows() []*Command {
	return []*Command{
		{Name: "purge", Arity: 2, Flags: FlagNotWithKeys, Long: true,
			Since: "4.0.0", Complexity: "O(N) in the memory used", Summary: "Returns free memory to the operating system"},
		{
			Name: "usage", Arity: -3, Flags: FlagReadonly | FlagWhole, Keys: oneKey(2, "RO"),
			Since: "4.0.0", Summary: "Returns the bytes that a key takes: its share of the table",
			Args: keyAnd(optional(option("SAMPLES", integer("count")))),
		},
	}
}

func moduleRows() []*Command {
	return []*Command{
		{Name: "list", Arity: 2, Flags: FlagAdmin | FlagNoScript,
			Since: "4.0.0", Complexity: "O(N) in the number of modules",
			Summary: "Lists the modules whose commands are available"},
	}
}

func replicationRows() []*Command {
	admin := []string{"admin", "dangerous"}
	replica := []Arg{text("host"), integer("port")}
	return []*Command{
		container("cl.sync", "0.3.0", "the commands by which a replica follows its leader", syncRows()),
		{
			Name: "replconf", Arity: -1, MaxArgs: 1 + 2*8, Flags: byAdmin, Categories: admin,
			Since: "3.0.0", Summary: "An internal command by which a replica says where its clients are",
			Args:    []Arg{optional(multiple(block("data", text("option"), text("value"))))},
			Differs: "The options are listening-port, ip-address and capa.",
		},
		{
			Name: "replicaof", Arity: 3, Flags: FlagAdmin | FlagNoScript | FlagStale, Categories: admin, Args: replica,
			Since: "5.0.0", Summary: "Makes the server a replica of another one, or with NO ONE a leader",
			Differs: "With NO ONE, a replica whose leader answers has it hand over first, for at most a second or ten round trips: nothing " +
				"is lost, and if that fails, the replica goes on following. An error over a link of more than 1.5 s a round trip, and " +
				"with --store, except NO ONE.",
		},
		{
			Name: "slaveof", Arity: 3, Flags: FlagAdmin | FlagNoScript | FlagStale, Categories: admin, Args: replica,
			Since: "1.0.0", Summary: "An alias of REPLICAOF",
			Differs: "As REPLICAOF.",
		},
	}
}

func syncRows() []*Command {
	const flags = FlagAdmin | FlagNoScript | FlagNoMulti | FlagStale
	return []*Command{
		{
			Name: "handover", Arity: -2, MaxArgs: 5, Flags: flags,
			Since: "0.3.0", Summary: "Holds changes for the replica that sends it, which is to lead, and returns what it does not have",
			Args: []Arg{optional(block("place", text("history"), integer("offset"), integer("milliseconds")))},
		},
		{
			Name: "limits", Arity: 3, Flags: flags,
			Since: "0.4.0", Complexity: "O(N) in the number of named limits and plans",
			Summary: "Returns digests of the named limits and plans in force, or only that of all if the replica knows that",
			Args:    integers("digest"),
		},
		{
			Name: "next", Arity: 3, Flags: flags,
			Since: "0.3.0", Complexity: "O(N) in the number of changes",
			Summary: "Acknowledges changes and returns the next ones, or nothing after 100 ms: the leader's time and frames",
			Args:    integers("offset"),
		},
		{
			Name: "ping", Arity: 3, Flags: flags,
			Since: "0.4.0", Summary: "Measures the round trip of a replica, which says the last one",
			Args: integers("microseconds"),
		},
		{
			Name: "start", Arity: -5, MaxArgs: 6, Flags: flags,
			Since: "0.3.0", Summary: "Begins to follow: from a place in a history, or with all states",
			Args: []Arg{integer("format"), text("history"), integer("offset"), optional(token("TAKE"))},
		},
		{
			Name: "takeover", Arity: 3, Flags: flags,
			Since: "0.4.0", Summary: "Follows the replica that sends it after a handover and has everything, or returns what it does not have",
			Args: integers("offset"),
		},
	}
}
