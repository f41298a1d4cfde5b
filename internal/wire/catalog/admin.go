package catalog

func adminRows() []*Command {
	admin := []string{"admin", "dangerous"}
	replica := []Arg{text("host"), integer("port")}
	return []*Command{
		{Name: "acl", Arity: -2, Subs: aclRows(),
			Since: "6.0.0", Summary: "A container for Access List Control commands"},
		{Name: "config", Arity: -2, Subs: configRows(),
			Since: "2.0.0", Summary: "A container for configuration commands"},
		{
			Name: "debug", Arity: -2, Flags: byAdmin, Categories: admin,
			Since: "1.0.0", Complexity: "Depends on subcommand", Summary: "Helps to test client libraries: SLEEP and PROTOCOL",
			Args: []Arg{text("subcommand"), optional(multiple(text("arg")))},
			Differs: "Only SLEEP, PROTOCOL and HELP. SLEEP delays only its own client, requires a number and is not allowed in a transaction. " +
				"Disabled unless --enable-debug-command allows it.",
		},
		{
			Name: "replicaof", Arity: 3, Flags: FlagAdmin | FlagNoScript | FlagStale, Categories: admin, Args: replica,
			Since: "5.0.0", Summary: "Accepts NO ONE: there is no replication",
			Differs: "Anything but NO ONE is an error.",
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
		{
			Name: "slaveof", Arity: 3, Flags: FlagAdmin | FlagNoScript | FlagStale, Categories: admin, Args: replica,
			Since: "1.0.0", Summary: "An alias of REPLICAOF",
			Differs: "As REPLICAOF.",
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
		helpRow(),
		{Name: "resetstat", Arity: 2, Flags: byAdmin,
			Since: "2.0.0", Summary: "Resets INFO's counts of commands and errors"},
		{Name: "rewrite", Arity: 2, Flags: byAdmin,
			Since: "2.8.0", Summary: "Refused: the server never writes its config file",
			Differs: "Always an error."},
		{
			Name: "set", Arity: -4, Flags: byAdmin | FlagNotWithKeys,
			Since: "2.0.0", Complexity: "O(N) in the number of settings",
			Summary: "Changes settings while the server runs: all of them or none",
			Args: []Arg{{Name: "data", Type: "block", Multiple: true, Args: []Arg{
				text("parameter"), text("value"),
			}}},
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
			Differs: "@refill is not in Redis: the commands that empty funnels, or read and write their states as values. " +
				"Of these, users need DEL for a negative quantity of CL.THROTTLE and commands like it.",
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
		helpRow(),
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
