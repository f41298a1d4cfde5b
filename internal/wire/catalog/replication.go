package catalog

func replicationRows() []*Command {
	admin := []string{"admin", "dangerous"}
	replica := []Arg{text("host"), integer("port")}
	return []*Command{
		container("cl.sync", "0.3.0", "the commands by which a replica follows its leader", syncRows()),
		{
			Name: "replconf", Arity: -1, MaxArgs: 1 + 2*8, Flags: byAdmin, Categories: admin,
			Since: "3.0.0", Summary: "An internal command by which a replica says where its clients are",
			Args:    []Arg{optional(multiple(Arg{Name: "data", Type: "block", Args: []Arg{text("option"), text("value")}}))},
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
			Args: []Arg{optional(Arg{Name: "place", Type: "block", Args: []Arg{text("history"), integer("offset"), integer("milliseconds")}})},
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
