package catalog

// The commands by group. Arity, categories and key positions are Redis 7's, and of the flags those that mean something
// here.

// Rows returns the commands of this server, each in a new copy.
func Rows() []*Command {
	var all []*Command
	for _, group := range [][]*Command{
		funnelRows(), windowRows(), bucketRows(), resetRows(), connectionRows(), transactionRows(), keyRows(), stateRows(), expiryRows(), keyspaceRows(), scriptingRows(),
		serverRows(), durabilityRows(), adminRows(), operatorRows(), refusedRows(),
		reservingRows(), blockingRows(), namedRows(),
	} {
		all = append(all, group...)
	}
	return all
}

// The flags that many have.
const (
	anyTime     = FlagLoading | FlagStale | FlagFast
	asIs        = FlagLoading | FlagStale | FlagNoScript // about the connection or the server, not for scripts
	byAdmin     = FlagAdmin | asIs
	transacting = anyTime | FlagNoScript
)

// maxListed is how many things a call may list that are no keys.
const maxListed = 10_000

func helpRow() *Command {
	return &Command{
		Name: "help", Arity: 2, Flags: FlagLoading | FlagStale,
		Since: "5.0.0", Complexity: "O(1)", Summary: "Prints this help",
	}
}

func transactionRows() []*Command {
	category := []string{"transaction"}
	return []*Command{
		{
			Name: "discard", Arity: 1, Flags: transacting | FlagNotQueued, Categories: category,
			Group: "transactions", Since: "2.0.0", Complexity: "O(N) in the number of queued commands",
			Summary: "Discards the queued commands",
		},
		{
			Name: "exec", Arity: 1, Flags: asIs | FlagNotQueued, Categories: category, Long: true,
			Group: "transactions", Since: "1.2.0", Complexity: "Depends on the commands",
			Summary: "Executes the queued commands as one step",
			Differs: "ACL LOAD, BGREWRITEAOF, BGSAVE, CONFIG SET, MEMORY PURGE, SCRIPT FLUSH and SCRIPT LOAD are refused together with commands on keys, " +
				"which they would delay; then nothing is executed. So is a transaction that could hold up other clients for longer than 5 ms, by its " +
				"commands and by how much the server holds, such as KEYS in a server with more than about 60,000 keys, and DBSIZE with 300,000. With scripts, or with more than 1,000 " +
				"commands or keys, it is executed on a snapshot of at most 8,000 different keys, and again if other clients have changed them; if they " +
				"always do, it ends with an error and nothing is executed.",
		},
		{
			Name: "multi", Arity: 1, Flags: transacting | FlagNotQueued, Categories: category,
			Group: "transactions", Since: "1.2.0", Complexity: "O(1)",
			Summary: "Starts a transaction",
			Differs: "All commands of a transaction together are limited by --max-command-bytes.",
		},
		{
			Name: "unwatch", Arity: 1, Flags: transacting, Categories: category,
			Group: "transactions", Since: "2.2.0", Complexity: "O(1)",
			Summary: "Stops watching all keys",
		},
		{
			Name: "watch", Arity: -2, MaxArgs: 1 + MaxWatched, Flags: transacting | FlagNotQueued,
			Categories: category,
			Keys:       KeySpec{First: 1, Last: -1, Step: 1, Flags: []string{"RO"}},
			Group:      "transactions", Since: "2.2.0", Complexity: "O(N) in the number of keys",
			Summary: "Watches keys: EXEC does nothing if one of them has changed",
			Args:    []Arg{{Name: "key", Type: "key", Multiple: true}},
			Differs: "At most 10,000 keys per client.",
		},
	}
}

// MaxWatched is how many keys a client may watch.
const MaxWatched = 10_000

func scriptingRows() []*Command {
	category := []string{"scripting"}
	const flags = FlagStale | FlagNoScript | FlagNoMandatoryKeys | FlagMovableKeys | FlagScript
	args := func(script string) []Arg {
		return []Arg{
			{Name: script, Type: "string"}, {Name: "numkeys", Type: "integer"},
			{Name: "key", Type: "key", Optional: true, Multiple: true},
			{Name: "arg", Type: "string", Optional: true, Multiple: true},
		}
	}
	const differs = "Scripts can use only the keys that they declare, and no command about all keys. A script that takes more CPU time " +
		"than --lua-time-limit is stopped, and nothing that it wrote is kept. So is one that has spent this time in several attempts, because other " +
		"clients have changed its keys meanwhile. At most 8,000 different keys. In a transaction with commands about all keys, scripts have 5 ms."
	const complexity = "Depends on the script"
	write, read := []string{"RW", "access", "update"}, []string{"RO", "access"}
	return []*Command{
		{
			Name: "eval", Arity: -3, MaxArgs: anyNumber, Flags: flags, Categories: category,
			Keys:  KeySpec{Counted: 2, Flags: write},
			Group: "scripting", Since: "2.6.0", Complexity: complexity, Differs: differs,
			Summary: "Executes a Lua script", Args: args("script"),
		},
		{
			Name: "evalsha", Arity: -3, MaxArgs: anyNumber, Flags: flags, Categories: category,
			Keys:  KeySpec{Counted: 2, Flags: write},
			Group: "scripting", Since: "2.6.0", Complexity: complexity, Differs: differs,
			Summary: "Executes a Lua script by its SHA1", Args: args("sha1"),
		},
		{
			Name: "eval_ro", Arity: -3, MaxArgs: anyNumber, Flags: flags | FlagReadonly, Categories: category,
			Keys:  KeySpec{Counted: 2, Flags: read},
			Group: "scripting", Since: "7.0.0", Complexity: complexity, Differs: differs,
			Summary: "Executes a read-only Lua script", Args: args("script"),
		},
		{
			Name: "evalsha_ro", Arity: -3, MaxArgs: anyNumber, Flags: flags | FlagReadonly,
			Categories: category, Keys: KeySpec{Counted: 2, Flags: read},
			Group: "scripting", Since: "7.0.0", Complexity: complexity, Differs: differs,
			Summary: "Executes a read-only Lua script by its SHA1", Args: args("sha1"),
		},
		{
			Name: "script", Arity: -2, Subs: scriptRows(),
			Group: "scripting", Since: "2.6.0", Complexity: "Depends on subcommand",
			Summary: "A container for Lua scripts management commands",
		},
	}
}

func scriptRows() []*Command {
	category := []string{"scripting"}
	help := helpRow()
	help.Categories = category
	return []*Command{
		{
			Name: "exists", Arity: -3, MaxArgs: 2 + maxListed, Flags: FlagNoScript, Categories: category,
			Since: "2.6.0", Complexity: "O(N) in the number of scripts", Summary: "Returns which scripts are cached",
			Differs: "At most 10,000 scripts.",
			Args:    []Arg{{Name: "sha1", Type: "string", Multiple: true}},
		},
		{
			Name: "flush", Arity: -2, Flags: FlagNoScript | FlagNotWithKeys, Categories: category,
			Since: "2.6.0", Complexity: "O(N) in the number of scripts", Summary: "Removes all scripts from the cache",
			Args: flushArgs(),
		},
		help,
		{
			Name: "kill", Arity: 2, Flags: FlagNoScript, Categories: category,
			Since: "2.6.0", Complexity: "O(1)", Summary: "Stops the scripts that are running",
		},
		{
			Name: "load", Arity: 3, Flags: FlagNoScript | FlagStale | FlagNotWithKeys, Categories: category, Long: true,
			Since: "2.6.0", Complexity: "O(N) in the length of the script", Summary: "Caches a script for EVALSHA",
			Differs: "At most 10,000 scripts: the longest unused are forgotten.",
			Args:    []Arg{{Name: "script", Type: "string"}},
		},
	}
}

func flushArgs() []Arg {
	return []Arg{{Name: "flush-type", Type: "oneof", Optional: true, Args: []Arg{
		{Name: "async", Type: "pure-token", Token: "ASYNC"}, {Name: "sync", Type: "pure-token", Token: "SYNC"},
	}}}
}
