package catalog

func namedRows() []*Command {
	return []*Command{
		{
			Name: "cl.check", Arity: -3, Flags: batchedFlags | FlagDenyOOM | FlagMovableKeys, QuantityAt: 3, Batches: true,
			Keys:       KeySpec{Joined: 1, Flags: []string{"RW", "access", "update"}},
			Complexity: "O(N) in the number of the limit's windows",
			Summary: "Requests units of all windows of a named limit, or of none: returns limited (0 or 1), and of the " +
				"tightest window its limit, remaining, seconds until a retry, seconds until it is empty",
			Differs: "Not in Redis. The key is name:key in access control, scripts and all commands on keys, and holds all " +
				"windows. A negative quantity needs the right to DEL that key, too. A limit with SHADOW never denies.",
			Args: []Arg{
				text("name"),
				text("key"),
				optional(integer("quantity")),
			},
		},
		{Name: "cl.limit", Arity: -2, Subs: limitRows(),
			Summary: "A container for commands about named limits"},
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
			Name: "get", Arity: 3, Flags: byAdmin,
			Complexity: "O(N) in the number of the limit's windows",
			Summary: "Returns a named limit: its windows, each as max_burst, count and period, its source, and its " +
				"decisions",
			Args: []Arg{name}, Differs: "Not in Redis.",
		},
		helpRow(),
		{Name: "list", Arity: 2, Flags: byAdmin, Cost: Cost{Call: 100_000},
			Complexity: perLimit, Summary: "Lists the names of the limits", Differs: "Not in Redis."},
		{Name: "reload", Arity: 2, Flags: changing, Long: true,
			Complexity: perLimit, Summary: "Reloads --limits-file: all of it or nothing", Differs: "Not in Redis. SIGHUP does the same."},
		{
			Name: "set", Arity: -6, Flags: changing, Long: true, // as EXEC waits for the disk
			Complexity: perLimit,
			Summary:    "Defines or changes a named limit",
			Args: []Arg{
				name,
				{Name: "window", Type: "block", Multiple: true, Args: []Arg{
					integer("max_burst"),
					integer("count_per_period"),
					integer("period"),
				}},
				optional(token("SHADOW")),
			},
			Differs: notInFile + "Windows keep their state by their periods, which must differ. At most 1,024 limits of 16 windows. " +
				"With --data-dir it replies once the change is on the disk.",
		},
	}
}
