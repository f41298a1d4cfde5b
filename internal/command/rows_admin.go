package command

// adminRows are what operators use.
func adminRows() []*row {
	admin := []string{"admin", "dangerous"}
	replica := []arg{{name: "host", kind: "string"}, {name: "port", kind: "integer"}}
	return []*row{
		{
			name: "acl", arity: -2, subs: aclRows(),
			group: "server", since: "6.0.0", complexity: "Depends on subcommand",
			summary: "A container for Access List Control commands",
		},
		{
			name: "config", arity: -2, subs: configRows(),
			group: "server", since: "2.0.0", complexity: "Depends on subcommand",
			summary: "A container for configuration commands",
		},
		{
			name: "debug", arity: -2, flags: byAdmin, categories: admin, run: debugCommand,
			group: "server", since: "1.0.0", complexity: "Depends on subcommand",
			summary: "Is for those who test clients: SLEEP and PROTOCOL",
			args:    []arg{{name: "subcommand", kind: "string"}, {name: "arg", kind: "string", optional: true, multiple: true}},
			differs: "SLEEP, which holds up its own client only, wants a number and is not in a transaction, PROTOCOL and HELP only; off unless " +
				"--enable-debug-command allows it.",
		},
		{
			name: "replicaof", arity: 3, flags: flagAdmin | flagNoScript | flagStale, categories: admin, run: replicaOf, args: replica,
			group: "server", since: "5.0.0", complexity: "O(1)", summary: "Replies OK to NO ONE",
			differs: "Anything but NO ONE is refused: there is no replication.",
		},
		{
			name: "shutdown", arity: -1, flags: byAdmin | flagNoMulti, categories: admin, run: shutdown,
			group: "server", since: "1.0.0", complexity: "O(1)", summary: "Ends the server in good order",
			args: []arg{
				{name: "save-selector", kind: "oneof", optional: true, args: []arg{
					{name: "nosave", kind: "pure-token", token: "NOSAVE"}, {name: "save", kind: "pure-token", token: "SAVE"},
				}},
				{name: "now", kind: "pure-token", token: "NOW", optional: true},
				{name: "force", kind: "pure-token", token: "FORCE", optional: true},
				{name: "abort", kind: "pure-token", token: "ABORT", optional: true},
			},
			differs: "There is nothing to save.",
		},
		{
			name: "slaveof", arity: 3, flags: flagAdmin | flagNoScript | flagStale, categories: admin, run: replicaOf, args: replica,
			group: "server", since: "1.0.0", complexity: "O(1)", summary: "Is REPLICAOF",
			differs: "As REPLICAOF.",
		},
	}
}

func configRows() []*row {
	return []*row{
		{
			name: "get", arity: -3, flags: byAdmin, run: configGet,
			since: "2.0.0", complexity: "O(N) in the number of settings",
			summary: "Returns the settings whose names match a pattern",
			args:    []arg{{name: "parameter", kind: "string", multiple: true}},
		},
		helpRow(),
		{
			name: "resetstat", arity: 2, flags: byAdmin, run: configResetStat,
			since: "2.0.0", complexity: "O(1)", summary: "Begins INFO's counts of commands and errors anew",
		},
		{
			name: "rewrite", arity: 2, flags: byAdmin, run: configRewrite,
			since: "2.8.0", complexity: "O(1)", summary: "Replies that there is no file",
			differs: "Refused: there is no configuration file.",
		},
		{
			name: "set", arity: -4, flags: byAdmin, run: configSet,
			since: "2.0.0", complexity: "O(N) in the number of settings",
			summary: "Changes settings while the server runs, all or none",
			args: []arg{{name: "data", kind: "block", multiple: true, args: []arg{
				{name: "parameter", kind: "string"}, {name: "value", kind: "string"},
			}}},
			differs: "Of what can change while the server runs; the rest is immutable.",
		},
	}
}

func aclRows() []*row {
	user := []arg{{name: "username", kind: "string"}}
	return []*row{
		{
			name: "cat", arity: -2, flags: asIs, run: aclCat,
			since: "6.0.0", complexity: "O(1)", summary: "Lists the categories, or the commands of one",
			args: []arg{{name: "category", kind: "string", optional: true}},
		},
		{
			name: "dryrun", arity: -4, flags: byAdmin, run: aclDryRun,
			since: "7.0.0", complexity: "O(1)", summary: "Tells whether a user may execute a command",
			args: append(user, arg{name: "command", kind: "string"}, arg{name: "arg", kind: "string", optional: true, multiple: true}),
		},
		{
			name: "genpass", arity: -2, flags: asIs, run: aclGenPass,
			since: "6.0.0", complexity: "O(1)", summary: "Returns a random password",
			args: []arg{{name: "bits", kind: "integer", optional: true}},
		},
		{
			name: "getuser", arity: 3, flags: byAdmin, run: aclGetUser,
			since: "6.0.0", complexity: "O(N) in the number of the user's rules", summary: "Returns a user's rules", args: user,
		},
		helpRow(),
		{
			name: "list", arity: 2, flags: byAdmin, run: aclList,
			since: "6.0.0", complexity: "O(N) in the number of users", summary: "Lists the users with their rules",
		},
		{
			name: "load", arity: 2, flags: byAdmin, run: aclLoad,
			since: "6.0.0", complexity: "O(N) in the number of users", summary: "Reads --aclfile again, all of it or nothing",
			differs: "Its errors are in other words.",
		},
		{
			name: "log", arity: -2, flags: byAdmin, run: aclLog,
			since: "6.0.0", complexity: "O(N) in the number of entries", summary: "Returns, or forgets, what was denied of late",
			args: []arg{{name: "operation", kind: "oneof", optional: true, args: []arg{
				{name: "count", kind: "integer"}, {name: "reset", kind: "pure-token", token: "RESET"},
			}}},
		},
		{
			name: "users", arity: 2, flags: byAdmin, run: aclUsers,
			since: "6.0.0", complexity: "O(N) in the number of users", summary: "Lists the users' names",
		},
		{
			name: "whoami", arity: 2, flags: asIs, run: aclWhoAmI,
			since: "6.0.0", complexity: "O(1)", summary: "Returns the connection's user",
		},
	}
}

// refusedRows are commands of Redis that clients know and that are not here, with the reason.
func refusedRows() []*row {
	const (
		noPubSub      = "cellserver has no publish and subscribe; use Redis for that"
		noCluster     = "This instance has cluster support disabled"
		noPersistence = "cellserver keeps its state in memory only; there is nothing to save"
		noReplication = "cellserver has no replication"
		noSwap        = "SWAPDB is not supported: a key's database is a part of its place in the store; use FLUSHDB"
	)
	var all []*row
	refuse := func(reason string, arity int, names ...string) {
		for _, name := range names {
			all = append(all, &row{name: name, arity: arity, refusal: reason})
		}
	}
	refuse(noPubSub, -2, "subscribe", "psubscribe", "ssubscribe", "pubsub")
	refuse(noPubSub, -1, "unsubscribe", "punsubscribe", "sunsubscribe")
	refuse(noPubSub, 3, "publish", "spublish")
	refuse(noCluster, -2, "cluster")
	refuse(noCluster, 1, "readonly", "readwrite", "asking")
	refuse(noPersistence, 1, "save", "bgrewriteaof")
	refuse(noPersistence, -1, "bgsave")
	refuse(noReplication, 1, "sync")
	refuse(noReplication, -3, "psync")
	refuse(noReplication, -1, "replconf", "failover")
	refuse(noSwap, 3, "swapdb")
	return all
}
