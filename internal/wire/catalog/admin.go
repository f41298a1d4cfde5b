package catalog

func adminRows() []*Command {
	admin := []string{"admin", "dangerous"}
	return []*Command{
		container("acl", "6.0.0", "Access List Control commands", aclRows()),
		container("config", "2.0.0", "configuration commands", configRows()),
		{
			Name: "debug", Arity: -2, Flags: byAdmin, Categories: admin,
			Since: "1.0.0", Complexity: "Depends on subcommand", Summary: "Helps to test client libraries: SLEEP and PROTOCOL",
			Args: []Arg{text("subcommand"), optional(multiple(text("arg")))},
			Differs: "Only SLEEP, PROTOCOL and HELP. SLEEP delays only its own client, requires a number and is not allowed in a transaction. " +
				"Disabled unless --enable-debug-command allows it.",
		},
		{
			Name: "shutdown", Arity: -1, Flags: byAdmin | FlagNoMulti, Categories: admin,
			Since: "1.0.0", Summary: "Shuts the server down gracefully",
			Args: []Arg{
				optional(oneOf("save-selector", token("NOSAVE"), token("SAVE"))),
				optional(token("NOW")), optional(token("FORCE")), optional(token("ABORT")),
			},
			Differs: "With --data-dir nothing is lost, even with NOSAVE. SAVE first writes a snapshot; if that fails, and " +
				"without --data-dir, it is an error and the server continues, unless FORCE is given. ABORT is always an error.",
		},
	}
}

func configRows() []*Command {
	return []*Command{
		{
			Name: "get", Arity: -3, Flags: byAdmin,
			Cost: Cost{Call: 200_000}, Since: "2.0.0", Complexity: "O(N) in the number of settings",
			Summary: "Returns the settings whose names match a pattern",
			Args:    []Arg{multiple(text("parameter"))},
		},
		{Name: "resetstat", Arity: 2, Flags: byAdmin,
			Since: "2.0.0", Summary: "Resets INFO's counts of commands and errors"},
		{Name: "rewrite", Arity: 2, Flags: byAdmin,
			Since: "2.8.0", Summary: "Accepted without effect: the server never writes its config file",
			Differs: "Always OK, as Redis Sentinel sends it. What has to last, such as the role, is kept in the data directory."},
		{
			Name: "set", Arity: -4, Flags: byAdmin | FlagNotWithKeys,
			Since: "2.0.0", Complexity: "O(N) in the number of settings",
			Summary: "Changes settings while the server runs: all of them or none",
			Args:    []Arg{multiple(block("data", text("parameter"), text("value")))},
			Differs: "Settings that require a restart are immutable. The maxmemory-policy is volatile-ttl or noeviction, and maxmemory at least 48mb.",
		},
	}
}

func aclRows() []*Command {
	user := []Arg{text("username")}
	return []*Command{
		{
			Name: "cat", Arity: -2, Flags: asIs,
			Since: "6.0.0", Summary: "Lists the categories, or the commands in one",
			Args: []Arg{optional(text("category"))},
			Differs: "@refill is not in Redis: the commands that empty limiters. Of these, users need CL.RESET for " +
				"a negative quantity of CL.THROTTLE and commands like it, and to move, replace or remove a limiter's key.",
		},
		{
			Name: "dryrun", Arity: -4, MaxArgs: 3 + maxListed, Flags: byAdmin,
			Since: "7.0.0", Summary: "Tells whether a user may execute a command",
			Differs: "A call of at most 10,000 arguments.",
			Args: append(user, text("command"),
				optional(multiple(text("arg")))),
		},
		{Name: "genpass", Arity: -2, Flags: asIs,
			Since: "6.0.0", Summary: "Returns a random password",
			Args: []Arg{optional(integer("bits"))}},
		{Name: "getuser", Arity: 3, Flags: byAdmin,
			Since: "6.0.0", Complexity: "O(N) in the number of the user's rules", Summary: "Returns a user's rules", Args: user},
		{Name: "list", Arity: 2, Flags: byAdmin,
			Cost:  Cost{Call: 200_000},
			Since: "6.0.0", Complexity: "O(N) in the number of users", Summary: "Lists the users with their rules"},
		{
			Name: "load", Arity: 2, Flags: byAdmin | FlagNotWithKeys, Long: true,
			Since: "6.0.0", Complexity: "O(N) in the number of users", Summary: "Reloads --aclfile: all of it or nothing",
			Differs: "The error texts are different. A file that would open access by an omission is refused: one that lacks " +
				"the user default, or any users, where there were some, and one that has lost its final newline.",
		},
		{
			Name: "log", Arity: -2, Flags: byAdmin,
			Cost:  Cost{Call: 200_000},
			Since: "6.0.0", Complexity: "O(N) in the number of entries", Summary: "Returns or clears the recently denied commands and logins",
			Args: []Arg{optional(oneOf("operation", integer("count"), token("RESET")))},
		},
		{Name: "users", Arity: 2, Flags: byAdmin,
			Cost:  Cost{Call: 100_000},
			Since: "6.0.0", Complexity: "O(N) in the number of users", Summary: "Lists the users' names"},
		{Name: "whoami", Arity: 2, Flags: asIs,
			Since: "6.0.0", Summary: "Returns the connection's user"},
	}
}

func durabilityRows() []*Command {
	const (
		byOperator = FlagAdmin | FlagNoScript
		noDataDir  = "Refused without --data-dir."
	)
	return []*Command{
		{Name: "bgrewriteaof", Arity: 1, Flags: byOperator | FlagNotWithKeys,
			Since: "1.0.0", Summary: "Writes a snapshot in the background, which replaces the logs",
			Differs: "The same as BGSAVE. " + noDataDir},
		{
			Name: "bgsave", Arity: -1, Flags: byOperator | FlagNotWithKeys,
			Since: "1.0.0", Summary: "Writes a snapshot in the background",
			Args:    []Arg{optional(token("SCHEDULE"))},
			Differs: "While a snapshot is being written, SCHEDULE writes another one after it. " + noDataDir,
		},
		{
			Name: "save", Arity: 1, Flags: byOperator | FlagNoMulti,
			Since: "1.0.0", Complexity: "O(N) in the number of keys",
			Summary: "Writes a snapshot, and replies when it is on the disk",
			Differs: "Other clients do not wait. The error says why it failed. " + noDataDir,
		},
		{
			Name: "waitaof", Arity: 4, Flags: FlagNoScript, Categories: []string{"connection"},
			Group: "generic", Since: "7.2.0",
			Summary: "Replies when all earlier changes are on the disk: 1 or 0, and 0 replicas",
			Args: []Arg{
				integer("numlocal"), integer("numreplicas"), integer("timeout"),
			},
			Differs: "It is about the changes of all clients, does not wait for replicas, and is not allowed in scripts. With numlocal 0, and in a " +
				"transaction, it replies at once, and 1 only with --fsync-interval=0.",
		},
	}
}

func operatorRows() []*Command {
	return []*Command{
		{
			Name: "cl.top", Arity: -1, Flags: FlagReadonly | FlagModule | FlagNoScript | FlagWhole,
			Categories: []string{"keyspace", "dangerous"},
			Cost:       Cost{Call: 500_000},
			Group:      "module", Since: "0.2.0", Complexity: "O(N log N) in the 1024 keys that are counted",
			Summary: "Returns the most requested or most limited keys: for each its name, its recent calls per second, " +
				"its share of all calls from 0 to 1, the error of the calls per second, and its database; " +
				"WITHNAMES returns a map for each",
			Args: []Arg{
				optional(oneOf("ranking", token("REQUESTED"), token("LIMITED"))), optional(option("COUNT", integer("count"))),
				optional(token("WITHNAMES")),
			},
			Differs: "Not in Redis. Calls are sampled under load, counts have a half-life of a minute, long names are cut, and " +
				"only keys whose rate is at least four times its error are returned: none if all are requested alike. ASKED and " +
				"DENIED are accepted, too. WITHNAMES, since 0.3.0: the names are key, key_is_cut, database, share, " +
				"calls_per_second, calls_per_second_error, recent_calls_per_second and recent_calls_per_second_error; the last " +
				"two are of the last ten seconds, or null. In RESP2 a map is an array of names and values in turn.",
		},
		container("latency", "2.8.13", "latency diagnostics commands", latencyRows()),
		{Name: "monitor", Arity: 1, Flags: byAdmin,
			Since: "1.0.0", Summary: "Streams all commands as they are executed, until RESET or QUIT",
			Differs: "A client that falls too far behind is disconnected. Very long calls, scripts and transactions are cut."},
		container("slowlog", "2.2.12", "slow log commands", slowlogRows()),
	}
}

func latencyRows() []*Command {
	return []*Command{
		{
			Name: "histogram", Arity: -2, Flags: byAdmin, Cost: Cost{Call: 100_000},
			Since: "7.0.0", Complexity: "O(N) in the number of commands", Summary: "Returns the distribution of the durations of commands",
			Args:    []Arg{optional(multiple(text("command")))},
			Differs: "The buckets end at powers of two. The duration of a batch of CL.THROTTLE, or of a command like it, is divided among its calls.",
		},
		{Name: "history", Arity: 3, Flags: byAdmin,
			Since: "2.8.13", Summary: "Returns the samples of an event", Args: []Arg{text("event")},
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
		{Name: "len", Arity: 2, Flags: flags,
			Since: "2.2.12", Summary: "Counts the entries"},
		{Name: "reset", Arity: 2, Flags: flags,
			Since: "2.2.12", Complexity: "O(N) in the number of entries", Summary: "Clears the entries"},
	}
}
