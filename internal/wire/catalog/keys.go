package catalog

import "strings"

func oneKey(at int, flags ...string) KeySpec {
	return KeySpec{First: at, Last: at, Step: 1, Flags: flags}
}

func manyKeys(flags ...string) KeySpec {
	return KeySpec{First: 1, Last: -1, Step: 1, Flags: flags}
}

const perKey = "O(N) in the number of keys"

// refillsLimiters describes commands on any key.
const refillsLimiters = "A key of a limiter needs the right to CL.RESET it, which is in @refill. "

func keyRows() []*Command {
	const read = FlagReadonly | FlagFast
	const inSteps = "More than 1,000 keys are deleted in steps of 1,000, and other clients are served between them; in a " +
		"transaction or script, all in one step."
	return []*Command{
		{Name: "del", Arity: -2, MaxArgs: anyNumber, Flags: FlagWrite, Long: true, Keys: manyKeys("RM", "delete"),
			Since: "1.0.0", Complexity: perKey, Summary: "Deletes keys", Differs: refillsLimiters + inSteps},
		{Name: "exists", Arity: -2, MaxArgs: anyNumber, Flags: read, Long: true, Keys: manyKeys("RO"),
			Since: "1.0.0", Complexity: perKey, Summary: "Counts which of the keys exist"},
		{Name: "touch", Arity: -2, MaxArgs: anyNumber, Flags: read, Long: true, Keys: manyKeys("RO"),
			Since: "3.2.1", Complexity: perKey, Summary: "Counts which of the keys exist"},
		{Name: "type", Arity: 2, Flags: read, Keys: oneKey(1, "RO"),
			Since: "1.0.0", Summary: "Returns string for a value or a funnel, a type that begins with cl- for another limiter, or none"},
		{Name: "unlink", Arity: -2, MaxArgs: anyNumber, Flags: FlagWrite | FlagFast, Long: true, Keys: manyKeys("RM", "delete"),
			Since: "4.0.0", Complexity: perKey, Summary: "Deletes keys", Differs: refillsLimiters + inSteps},
		container("object", "2.2.3", "object introspection commands", []*Command{
			{Name: "encoding", Arity: 3, Flags: FlagReadonly, Keys: oneKey(2, "RO"),
				Since: "2.2.3", Summary: "Returns int, embstr or raw for a value, int for a funnel, or how another limiter is kept"},
		}),
	}
}

func stateRows() []*Command {
	const others = "The state of a limiter is a string in a format of its own, which a Redis stores and returns. "
	anyKey := oneKey(1, "RW", "access", "update", variableFlags)
	anyKey.ReadBy, anyKey.ReadByAt, anyKey.NotReading = append(comparisons(), "get"), 3, []string{"OW", "update"}
	return []*Command{
		{
			Name: "dump", Arity: 2, Flags: FlagReadonly, Keys: oneKey(1, "RO", "access"),
			Since: "2.6.0", Summary: "Returns a value or a limiter's state, as Redis serializes a string for RESTORE",
			Differs: others,
			Cost:    Cost{Call: dumpSteps},
		},
		{
			Name: "restore", Arity: -4, Flags: FlagWrite | FlagDenyOOM, Categories: []string{"keyspace", "dangerous"}, Keys: oneKey(1, "OW", "update"),
			Since: "2.6.0", Summary: "Sets a key to what DUMP returned, here or in Redis",
			Differs: refillsLimiters + others + "Payloads of strings of Redis 7.0 to 8.8 are accepted. FUNNEL reads a decimal as the TAT of a funnel, " +
				"as redis-cell stores it. The ttl and ABSTTL apply to values and keys of CL.BUCKET; " +
				"for other keys they are, like IDLETIME and FREQ, checked and have no effect.",
			Args: keyAnd(integer("ttl"), text("serialized-value"), optional(token("REPLACE")), optional(token("ABSTTL")),
				optional(option("IDLETIME", integer("seconds"))), optional(option("FREQ", integer("frequency"))), optional(token("FUNNEL"))),
		},
		{
			Name: "set", Arity: -3, Flags: FlagWrite | FlagDenyOOM, Categories: []string{"string"}, Group: "string", Keys: anyKey,
			Since: "1.0.0", Summary: "Sets a key to a value",
			Differs: refillsLimiters + "At most --max-value-bytes. Of a live funnel, an integer sets the TAT, as redis-cell stores it: " +
				"in Unix nanoseconds, after now and at most 2^62 ns ahead of it; any other limiter, or text, is replaced. IFEQ, IFNE, IFDEQ " +
				"and IFDNE compare what GET returns, of a funnel its TAT.",
			Args: keyAnd(text("value"), optional(oneOf("condition", append([]Arg{token("NX"), token("XX")}, comparing()...)...)), optional(token("GET")),
				optional(oneOf("expiration", append(expirations(), token("KEEPTTL"))...))),
		},
	}
}

func expiryRows() []*Command {
	const read, write = FlagReadonly | FlagFast, FlagWrite | FlagFast
	const differs = refillsLimiters + "Of limiters only keys of CL.BUCKET get another expiry: for others it " +
		"returns 1 and changes nothing, unless the time has passed, because a limiter expires by its own rate. A time after the year 2262 becomes the end of that."
	args := func(time string) []Arg {
		return keyAnd(integer(time), optional(oneOf("condition", token("NX"), token("XX"), token("GT"), token("LT"))))
	}
	readTime, update := oneKey(1, "RO", "access"), oneKey(1, "RW", "update")
	return []*Command{
		{Name: "expire", Arity: -3, Flags: write, Args: args("seconds"), Differs: differs, Keys: update,
			Since: "1.0.0", Summary: "Makes a key expire after a time, and deletes it if that is not positive"},
		{Name: "expireat", Arity: -3, Flags: write, Args: args("unix-time-seconds"), Differs: differs, Keys: update,
			Since: "1.2.0", Summary: "Makes a key expire at a time, and deletes it if that has passed"},
		{Name: "expiretime", Arity: 2, Flags: read, Keys: readTime,
			Since: "7.0.0", Summary: "Returns the Unix time in seconds at which a key expires"},
		{Name: "persist", Arity: 2, Flags: write, Differs: "Returns 0 for limiters but those of CL.BUCKET, which alone need not expire.", Keys: update,
			Since: "2.2.0", Summary: "Makes a key never expire"},
		{Name: "pexpire", Arity: -3, Flags: write, Args: args("milliseconds"), Differs: differs, Keys: update,
			Since: "2.6.0", Summary: "Makes a key expire after a time, and deletes it if that is not positive"},
		{Name: "pexpireat", Arity: -3, Flags: write, Args: args("unix-time-milliseconds"), Differs: differs, Keys: update,
			Since: "2.6.0", Summary: "Makes a key expire at a time, and deletes it if that has passed"},
		{Name: "pexpiretime", Arity: 2, Flags: read, Keys: readTime,
			Since: "7.0.0", Summary: "Returns the Unix time in milliseconds at which a key expires"},
		{Name: "pttl", Arity: 2, Flags: read, Keys: readTime,
			Since: "2.6.0", Summary: "Returns the milliseconds until a key expires"},
		{Name: "ttl", Arity: 2, Flags: read, Keys: readTime,
			Since: "1.0.0", Summary: "Returns the seconds until a key expires"},
	}
}

// dumpSteps bounds DUMP of the longest state, of 160 KiB: most of it is the checksum.
const dumpSteps = 500_000

// countSteps is DBSIZE's time for each slot: 5 to 10 ns were measured, up to 4 million keys. Collecting names
// takes 26 to 33 ns and the reply. FLUSHDB takes 12 ns for a slot that stays, up to 50 for one it empties,
// and 70 to 170 ns for a KiB of names.
const countSteps = 10

func keyspaceRows() []*Command {
	dangerous := []string{"keyspace", "dangerous"}
	const perEntry = "O(N) in the number of entries"
	return []*Command{
		{Name: "dbsize", Arity: 1, Flags: FlagReadonly | FlagFast | FlagWhole,
			Group: "server", Since: "1.0.0", Complexity: perEntry,
			Summary: "Counts the live keys of the database", Cost: Cost{Slot: countSteps}},
		{
			Name: "flushall", Arity: -1, Flags: FlagWrite | FlagWhole | FlagRefill, Categories: dangerous, Long: true,
			Group: "server", Since: "1.0.0",
			Summary: "Removes all keys of all databases", Args: flushArgs(), Cost: Cost{Call: 100_000},
		},
		{Name: "flushdb", Arity: -1, Flags: FlagWrite | FlagWhole | FlagRefill, Categories: dangerous,
			Group: "server", Since: "1.0.0", Complexity: perEntry,
			Summary: "Removes all keys of the database", Args: flushArgs(), Cost: Cost{Slot: 50, KiB: 150}},
		{
			Name: "keys", Arity: 2, Flags: FlagReadonly | FlagWhole, Categories: dangerous,
			Group: "generic", Since: "1.0.0", Complexity: perEntry,
			Summary: "Returns the keys that match a pattern", Args: []Arg{{Name: "pattern", Type: "pattern"}},
			Cost: Cost{Slot: 50, Pattern: 1},
			Differs: "Runs in the background. A reply longer than --max-output-bytes is an error. " +
				"In a range such as [a-z] of any pattern bytes from 128 on come before the others, " +
				"as in a Redis on x86; on ARM they come last.",
		},
		{
			Name: "scan", Arity: -2, Flags: FlagReadonly | FlagWhole,
			Group: "generic", Since: "2.8.0", Complexity: "O(1) for a call, " + perEntry + " for a walk",
			Summary: "Returns some keys, and the cursor with which to continue",
			Args: []Arg{
				integer("cursor"),
				optional(option("MATCH", Arg{Name: "pattern", Type: "pattern"})),
				optional(option("COUNT", integer("count"))), optional(option("TYPE", text("type"))),
			},
			Differs: "Returns each key at most once. Types are those of TYPE.",
			Cost:    Cost{Slot: 50, Options: true},
		},
	}
}

// valueRows are Redis's commands on strings: counters and small texts.
func valueRows() []*Command {
	const (
		counts = FlagWrite | FlagDenyOOM | FlagFast
		sets   = FlagWrite | FlagDenyOOM
	)
	access, update := oneKey(1, "RW", "access", "update"), oneKey(1, "OW", "update")
	amount := func(name, kind string) []Arg { return keyAnd(Arg{Name: name, Type: kind}) }
	timed := func(name string) []Arg { return keyAnd(integer(name), text("value")) }
	pairs := manyKeys("OW", "update")
	pairs.Step = 2
	newPairs := manyKeys("OW", "insert")
	newPairs.Step = 2
	compared := oneKey(1, "RW", "access", "delete", variableFlags)
	compared.ReadBy, compared.ReadByAt, compared.NotReading = comparisons(), 2, []string{"RM", "delete"}
	keyValues := multiple(block("key_value", keyAnd(text("value"))...))
	const ofFunnel = refillsLimiters + "Of a funnel the value is the TAT, as GET returns it. "
	all := []*Command{
		{Name: "get", Arity: 2, Cost: Cost{Call: readSteps}, Batches: true, Flags: FlagReadonly | FlagFast, Since: "1.0.0", Summary: "Returns a value", Keys: oneKey(1, "RO", "access"),
			Differs: "Of a funnel it is the TAT in nanoseconds, as redis-cell stores it. Keys of other limiters have no value."},
		{Name: "incr", Arity: 2, Batches: true, Flags: counts, Since: "1.0.0", Summary: "Adds one to a counter", Keys: access},
		{Name: "decr", Arity: 2, Batches: true, Flags: counts, Since: "1.0.0", Summary: "Subtracts one from a counter", Keys: access},
		{Name: "incrby", Arity: 3, Batches: true, Flags: counts, Since: "1.0.0", Summary: "Adds to a counter", Args: amount("increment", "integer"), Keys: access},
		{Name: "decrby", Arity: 3, Batches: true, Flags: counts, Since: "1.0.0", Summary: "Subtracts from a counter", Args: amount("decrement", "integer"), Keys: access},
		{
			Name: "incrbyfloat", Arity: 3, Cost: Cost{Call: floatSteps}, Flags: counts, Since: "2.6.0", Summary: "Adds a number to a value", Keys: access,
			Args:    amount("increment", "double"),
			Differs: "Computes with a mantissa of 64 bits, as Redis does on x86-64.",
		},
		{
			Name: "increx", Arity: -2, Cost: Cost{Word: "byfloat", OfWord: 2 * floatSteps}, Batches: true, Flags: counts, Since: "8.8.0", Keys: access,
			Summary: "Adds to a value within bounds, sets its expiry, and returns the value and what was added",
			Args: keyAnd(
				optional(oneOf("condition", token("NX"), token("XX"))),
				optional(oneOf("increment", option("BYFLOAT", Arg{Name: "float", Type: "double"}), option("BYINT", integer("integer")))),
				optional(option("LBOUND", text("lowerbound"))), optional(option("UBOUND", text("upperbound"))), optional(token("SATURATE")),
				optional(oneOf("expiration", append(expirations(), token("PERSIST"))...)), optional(token("ENX"))),
			Differs: "NX and XX are Valkey's. BYFLOAT computes as INCRBYFLOAT does.",
		},
		{Name: "strlen", Arity: 2, Flags: FlagReadonly | FlagFast, Since: "2.2.0", Summary: "Returns the length of a value", Keys: oneKey(1, "RO")},
		{Name: "setnx", Arity: 3, Flags: counts, Since: "1.0.0", Summary: "Sets a value if the key does not exist", Keys: oneKey(1, "OW", "insert"),
			Args: keyAnd(text("value"))},
		{Name: "setex", Arity: 4, Flags: sets, Since: "2.0.0", Summary: "Sets a value that expires after seconds", Args: timed("seconds"), Keys: update},
		{Name: "psetex", Arity: 4, Flags: sets, Since: "2.6.0", Summary: "Sets a value that expires after milliseconds", Args: timed("milliseconds"), Keys: update},
		{Name: "getdel", Arity: 2, Cost: Cost{Call: readSteps}, Flags: FlagWrite | FlagFast, Since: "6.2.0", Summary: "Returns a value and deletes the key", Keys: oneKey(1, "RW", "access", "delete")},
		{Name: "getset", Arity: 3, Cost: Cost{Call: readSteps}, Flags: counts, Since: "1.0.0", Summary: "Returns a value and sets another one", Keys: access,
			Args: keyAnd(text("value"))},
		{Name: "delex", Arity: -2, Cost: Cost{Call: readSteps}, Flags: FlagWrite | FlagFast, Since: "8.4.0", Summary: "Deletes a key if its value or digest is, or is not, a given one",
			Keys: compared, Args: keyAnd(optional(oneOf("condition", comparing()...))),
			Differs: ofFunnel + "A condition on another limiter is a WRONGTYPE error, as Valkey's; Redis's begins with ERR."},
		{Name: "delifeq", Arity: 3, Cost: Cost{Call: readSteps}, Flags: FlagWrite | FlagFast, Since: "9.0.0", Summary: "Deletes a key if its value is a given one",
			Keys: oneKey(1, "RW", "access", "delete"), Args: keyAnd(text("value")), Differs: ofFunnel + "Valkey's command; it is not in Redis."},
		{Name: "digest", Arity: 2, Cost: Cost{Call: readSteps}, Flags: FlagReadonly | FlagFast, Since: "8.4.0", Summary: "Returns the XXH3 hash of a value",
			Keys: oneKey(1, "RO", "access"), Differs: "Of a funnel it is that of the TAT, as GET returns it."},
		{Name: "getex", Arity: -2, Cost: Cost{Call: readSteps}, Flags: FlagWrite | FlagFast, Since: "6.2.0", Summary: "Returns a value and sets or removes its expiry", Keys: access,
			Args: keyAnd(optional(oneOf("expiration", append(expirations(), token("PERSIST"))...)))},
		{Name: "mget", Arity: -2, Flags: FlagReadonly | FlagFast, Since: "1.0.0", Complexity: perKey, Keys: manyKeys("RO", "access"),
			Summary: "Returns the values of keys in one step"},
		{Name: "mset", Arity: -3, Flags: sets, Since: "1.0.1", Complexity: perKey, Summary: "Sets values in one step", Keys: pairs,
			Args: []Arg{keyValues}},
		{Name: "msetnx", Arity: -3, Flags: sets, Since: "1.0.1", Complexity: perKey, Summary: "Sets values in one step if none of the keys exists", Keys: newPairs,
			Args: []Arg{keyValues}},
		{Name: "msetex", Arity: -4, Flags: sets | FlagMovableKeys, Since: "8.4.0", Complexity: perKey, Summary: "Sets values in one step, under a condition and with an expiry",
			Keys: KeySpec{Counted: 1, With: 1, Flags: []string{"OW", "update"}},
			Args: []Arg{integer("numkeys"), multiple(block("data", keyAnd(text("value"))...)), optional(oneOf("condition", token("NX"), token("XX"))),
				optional(oneOf("expiration", append(expirations(), token("KEEPTTL"))...))}},
	}
	for _, c := range all {
		c.Group, c.Categories = "string", []string{"string"}
	}
	return append(all, renameRow("rename", "update", 0, "Gives a key another name"),
		renameRow("renamenx", "insert", FlagFast, "Gives a key another name if no key has it"))
}

// readSteps is the time to copy a value of a few KiB, floatSteps that to print thousands of digits.
const (
	readSteps  = 2_000
	floatSteps = 100_000
)

// comparisons are the names, in lower case, of the conditions on values.
func comparisons() []string { return []string{"ifeq", "ifne", "ifdeq", "ifdne"} }

// comparing are the same conditions with what they compare.
func comparing() (all []Arg) {
	for _, name := range comparisons() {
		of := "-value"
		if strings.HasPrefix(name, "ifd") {
			of = "-digest"
		}
		all = append(all, option(strings.ToUpper(name), text(name+of)))
	}
	return all
}

// expirations are the options of SET and GETEX.
func expirations() []Arg {
	return []Arg{
		option("EX", integer("seconds")), option("PX", integer("milliseconds")),
		option("EXAT", integer("unix-time-seconds")), option("PXAT", integer("unix-time-milliseconds")),
	}
}

func renameRow(name, writes string, flags Flag, summary string) *Command {
	return &Command{
		Name: name, Arity: 3, Flags: FlagWrite | flags, Since: "1.0.0", Summary: summary, Differs: refillsLimiters + "So does a new name that a limiter has.",
		Keys: KeySpec{First: 1, Last: 2, Step: 1, Flags: []string{"RW", "access", "delete"}, SecondFlags: []string{"OW", writes}},
		Args: keyAnd(Arg{Name: "newkey", Type: "key"}),
	}
}
