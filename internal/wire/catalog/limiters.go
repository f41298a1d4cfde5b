package catalog

import "strings"

// CL.THROTTLE and the commands that reply as it does check their number of arguments themselves and reply with their
// usage, as in redis-cell.

const batchedFlags = FlagWrite | FlagFast | FlagModule

const (
	refundNeedsDel = "A negative quantity needs the right to DEL the key, too"
	oomDiffers     = "At --maxmemory with noeviction it is refused only if it needs a new key; existing keys, and quantity 0, are answered."
	notInCell      = "Not in redis-cell. "
)

// batchedRow completes the row of a command decided in batches, with its key at an index.
func batchedRow(c Command, at int, args ...Arg) *Command {
	c.Batches = true
	c.Flags |= batchedFlags
	c.Keys = oneKey(at, "RW", "access", "update")
	c.Group = "module"
	c.Args = keyAnd(args...)
	if c.Arity == 0 {
		c.Arity = -1
	}
	if c.Since == "" {
		c.Since = "0.2.0"
	}
	if c.Complexity == "" {
		c.Complexity = "O(1)"
	}
	return &c
}

func withQuantity(names ...string) []Arg {
	return append(integers(names...), optional(integer("quantity")))
}

func funnelRows() []*Command {
	throttle := Command{
		Name: "cl.throttle", Flags: FlagDenyOOM, QuantityAt: 5, Since: "0.1.0",
		Summary: "Requests units of a key's funnel: returns limited (0 or 1), limit, remaining, " +
			"seconds until a retry, seconds until it is empty",
		Differs: refundNeedsDel + "; in Redis, modules' commands have no such rule. " + oomDiffers + " allow-oom of a script changes nothing.",
	}
	sameName := throttle
	sameName.Name, sameName.Since, sameName.Differs = "rl.throttle", "0.2.0", notInCell+"Another name of CL.THROTTLE."
	shape := func(period string) []Arg { return withQuantity("max_burst", "count_per_period", period) }
	return []*Command{
		batchedRow(throttle, 1, shape("period")...),
		batchedRow(sameName, 1, shape("period")...),
		batchedRow(Command{
			Name: "cl.pthrottle", Flags: FlagDenyOOM, QuantityAt: 5,
			Summary: "Is CL.THROTTLE with its period and times in milliseconds, rounded up",
			Differs: notInCell + refundNeedsDel + ". " + oomDiffers,
		}, 1, shape("period_ms")...),
		batchedRow(Command{
			Name: "cl.tokenbucket", Flags: FlagDenyOOM, QuantityAt: 5,
			Summary: "Takes tokens from a key's bucket, which fills at a rate: the state and the reply are those of " +
				"CL.THROTTLE with a max_burst of capacity - 1",
			Differs: notInCell + refundNeedsDel + ". " + oomDiffers,
		}, 1, withQuantity("capacity", "refill_count_per_period", "period")...),
		batchedRow(Command{
			Name: "cl.refund", Flags: FlagRefill,
			Summary: "Returns units to a key's funnel: replies as CL.THROTTLE does",
			Differs: notInCell + "The quantity, by default 1, is positive.",
		}, 1, shape("period")...),
		{
			Name: "cl.peek", Arity: -1, Flags: FlagReadonly | FlagFast | FlagModule, Keys: oneKey(1, "RO", "access"),
			Summary: "Returns what CL.THROTTLE would reply to a quantity, by default 0, and changes nothing",
			Args:    keyAnd(shape("period")...),
			Differs: notInCell + "It is not counted as a decision.",
		},
	}
}

// slidingSteps bounds a call on 4,096 records: 6,000 ns were measured, and more where they are copied.
const slidingSteps = 10_000

func windowRows() []*Command {
	shape := withQuantity("max_count", "period")
	counted := optional(token("COUNTDENIED"))
	return []*Command{
		batchedRow(Command{
			Name: "cl.fixedwindow", Flags: FlagDenyOOM, QuantityAt: 4,
			Summary: "Requests units of a key's fixed window, which begins with its first request: returns limited (0 or 1), limit, remaining, " +
				"seconds until a retry, seconds until the window ends",
			Differs: notInCell + refundNeedsDel + ". " + oomDiffers,
		}, 1, append(shape[:len(shape):len(shape)], counted)...),
		batchedRow(Command{
			Name: "cl.slidingwindow", Flags: FlagDenyOOM, QuantityAt: 4, Cost: Cost{Call: slidingSteps},
			Complexity: "O(N) in the number of calls in the window, at most 4,096; O(1) with APPROX",
			Summary: "Requests units of a key's sliding window: returns limited (0 or 1), limit, remaining, " +
				"seconds until a retry, seconds until the window is empty",
			Differs: notInCell + refundNeedsDel + ". " + oomDiffers + " A transaction that is not executed on a snapshot fits about 440 calls.",
		}, 1, append(shape[:len(shape):len(shape)], optional(token("APPROX")), counted)...),
	}
}

func bucketRows() []*Command {
	return []*Command{{
		Name: "cl.bucket", Arity: -2, Flags: FlagModule, Subs: bucketSubRows(),
		Summary: "A container for commands on buckets that callers fill",
	}}
}

func bucketSubRows() []*Command {
	const flags = FlagFast | FlagModule
	key := Arg{Name: "key", Type: "key"}
	help := helpRow()
	help.Since, help.Flags = "0.2.0", help.Flags|FlagModule
	return []*Command{
		{
			Name: "add", Arity: 5, Flags: flags | FlagWrite | FlagDenyOOM | FlagRefill, Keys: oneKey(2, "RW", "access", "update"),
			Summary: "Puts units into a bucket, up to its capacity: returns the number added",
			Args:    append([]Arg{key}, integers("capacity", "n")...), Differs: notInCell + "A bucket does not expire by itself.",
		},
		help,
		{Name: "len", Arity: 3, Flags: flags | FlagReadonly, Keys: oneKey(2, "RO", "access"),
			Summary: "Returns the number of units in a bucket, 0 if there is none",
			Args:    []Arg{key}, Differs: strings.TrimSpace(notInCell)},
		{
			Name: "reset", Arity: 4, Flags: flags | FlagWrite | FlagDenyOOM | FlagRefill, Keys: oneKey(2, "OW", "update"),
			Summary: "Fills a bucket: returns the number of its units",
			Args:    append([]Arg{key}, integers("capacity")...), Differs: notInCell + "A bucket does not expire by itself.",
		},
		batchedRow(Command{
			Name: "take", Arity: -2, Flags: FlagDenyOOM, QuantityAt: 4,
			Summary: "Takes units, by default 1, from a bucket: returns limited (0 or 1), limit, remaining, -1, -1",
			Differs: notInCell + refundNeedsDel + ".",
		}, 2, integer("capacity"), optional(integer("n"))),
	}
}

func resetRows() []*Command {
	return []*Command{
		keyRow(Command{
			Name: "cl.reset", Arity: -2, MaxArgs: anyNumber, Flags: FlagWrite | FlagModule | FlagRefill,
			Long: true, Categories: []string{},
			Complexity: "O(N) in the number of keys", Summary: "Deletes the states of limiters of any kind: returns the number deleted",
			Differs: notInCell + "Another name of DEL.",
		}, manyKeys("RM", "delete")),
	}
}
