package catalog

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
		{Name: "strlen", Arity: 2, Flags: FlagReadonly | FlagFast, Since: "2.2.0", Summary: "Returns the length of a value", Keys: oneKey(1, "RO")},
		{Name: "setnx", Arity: 3, Flags: counts, Since: "1.0.0", Summary: "Sets a value if the key does not exist", Keys: oneKey(1, "OW", "insert"),
			Args: keyAnd(text("value"))},
		{Name: "setex", Arity: 4, Flags: sets, Since: "2.0.0", Summary: "Sets a value that expires after seconds", Args: timed("seconds"), Keys: update},
		{Name: "psetex", Arity: 4, Flags: sets, Since: "2.6.0", Summary: "Sets a value that expires after milliseconds", Args: timed("milliseconds"), Keys: update},
		{Name: "getdel", Arity: 2, Cost: Cost{Call: readSteps}, Flags: FlagWrite | FlagFast, Since: "6.2.0", Summary: "Returns a value and deletes the key", Keys: oneKey(1, "RW", "access", "delete")},
		{Name: "getex", Arity: -2, Cost: Cost{Call: readSteps}, Flags: FlagWrite | FlagFast, Since: "6.2.0", Summary: "Returns a value and sets or removes its expiry", Keys: access,
			Args: keyAnd(optional(oneOf("expiration", append(expirations(), token("PERSIST"))...)))},
		{Name: "mget", Arity: -2, Flags: FlagReadonly | FlagFast, Since: "1.0.0", Complexity: perKey, Keys: manyKeys("RO", "access"),
			Summary: "Returns the values of keys in one step"},
		{Name: "mset", Arity: -3, Flags: sets, Since: "1.0.1", Complexity: perKey, Summary: "Sets values in one step", Keys: pairs,
			Args: []Arg{multiple(Arg{Name: "key_value", Type: "block", Args: keyAnd(text("value"))})}},
	}
	for _, c := range all {
		c.Group, c.Categories = "string", []string{"string"}
	}
	return append(all, renameRow("rename", "update", 0, "Gives a key another name"),
		renameRow("renamenx", "insert", FlagFast, "Gives a key another name if no key has it"))
}

// readSteps is the time to copy a value of a few KiB, floatSteps that for numbers of thousands of digits.
const (
	readSteps  = 2_000
	floatSteps = 100_000
)

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
