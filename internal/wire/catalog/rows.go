package catalog

import (
	"cmp"
	"slices"
	"strings"
)

// Arity, categories, key positions, and the flags that apply here are those of Redis 7.

// Rows returns the commands of this server, each in a new copy.
func Rows() []*Command {
	return slices.Concat(
		group("module", "", funnelRows(), windowRows(), reservingRows(), namedRows(), budgetRows(), envoyRows()),
		group("connection", "connection", connectionRows()),
		group("transactions", "transaction", transactionRows()),
		group("pubsub", "", pubSubRows()),
		group("generic", "keyspace", keyRows(), valueRows(), stateRows(), expiryRows(), keyspaceRows()),
		group("scripting", "scripting", scriptingRows()),
		group("server", "", serverRows(), replicationRows(), durabilityRows(), adminRows(), operatorRows()),
		refusedRows(),
	)
}

// group completes rows: the group, and what most of its rows have. Containers are in no category.
func group(name, category string, families ...[]*Command) []*Command {
	rows := slices.Concat(families...)
	for _, c := range rows {
		c.Group = cmp.Or(c.Group, name)
		complexity := "O(1)"
		if c.Subs != nil {
			complexity = "Depends on subcommand"
		} else if c.Categories == nil && category != "" {
			c.Categories = []string{category}
		}
		c.Complexity = cmp.Or(c.Complexity, complexity)
		if name == "module" {
			c.Since = cmp.Or(c.Since, "0.2.0")
		}
		if c.Args == nil && !c.Keys.None() {
			c.Args = []Arg{{Name: "key", Type: "key", Multiple: c.Keys.Last < 0}}
		}
		group(name, category, c.Subs)
	}
	return rows
}

// container returns the row of a command that has only subcommands, and among them HELP.
func container(name, since, of string, subs []*Command) *Command {
	if !slices.ContainsFunc(subs, func(c *Command) bool { return c.Name == "help" }) {
		subs = append(subs, helpRow())
	}
	return &Command{Name: name, Arity: -2, Subs: subs, Since: since, Summary: "A container for " + of}
}

// Arguments:

func token(name string) Arg { return Arg{Name: strings.ToLower(name), Type: "pure-token", Token: name} }

func text(name string) Arg { return Arg{Name: name, Type: "string"} }

func integer(name string) Arg { return Arg{Name: name, Type: "integer"} }

func integers(names ...string) (args []Arg) {
	for _, name := range names {
		args = append(args, integer(name))
	}
	return args
}

func optional(a Arg) Arg { a.Optional = true; return a }

func multiple(a Arg) Arg { a.Multiple = true; return a }

func oneOf(name string, choices ...Arg) Arg { return Arg{Name: name, Type: "oneof", Args: choices} }

func block(name string, args ...Arg) Arg { return Arg{Name: name, Type: "block", Args: args} }

// option puts the token in front of an argument by which a call gives it.
func option(token string, a Arg) Arg { a.Token = token; return a }

func keyAnd(more ...Arg) []Arg { return append([]Arg{{Name: "key", Type: "key"}}, more...) }

// Common combinations of flags:
const (
	anyTime     = FlagLoading | FlagStale | FlagFast
	asIs        = FlagLoading | FlagStale | FlagNoScript // on the connection or the server, not for scripts
	byAdmin     = FlagAdmin | asIs
	transacting = anyTime | FlagNoScript
)

const maxListed = 10_000 // most arguments in a list other than of keys

func helpRow() *Command {
	return &Command{
		Name: "help", Arity: 2, Flags: FlagLoading | FlagStale,
		Since: "5.0.0", Summary: "Prints this help",
	}
}

func transactionRows() []*Command {
	return []*Command{
		{Name: "discard", Arity: 1, Flags: transacting | FlagNotQueued,
			Since: "2.0.0", Complexity: "O(N) in the number of queued commands",
			Summary: "Discards the queued commands"},
		{
			Name: "exec", Arity: 1, Flags: asIs | FlagNotQueued, Long: true,
			Since: "1.2.0", Complexity: "Depends on the commands",
			Summary: "Executes the queued commands as one step",
			Differs: "ACL LOAD, BGREWRITEAOF, BGSAVE, CONFIG SET, MEMORY PURGE, SCRIPT FLUSH and SCRIPT LOAD are refused " +
				"together with commands on keys, which they would delay; then nothing is executed. So is a transaction whose " +
				"commands could delay other clients for more than 5 ms, such as KEYS with more than about 60,000 keys in the " +
				"server, and DBSIZE with 300,000. With scripts, or more than 1,000 commands or keys, it is executed on a " +
				"snapshot of at most 8,000 different keys, and again if other clients have changed them; if they always do, it " +
				"ends with an error and nothing is executed. A reply of more than 170 KiB is built on such a snapshot, too, and more " +
				"than 256 KiB of values are renamed on one; if the reply is longer than --max-output-bytes, nothing is executed.",
		},
		{Name: "multi", Arity: 1, Flags: transacting | FlagNotQueued,
			Since: "1.2.0", Summary: "Starts a transaction",
			Differs: "All commands of a transaction together are limited by --max-command-bytes."},
		{Name: "unwatch", Arity: 1, Flags: transacting,
			Since: "2.2.0", Summary: "Stops watching all keys"},
		{
			Name: "watch", Arity: -2, MaxArgs: 1 + MaxWatched, Flags: transacting | FlagNotQueued,
			Keys:  manyKeys("RO"),
			Since: "2.2.0", Complexity: "O(N) in the number of keys",
			Summary: "Watches keys: EXEC does nothing if one of them has changed",
			Differs: "At most 10,000 keys per client.",
		},
	}
}

// MaxWatched is the most keys that a client may watch.
const MaxWatched = 10_000

func scriptingRows() []*Command {
	const scripting = FlagStale | FlagNoScript | FlagNoMandatoryKeys | FlagMovableKeys | FlagScript
	args := func(script string) []Arg {
		return []Arg{
			text(script), integer("numkeys"), optional(multiple(Arg{Name: "key", Type: "key"})), optional(multiple(text("arg"))),
		}
	}
	const differs = "Scripts can use only the keys that they declare, and no command about all keys. A script that takes " +
		"more CPU time than --lua-time-limit is stopped, and its writes are discarded. The time counts all attempts: a script " +
		"starts again when other clients have changed its keys. At most 8,000 different keys. In a transaction with commands " +
		"about all keys, scripts have 5 ms."
	row := func(name, since, summary, script string, flags Flag, keyFlags ...string) *Command {
		return &Command{
			Name: name, Arity: -3, MaxArgs: anyNumber, Flags: scripting | flags,
			Keys:  KeySpec{Counted: 2, Flags: keyFlags},
			Since: since, Complexity: "Depends on the script", Summary: summary, Args: args(script), Differs: differs,
		}
	}
	return []*Command{
		row("eval", "2.6.0", "Executes a Lua script", "script", 0, "RW", "access", "update"),
		row("evalsha", "2.6.0", "Executes a Lua script by its SHA1", "sha1", 0, "RW", "access", "update"),
		row("eval_ro", "7.0.0", "Executes a read-only Lua script", "script", FlagReadonly, "RO", "access"),
		row("evalsha_ro", "7.0.0", "Executes a read-only Lua script by its SHA1", "sha1", FlagReadonly, "RO", "access"),
		container("script", "2.6.0", "Lua scripts management commands", scriptRows()),
	}
}

func scriptRows() []*Command {
	return []*Command{
		{
			Name: "exists", Arity: -3, MaxArgs: 2 + maxListed, Flags: FlagNoScript,
			Since: "2.6.0", Complexity: "O(N) in the number of scripts", Summary: "Returns which scripts are cached",
			Differs: "At most 10,000 scripts.",
			Args:    []Arg{multiple(text("sha1"))},
		},
		{Name: "flush", Arity: -2, Flags: FlagNoScript | FlagNotWithKeys,
			Since: "2.6.0", Complexity: "O(N) in the number of scripts", Summary: "Removes all scripts from the cache",
			Args: flushArgs()},
		{Name: "kill", Arity: 2, Flags: FlagNoScript,
			Since: "2.6.0", Summary: "Stops the scripts that are running"},
		{
			Name: "load", Arity: 3, Flags: FlagNoScript | FlagStale | FlagNotWithKeys, Long: true,
			Since: "2.6.0", Complexity: "O(N) in the length of the script", Summary: "Caches a script for EVALSHA",
			Differs: "At most 10,000 scripts: the longest unused are forgotten.",
			Args:    []Arg{text("script")},
		},
	}
}

func flushArgs() []Arg {
	return []Arg{optional(oneOf("flush-type", token("ASYNC"), token("SYNC")))}
}
