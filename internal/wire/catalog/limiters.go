package catalog

import (
	"cmp"
	"strings"
)

// CL.THROTTLE and the commands that reply as it does check their number of arguments themselves and reply
// with their usage, as in redis-cell.

const batchedFlags = FlagWrite | FlagFast | FlagModule

const (
	givingNeedsReset = "It needs the right to CL.RESET the key, too. "
	refundNeedsReset = "A negative quantity needs the right to CL.RESET the key, too"
	oomDiffers       = "At --maxmemory with noeviction it is refused only if it needs a new key; existing keys, and quantity 0, are answered."
	notInCell        = "Not in redis-cell. "
	takesMost        = " ATMOST, which redis-cell has not, takes as many of the units as are left, at least one, and adds their number to the reply."
)

// asMost tells of ATMOST where redis-cell has not the command either.
const asMost = " ATMOST takes as many of the units as are left, at least one, and adds their number to the reply."

// batchedRow completes the row of a command decided in batches, with its key at an index.
func batchedRow(c Command, at int, args ...Arg) *Command {
	c.Batches = true
	c.Flags |= batchedFlags
	c.Keys = oneKey(at, "RW", "access", "update")
	c.Args = keyAnd(args...)
	c.Arity = cmp.Or(c.Arity, -1)
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
		Differs: refundNeedsReset + "; in Redis, modules' commands have no such rule. " + oomDiffers + takesMost + " allow-oom of a script changes nothing.",
	}
	sameName := throttle
	sameName.Name, sameName.Since, sameName.Differs = "rl.throttle", "0.2.0", notInCell+"Another name of CL.THROTTLE."
	shape := func(period string) []Arg { return withQuantity("max_burst", "count_per_period", period) }
	most := func(args []Arg) []Arg { return append(args, optional(token("ATMOST"))) }
	return []*Command{
		batchedRow(throttle, 1, most(shape("period"))...),
		batchedRow(sameName, 1, most(shape("period"))...),
		batchedRow(Command{
			Name: "cl.pthrottle", Flags: FlagDenyOOM, QuantityAt: 5,
			Summary: "Is CL.THROTTLE with its period and times in milliseconds, rounded up",
			Differs: notInCell + refundNeedsReset + ". " + oomDiffers + asMost,
		}, 1, most(shape("period_ms"))...),
		batchedRow(Command{
			Name: "cl.tokenbucket", Flags: FlagDenyOOM, QuantityAt: 5,
			Summary: "Takes tokens from a key's bucket, which fills at a rate: the state and the reply are those of " +
				"CL.THROTTLE with a max_burst of capacity - 1",
			Differs: notInCell + refundNeedsReset + ". " + oomDiffers + asMost,
		}, 1, most(withQuantity("capacity", "refill_count_per_period", "period"))...),
		batchedRow(Command{
			Name: "cl.refund", Flags: FlagRefill, GivesUnits: true,
			Summary: "Returns units to a key's funnel: replies as CL.THROTTLE does",
			Differs: notInCell + givingNeedsReset + "The quantity, by default 1, is positive.",
		}, 1, shape("period")...),
		batchedRow(Command{
			Name: "cl.debit", Flags: FlagDenyOOM, Since: "0.3.0",
			Summary: "Charges units to a key's funnel, also beyond its capacity: replies as CL.THROTTLE does, limited if " +
				"that went over, with the seconds until one unit fits",
			Differs: notInCell + "Of a debt of more than 2^62 ns (146 years) the rest is cut off, and counted.",
		}, 1, integers("max_burst", "count_per_period", "period", "quantity")...),
		{
			Name: "cl.peek", Arity: -1, Flags: FlagReadonly | FlagFast | FlagModule, Keys: oneKey(1, "RO", "access"),
			Summary: "Returns what CL.THROTTLE would reply to a quantity, by default 0, and changes nothing",
			Args:    keyAnd(most(shape("period"))...),
			Differs: notInCell + "It is not counted as a decision. ATMOST is as in CL.THROTTLE.",
		},
		{
			Name: "cl.bthrottle", Arity: 7, Flags: FlagWrite | FlagDenyOOM | FlagFast | FlagModule | FlagBlocking, QuantityAt: 5,
			Keys: oneKey(1, "RW", "access", "update"),
			Summary: "Is CL.THROTTLE that waits for its turn: debits at once and replies when the turn comes, if that is " +
				"within the timeout in seconds, and otherwise is limited at once",
			Differs: notInCell + refundNeedsReset + ". The timeout is a number like that of BLPOP; 0 waits without limit. Clients waiting for a key are " +
				"answered in the order of their calls, and other calls do not overtake them. A client that disconnects, or closes " +
				"its side of the connection, returns its debit, and later ones move up; so do CLIENT UNBLOCK and a graceful " +
				"shutdown, but not a kill of the server. In a transaction or a script, and with a quantity of 0 or less, it never " +
				"waits. " + oomDiffers,
			Args: keyAnd(append(integers("max_burst", "count_per_period", "period", "quantity"),
				Arg{Name: "timeout", Type: "double"})...),
		},
		{
			Name: "cl.reset", Arity: -2, MaxArgs: anyNumber, Flags: FlagWrite | FlagModule | FlagRefill, Keys: manyKeys("RM", "delete"),
			Long:       true,
			Complexity: "O(N) in the number of keys", Summary: "Deletes the states of limiters of any kind: returns the number deleted",
			Differs: notInCell + "Another name of DEL.",
		},
	}
}

// SlidingSteps bounds a call on 4,096 records: 6,000 ns were measured, and more where they are copied.
const SlidingSteps = 10_000

func windowRows() []*Command {
	shape := withQuantity("max_count", "period")
	counted, most := optional(oneOf("mode", token("COUNTDENIED"), token("DEBIT"))), optional(token("ATMOST"))
	const debits = " DEBIT charges all units, also beyond the limit, and cannot be refused."
	return []*Command{
		batchedRow(Command{
			Name: "cl.fixedwindow", Flags: FlagDenyOOM, QuantityAt: 4,
			Summary: "Requests units of a key's fixed window, which begins with its first request: returns limited (0 or 1), limit, remaining, " +
				"seconds until a retry, seconds until the window ends",
			Differs: notInCell + refundNeedsReset + ". " + oomDiffers + debits + asMost,
		}, 1, append(shape[:len(shape):len(shape)], counted, most)...),
		batchedRow(Command{
			Name: "cl.slidingwindow", Flags: FlagDenyOOM, QuantityAt: 4, Cost: Cost{Call: SlidingSteps},
			Complexity: "O(N) in the number of calls in the window, at most 4,096; O(1) with APPROX",
			Summary: "Requests units of a key's sliding window: returns limited (0 or 1), limit, remaining, " +
				"seconds until a retry, seconds until the window is empty",
			Differs: notInCell + refundNeedsReset + ". " + oomDiffers + " A transaction that is not executed on a snapshot fits about 440 calls." + debits + " It needs APPROX." + asMost,
		}, 1, append(shape[:len(shape):len(shape)], optional(token("APPROX")), counted, most)...),
		batchedRow(Command{
			Name: "cl.quota", Flags: FlagDenyOOM, QuantityAt: 4, Since: "0.3.0",
			Summary: "Requests units of a key's window of the calendar, such as a month of a time zone: returns limited (0 or 1), " +
				"limit, remaining, seconds until a retry, seconds until the window ends",
			Differs: notInCell + refundNeedsReset + ". " + oomDiffers + debits + asMost + " Options may stand in any order.",
		}, 1, integer("max_count"),
			oneOf("unit", token("SECOND"), token("MINUTE"), token("HOUR"), token("DAY"), token("WEEK"), token("MONTH"), token("YEAR")),
			optional(integer("quantity")), optional(option("TZ", text("zone"))), optional(option("START", text("start"))),
			optional(token("EPOCH")), counted, most),
	}
}

func bucketRows() []*Command {
	const flags = FlagFast | FlagModule
	key := Arg{Name: "key", Type: "key"}
	help := helpRow()
	help.Since, help.Flags = "0.2.0", help.Flags|FlagModule
	return []*Command{
		{
			Name: "add", Arity: 5, Flags: flags | FlagWrite | FlagDenyOOM | FlagRefill, Keys: oneKey(2, "RW", "access", "update"), GivesUnits: true,
			Summary: "Puts units into a bucket, up to its capacity: returns the number added",
			Args:    append([]Arg{key}, integers("capacity", "n")...), Differs: notInCell + givingNeedsReset + "A bucket does not expire by itself.",
		},
		help,
		{Name: "len", Arity: 3, Flags: flags | FlagReadonly, Keys: oneKey(2, "RO", "access"),
			Summary: "Returns the number of units in a bucket, 0 if there is none",
			Args:    []Arg{key}, Differs: strings.TrimSpace(notInCell)},
		{
			Name: "reset", Arity: 4, Flags: flags | FlagWrite | FlagDenyOOM | FlagRefill, Keys: oneKey(2, "OW", "update"), GivesUnits: true,
			Summary: "Fills a bucket: returns the number of its units",
			Args:    append([]Arg{key}, integers("capacity")...), Differs: notInCell + givingNeedsReset + "A bucket does not expire by itself.",
		},
		batchedRow(Command{
			Name: "take", Arity: -2, Flags: FlagDenyOOM, QuantityAt: 4,
			Summary: "Takes units, by default 1, from a bucket: returns limited (0 or 1), limit, remaining, -1, -1",
			Differs: notInCell + refundNeedsReset + "." + asMost,
		}, 2, integer("capacity"), optional(integer("n")), optional(token("ATMOST"))),
	}
}

func namedRows() []*Command {
	return []*Command{
		{
			Name: "cl.check", Arity: -3, Flags: batchedFlags | FlagDenyOOM | FlagMovableKeys, QuantityAt: 3, Batches: true,
			Keys:       KeySpec{Joined: 1, Flags: []string{"RW", "access", "update"}},
			Complexity: "O(N) in the number of the limit's rules",
			Summary: "Requests units of all rules of a named limit, or of none: returns limited (0 or 1), and of the " +
				"tightest rule its limit, remaining, seconds until a retry, seconds until it is empty",
			Differs: "Not in Redis. The key is name:key in access control, scripts and all commands on keys, and holds all " +
				"rules' states. A negative quantity needs the right to CL.RESET that key, too. A limit with SHADOW never denies. " +
				"A rule with BLOCK denies all calls for a time from a denial on. DEBIT charges all units, also beyond the limit." + asMost,
			Args: []Arg{text("name"), text("key"), optional(integer("quantity")), optional(oneOf("mode", token("DEBIT"), token("ATMOST")))},
		},
		{
			Name: "cl.mcheck", Arity: -4, Flags: FlagWrite | FlagDenyOOM | FlagModule | FlagMovableKeys, Since: "0.3.0",
			Keys:       KeySpec{Counted: 1, With: 1, Pairs: true, Flags: []string{"RW", "access", "update"}},
			Complexity: "O(N) in the number of keys",
			Cost:       Cost{Call: 5000}, // for the undo log of a transaction on all keys
			Summary: "Requests units of several keys under names of limits, of all or of none: returns limited (0 or 1) for " +
				"the whole, and the five integers of CL.CHECK for each",
			Differs: "Not in Redis. n is the number of pairs that follow, at most 32. A pair named twice is charged twice, and the second reply is what it finds behind the first. " +
				"With EACH every pair is decided and charged by itself. DEBIT charges all units, also beyond the limits. " +
				"ATMOST needs EACH, and adds to each five integers the units taken. The keys are those of CL.CHECK.",
			Args: []Arg{
				integer("n"), multiple(block("pair", text("name"), text("key"))),
				optional(option("QUANTITY", integer("quantity"))), optional(token("EACH")), optional(oneOf("mode", token("DEBIT"), token("ATMOST"))),
			},
		},
		container("cl.limit", "", "commands about named limits", limitRows()),
	}
}

func limitRows() []*Command {
	const (
		changing  = byAdmin&^FlagLoading | FlagNotWithKeys
		perLimit  = "O(N) in the number of limits"
		notInFile = "Not in Redis. A limit defined in --limits-file is changed there. "
	)
	name := text("name")
	return []*Command{
		{Name: "del", Arity: 3, Flags: changing, Long: true,
			Complexity: perLimit, Summary: "Deletes a named limit; its keys expire by themselves", Args: []Arg{name},
			Differs: notInFile + "With --data-dir it replies once the change is on the disk."},
		{
			Name: "explain", Arity: 4, Flags: byAdmin | FlagReadonly | FlagMovableKeys, Since: "0.3.0",
			Keys:       KeySpec{Joined: 2, Flags: []string{"RO", "access"}},
			Complexity: "O(N) in the number of the limit's rules",
			Summary: "Tells what decides a key under the name of a limit: the override that holds, or null, and for each rule " +
				"its text and the five integers of a look for one unit, and of a rule that blocks the key the seconds until the block ends",
			Args: []Arg{name, text("key")}, Differs: "Not in Redis. Of a limit in usd a rule's text ends with what is left, ($37.66 of $50.00 left).",
		},
		{
			Name: "get", Arity: 3, Flags: byAdmin,
			Complexity: "O(N) in the number of the limit's rules",
			Summary: "Returns a named limit: its rules, its source, and its decisions, also by rule; windows are the rules, each " +
				"as max_burst, count and period, if all are funnels without a name and BLOCK",
			Args: []Arg{name}, Differs: "Not in Redis. It also tells the numbers of holds, and unit and max_reservation, null without.",
		},
		{Name: "list", Arity: 2, Flags: byAdmin, Cost: Cost{Call: 100_000},
			Complexity: perLimit, Summary: "Lists the names of the limits", Differs: "Not in Redis."},
		{
			Name: "override", Arity: -5, Flags: changing | FlagMovableKeys, Long: true, Since: "0.3.0",
			Keys:       KeySpec{Joined: 2, Flags: []string{"OW", "update"}},
			Complexity: "O(1), and O(N) in the number of overrides now and then",
			Summary:    "Gives a key under the name of a limit other rules, or ends that: returns OK, or for DEL 1, or 0 if there was none",
			Args: []Arg{name, text("key"), oneOf("policy", token("DENY"), token("UNLIMITED"), option("PLAN", text("plan")), ruleArg(), token("DEL")),
				optional(option("EX", integer("seconds")))},
			Differs: "Not in Redis. It holds before the overrides of --limits-file, until it is deleted or EX seconds later. At most " +
				"100,000. With --data-dir it replies once the change is on the disk.",
		},
		{
			Name: "overrides", Arity: -3, Flags: byAdmin, Long: true, Since: "0.3.0", Cost: Cost{Call: 10_000_000},
			Complexity: "O(N) in the number of the limit's overrides",
			Summary: "Lists overrides by CL.LIMIT OVERRIDE: returns the next cursor, 0 at the end, and for each its key, its text, and the seconds left or -1; " +
				"with FILE those of --limits-file, each as key or pattern, which, its text, and its rules",
			Args:    []Arg{name, optional(integer("cursor")), optional(token("FILE"))},
			Differs: "Not in Redis. It leaves out keys, name:key, to which the user has no right. A cursor of FILE is valid until the next reload.",
		},
		{Name: "reload", Arity: 2, Flags: changing, Long: true,
			Complexity: perLimit, Summary: "Reloads --limits-file: all of it or nothing", Differs: "Not in Redis. SIGHUP does the same."},
		{
			Name: "set", Arity: -6, Flags: changing, Long: true, // as EXEC waits for the disk
			Complexity: perLimit,
			Summary:    "Defines or changes a named limit",
			Args: []Arg{name, oneOf("rules", multiple(block("window", integers("max_burst", "count_per_period", "period")...)), ruleArg()),
				optional(option("UNIT", oneOf("unit", token("USD")))), optional(option("MAXRESERVATION", Arg{Name: "share", Type: "double"})),
				optional(token("SHADOW")), optional(token("SAMERULES"))},
			Differs: notInFile + "With UNIT usd integers are millionths of a dollar. MAXRESERVATION is the share, above 0 and at most 1, of the smallest capacity " +
				"that a hold may have. With SAMERULES it fails unless the limit has these rules, so that only SHADOW changes. A rule's state is known by its algorithm, period and zone, which must differ. At most 1,024 limits of 16 rules. " +
				"With --data-dir it replies once the change is on the disk.",
		},
	}
}

func ruleArg() Arg {
	after := func(word string, args ...Arg) Arg {
		return block(strings.ToLower(word), append([]Arg{token(word)}, args...)...)
	}
	algorithm := oneOf("algorithm",
		after("FUNNEL", integers("max_burst", "count_per_period", "period")...),
		after("TOKENBUCKET", integers("capacity", "refill_count_per_period", "period")...),
		after("FIXEDWINDOW", integers("max_count", "period")...),
		after("SLIDINGWINDOW", append(integers("max_count", "period"), optional(token("APPROX")))...),
		after("QUOTA", integer("max_count"), text("unit"), optional(option("TZ", text("zone"))), optional(option("START", text("start")))))
	rule := block("rule", algorithm, optional(block("block", option("BLOCK", integer("seconds")), optional(token("EACH")))))
	rule.Multiple = true
	return rule
}

const (
	perReservation = "O(N) in the number of the key's open reservations, of which there are at most 4,096"
	perHolder      = "O(N) in the number of the key's holders, of which there are at most 4,096"
	// openSteps bounds a call on a key with 4,096 open reservations or holders, which are copied and
	// searched.
	openSteps = 30_000
)

// openRow completes the row of a command on reservations or holders, with its key at an index.
func openRow(c Command, at int, complexity string, args ...Arg) *Command {
	c.Flags |= FlagModule
	c.Keys = oneKey(at, "RW", "access", "update")
	c.Complexity = complexity
	c.Cost.Call = openSteps
	c.Args = keyAnd(args...)
	return &c
}

func reservingRows() []*Command {
	limit := keyAnd(integers("max_burst", "count_per_period", "period", "quantity")...)
	return []*Command{
		openRow(Command{
			Name: "cl.reserve", Arity: 7, Flags: FlagWrite | FlagDenyOOM,
			Summary: "Reserves units of a key's funnel until CL.COMMIT reports how many were used, at most for " +
				"ttl_ms milliseconds, or a time such as 30s: returns the five integers of CL.THROTTLE, " +
				"and the reservation's id, or null if limited",
			Differs: notInCell + "A reservation that is not committed in time returns its units, as far as they " +
				"have not drained. A key has at most 4,096 open reservations. CL.THROTTLE on the same key counts reserved " +
				"units. The key expires when no reservation is open and the funnel is empty.",
		}, 1, perReservation, integers("max_burst", "count_per_period", "period", "amount", "ttl_ms")...),
		openRow(Command{
			Name: "cl.commit", Arity: -4, Flags: FlagWrite | FlagDenyOOM,
			Summary: "Ends a reservation of CL.RESERVE with the units that were used: returns 1; 0 if it is not open; with LATE, " +
				"2 if it has expired, and then debits the units",
			Differs: notInCell + "More units than were reserved are always debited, even beyond the capacity. Fewer return the " +
				"rest, at most what the reservation has debited, so it needs no right to CL.RESET the key and is not in @refill: " +
				"reserving and committing never exceed the limit. A second commit of an id changes nothing, unless it is LATE after the reservation's time: that " +
				"debits once more.",
		}, 1, perReservation, text("id"), integer("actual"), optional(block("late", append([]Arg{token("LATE")}, integers("max_burst", "count_per_period", "period")...)...))),
		{
			Name: "cl.mthrottle", Arity: -7, Flags: FlagWrite | FlagDenyOOM | FlagModule | FlagMovableKeys,
			Keys:       KeySpec{Counted: 1, With: len(limit) - 1, Flags: []string{"RW", "access", "update"}},
			Complexity: "O(N) in the number of limits",
			Cost:       Cost{Call: 5000}, // for the undo log of a transaction on all keys
			Summary: "Requests units of several keys' funnels, of all or of none: returns limited (0 or 1) for the " +
				"whole, and the five integers of CL.THROTTLE for each",
			Differs: notInCell + "n is the number of limits that follow, at most 128. If one is limited, nothing is debited: limited ones " +
				"reply when to retry, and the others with their present state. A key named twice is debited in order. Quantity " +
				"0 only looks, and a negative one is refused.",
			Args: []Arg{integer("n"), multiple(block("limit", limit...))},
		},
		{
			Name: "cl.bucket", Arity: -2, Flags: FlagModule, Subs: bucketRows(),
			Summary: "A container for commands on buckets that callers fill",
		},
		container("cl.concurrency", "", "commands that limit concurrent holders of a key", concurrencyRows()),
	}
}

func concurrencyRows() []*Command {
	token := text("token")
	limit := optional(block("limit", integers("max", "lease_ms")...))
	help := helpRow()
	help.Since = "0.2.0"
	length := openRow(Command{
		Name: "len", Arity: -3, Flags: FlagReadonly, Summary: "Returns the number of a key's holders",
		Differs: notInCell + "max and lease_ms are accepted, as in ACQUIRE, and ignored.",
	}, 2, perHolder, limit)
	length.Keys.Flags = []string{"RO", "access"}
	return []*Command{
		openRow(Command{
			Name: "acquire", Arity: -5, Flags: FlagWrite | FlagDenyOOM,
			Summary: "Takes one of a key's places for lease_ms milliseconds, or a time such as 30s: returns " +
				"limited (0 or 1), max, places left, seconds until a retry, seconds until all are free, " +
				"and the holder's token, or null if limited",
			Differs: notInCell + "max is at most 4,096. Without a token, of 1 to 64 bytes, the server makes one. A holder renews its place. " +
				"A place whose lease ends is free.",
		}, 2, perHolder, append(integers("max", "lease_ms"), optional(text("token")))...),
		help,
		length,
		openRow(Command{
			Name: "release", Arity: -4, Flags: FlagWrite,
			Summary: "Frees a holder's place: returns 1, or 0 if it has none",
			Differs: notInCell + "It needs no right to CL.RESET the key and is not in @refill, as it frees only the place of a known token. max " +
				"and lease_ms are accepted, as in ACQUIRE, and ignored.",
		}, 2, perHolder, limit, token),
		openRow(Command{
			Name: "renew", Arity: -5, Flags: FlagWrite,
			Summary: "Extends a holder's lease to lease_ms milliseconds from now, or a time such as 30s: " +
				"returns 1, or 0 if it has none",
			Differs: notInCell + "max is accepted, as in ACQUIRE, and ignored.",
		}, 2, perHolder, optional(integer("max")), integer("lease_ms"), token),
	}
}
