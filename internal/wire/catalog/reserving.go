package catalog

const (
	perReservation = "O(N) in the number of the key's open reservations, of which there are at most 4,096"
	perHolder      = "O(N) in the number of the key's holders, of which there are at most 4,096"
	// openSteps bounds a call on a key with 4,096 open reservations or holders, which are copied and searched.
	openSteps = 30_000
)

// openRow completes the row of a command on reservations or holders, with its key at an index.
func openRow(c Command, at int, complexity string, args ...Arg) *Command {
	c.Flags |= FlagModule
	c.Keys = oneKey(at, "RW", "access", "update")
	c.Group, c.Since, c.Complexity = "module", "0.2.0", complexity
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
			Name: "cl.commit", Arity: 4, Flags: FlagWrite,
			Summary: "Ends a reservation of CL.RESERVE with the units that were used: returns 1, or 0 if it is not open",
			Differs: notInCell + "More units than were reserved are always debited, even beyond the capacity. Fewer return the " +
				"rest, at most what the reservation has debited, so it needs no right to DEL the key and is not in @refill: " +
				"reserving and committing never exceed the limit. A second commit of an id changes nothing.",
		}, 1, perReservation, text("id"), integer("actual")),
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
			Args: []Arg{integer("n"), {Name: "limit", Type: "block", Multiple: true, Args: limit}},
		},
		{Name: "cl.concurrency", Arity: -2, Subs: concurrencyRows(),
			Summary: "A container for commands that limit concurrent holders of a key"},
	}
}

func concurrencyRows() []*Command {
	token := text("token")
	limit := Arg{Name: "limit", Type: "block", Optional: true, Args: integers("max", "lease_ms")}
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
			Differs: notInCell + "It needs no right to DEL the key and is not in @refill, as it frees only the place of a known token. max " +
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
