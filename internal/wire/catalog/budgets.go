package catalog

// heldSteps bounds a pass over a key with 4,096 holds: a request copies and decides it, and then decides and
// writes it once more. Each key of a call takes that.
const heldSteps = 150_000

// budgetRow completes the row of a command on the holds of counted pairs.
func budgetRow(c Command, countedAt, with int, args ...Arg) *Command {
	c.Flags |= FlagWrite | FlagModule | FlagMovableKeys
	c.Since = "0.4.0"
	c.Keys = KeySpec{Counted: countedAt, With: with, Pairs: true, Flags: []string{"RW", "access", "update"}}
	c.Complexity = "O(N) in the number of keys and of their holds, of which a key has at most 4,096 open ones"
	c.Cost = Cost{Call: 5000, Key: heldSteps} // Call is for the undo log of a transaction on all keys
	c.Args = args
	return &c
}

func budgetRows() []*Command {
	pair := func(more ...Arg) Arg {
		return multiple(block("pair", append([]Arg{text("name"), text("key")}, more...)...))
	}
	return []*Command{
		budgetRow(Command{
			Name: "cl.mreserve", Arity: -7, Flags: FlagDenyOOM,
			Summary: "Holds units of several keys under names of limits, of all or of none, until CL.MCOMMIT reports how many were " +
				"used: returns the reply of CL.MCHECK with the hold's id, or null if limited, as its last element",
			Differs: "Not in Redis. n is the number of pairs, at most 32, and none twice. The time, of milliseconds or such as 30s, is " +
				"at most 24 hours: then the units return by themselves, with CHARGE they stay charged. A given id has 1 to 32 bytes: the " +
				"same call again while it is open is the same hold; with other arguments, or when its time is over, it is an error. An exact " +
				"sliding window can hold nothing. A key has at most 4,096 open holds, and 288 KiB of them. A limit with max_reservation holds " +
				"at most that share; what is used beyond it is debited by CL.MCOMMIT. " +
				"The keys are those of CL.CHECK.",
		}, 1, 2, integer("n"), pair(integer("units")), option("TTL", text("time")), optional(token("CHARGE")), optional(option("ID", text("id")))),
		budgetRow(Command{
			Name: "cl.mcommit", Arity: -6, Flags: FlagDenyOOM,
			Summary: "Ends a hold of CL.MRESERVE with the units that were used: returns 1; 2 if its time was over; 0, and changes nothing, " +
				"if there is none, or none any more",
			Differs: "Not in Redis. The pairs are those of the CL.MRESERVE, in any order. More units than were held are always debited, even " +
				"beyond the limits. Fewer return the rest, at most what the hold has charged, so it needs no right to CL.RESET the keys and is " +
				"not in @refill. A pair whose key was deleted or evicted meanwhile is debited what was used, if another pair has the " +
				"hold. A hold whose time is over is remembered for a day, the latest 1,024 of a key.",
		}, 2, 2, text("id"), integer("n"), pair(integer("units"))),
		budgetRow(Command{
			Name: "cl.mextend", Arity: -6,
			Summary: "Moves the end of an open hold of CL.MRESERVE to a time from now: returns 1, or 0 if it is not open",
			Differs: "Not in Redis. The time, of milliseconds or such as 30s, is at most 24 hours. The pairs are those of the CL.MRESERVE, in any order.",
		}, 3, 1, text("id"), text("time"), integer("n"), pair()),
	}
}
