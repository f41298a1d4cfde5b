package catalog

func blockingRows() []*Command {
	return []*Command{{
		Name: "cl.bthrottle", Arity: 7, Flags: FlagWrite | FlagDenyOOM | FlagFast | FlagModule | FlagBlocking, QuantityAt: 5,
		Keys: oneKey(1, "RW", "access", "update"),
		Summary: "Is CL.THROTTLE that waits instead of its client: it debits at once if its turn comes within the timeout, in seconds, and " +
			"replies when that time has come; else it is limited at once",
		Differs: notInCell + refundNeedsDel + ". The timeout is a number as that of BLPOP, and 0 waits for as long as it takes. Those who " +
			"wait for a key are answered in the order in which they came, and other calls do not overtake them. Who disconnects, or only " +
			"closes its side of the connection, gives back what was debited, and those behind move up; so do CLIENT UNBLOCK and a graceful " +
			"shutdown, but not a kill of the server. In a transaction or a script, and with a quantity of 0 or less, it never waits. " + oomDiffers,
		Args: keyAnd(append(integers("max_burst", "count_per_period", "period", "quantity"),
			Arg{Name: "timeout", Type: "double"})...),
	}}
}
