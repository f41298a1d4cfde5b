package command

// The rows of the table, by group. Arity, categories and key positions are Redis 7's, and of the flags those that
// mean something here.

func rows() []*row {
	var all []*row
	for _, group := range [][]*row{
		cellRows(), connectionRows(), transactionRows(), keyRows(), expiryRows(), keyspaceRows(), scriptingRows(),
		serverRows(), adminRows(), watchingRows(), refusedRows(),
	} {
		all = append(all, group...)
	}
	return all
}

// The flags that many have.
const (
	anyTime     = flagLoading | flagStale | flagFast
	asIs        = flagLoading | flagStale | flagNoScript // about the connection or the server, not for scripts
	byAdmin     = flagAdmin | asIs
	transacting = anyTime | flagNoScript
)

func cellRows() []*row {
	return []*row{{
		name: "cl.throttle", arity: -1, flags: flagWrite | flagFast | flagModule, batches: true, run: throttle,
		keys:  keySpec{first: 1, last: 1, step: 1, flags: []string{"RW", "access", "update"}},
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

func transactionRows() []*row {
	category := []string{"transaction"}
	return []*row{
		{
			name: "discard", arity: 1, flags: transacting | flagNotQueued, categories: category, run: discardCommand,
			group: "transactions", since: "2.0.0", complexity: "O(N) in the number of queued commands",
			summary: "Forgets the commands behind MULTI",
		},
		{
			name: "exec", arity: 1, flags: asIs | flagNotQueued, categories: category, long: true, run: exec,
			group: "transactions", since: "1.2.0", complexity: "Depends on the commands",
			summary: "Executes the commands behind MULTI as one step",
		},
		{
			name: "multi", arity: 1, flags: transacting | flagNotQueued, categories: category, run: multi,
			group: "transactions", since: "1.2.0", complexity: "O(1)",
			summary: "Begins a transaction",
			differs: "The commands of a transaction are bounded together by --max-command-bytes.",
		},
		{
			name: "unwatch", arity: 1, flags: transacting, categories: category, run: unwatchCommand,
			group: "transactions", since: "2.2.0", complexity: "O(1)",
			summary: "Forgets all watched keys",
		},
		{
			name: "watch", arity: -2, flags: transacting | flagNotQueued, categories: category, run: watch,
			keys:  keySpec{first: 1, last: -1, step: 1, flags: []string{"RO"}},
			group: "transactions", since: "2.2.0", complexity: "O(N) in the number of keys",
			summary: "Makes EXEC do nothing if one of the keys changes before",
			args:    []arg{{name: "key", kind: "key", multiple: true}},
			differs: "At most 10,000 keys of one client.",
		},
	}
}

func scriptingRows() []*row {
	category := []string{"scripting"}
	const flags = flagStale | flagNoScript | flagNoMandatoryKeys | flagMovableKeys | flagScript
	args := func(script string) []arg {
		return []arg{
			{name: script, kind: "string"}, {name: "numkeys", kind: "integer"},
			{name: "key", kind: "key", optional: true, multiple: true},
			{name: "arg", kind: "string", optional: true, multiple: true},
		}
	}
	const differs = "Only keys that are declared can be used, and no command about all keys; a script that takes more processor time " +
		"than --lua-time-limit is ended and leaves nothing."
	const complexity = "Depends on the script"
	write, read := []string{"RW", "access", "update"}, []string{"RO", "access"}
	return []*row{
		{
			name: "eval", arity: -3, flags: flags, categories: category, run: eval, keys: scriptKeys(write...),
			group: "scripting", since: "2.6.0", complexity: complexity, differs: differs,
			summary: "Executes a Lua script", args: args("script"),
		},
		{
			name: "evalsha", arity: -3, flags: flags, categories: category, run: evalSHA, keys: scriptKeys(write...),
			group: "scripting", since: "2.6.0", complexity: complexity, differs: differs,
			summary: "Executes a Lua script by its SHA1", args: args("sha1"),
		},
		{
			name: "eval_ro", arity: -3, flags: flags | flagReadonly, categories: category, run: evalRO, keys: scriptKeys(read...),
			group: "scripting", since: "7.0.0", complexity: complexity, differs: differs,
			summary: "Executes a Lua script that does not write", args: args("script"),
		},
		{
			name: "evalsha_ro", arity: -3, flags: flags | flagReadonly, categories: category, run: evalSHARO, keys: scriptKeys(read...),
			group: "scripting", since: "7.0.0", complexity: complexity, differs: differs,
			summary: "Executes a Lua script that does not write, by its SHA1", args: args("sha1"),
		},
		{
			name: "script", arity: -2, subs: scriptRows(),
			group: "scripting", since: "2.6.0", complexity: "Depends on subcommand",
			summary: "A container for Lua scripts management commands",
		},
	}
}

func scriptRows() []*row {
	category := []string{"scripting"}
	help := helpRow()
	help.categories = category
	return []*row{
		{
			name: "exists", arity: -3, flags: flagNoScript, categories: category, run: scriptExists,
			since: "2.6.0", complexity: "O(N) in the number of scripts", summary: "Tells which scripts are known",
			args: []arg{{name: "sha1", kind: "string", multiple: true}},
		},
		{
			name: "flush", arity: -2, flags: flagNoScript, categories: category, run: scriptFlush,
			since: "2.6.0", complexity: "O(N) in the number of scripts", summary: "Forgets all scripts",
			args: flushArgs(),
		},
		help,
		{
			name: "kill", arity: 2, flags: flagNoScript, categories: category, run: scriptKill,
			since: "2.6.0", complexity: "O(1)", summary: "Ends the scripts that run",
		},
		{
			name: "load", arity: 3, flags: flagNoScript | flagStale, categories: category, run: scriptLoad,
			since: "2.6.0", complexity: "O(N) in the length of the script", summary: "Keeps a script for EVALSHA",
			args: []arg{{name: "script", kind: "string"}},
		},
	}
}

func flushArgs() []arg {
	return []arg{{name: "flush-type", kind: "oneof", optional: true, args: []arg{
		{name: "async", kind: "pure-token", token: "ASYNC"}, {name: "sync", kind: "pure-token", token: "SYNC"},
	}}}
}
