package catalog

func blockingRows() []*Command {
	return []*Command{{
		Name: "cl.bthrottle", Arity: 7, Flags: FlagWrite | FlagDenyOOM | FlagFast | FlagModule | FlagBlocking, QuantityAt: 5,
		Keys: oneKey(1, "RW", "access", "update"),
		Summary: "Is CL.THROTTLE that waits for its turn: debits at once and replies when the turn comes, if that is " +
			"within the timeout in seconds, and otherwise is limited at once",
		Differs: notInCell + refundNeedsDel + ". The timeout is a number like that of BLPOP; 0 waits without limit. Clients waiting for a key are " +
			"answered in the order of their calls, and other calls do not overtake them. A client that disconnects, or closes " +
			"its side of the connection, returns its debit, and later ones move up; so do CLIENT UNBLOCK and a graceful " +
			"shutdown, but not a kill of the server. In a transaction or a script, and with a quantity of 0 or less, it never " +
			"waits. " + oomDiffers,
		Args: keyAnd(append(integers("max_burst", "count_per_period", "period", "quantity"),
			Arg{Name: "timeout", Type: "double"})...),
	}}
}
