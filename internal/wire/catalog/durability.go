package catalog

func durabilityRows() []*Command {
	const (
		byOperator = FlagAdmin | FlagNoScript
		noDataDir  = "Refused without --data-dir."
	)
	return []*Command{
		{Name: "bgrewriteaof", Arity: 1, Flags: byOperator | FlagNotWithKeys,
			Since: "1.0.0", Summary: "Writes a snapshot in the background, which replaces the logs",
			Differs: "The same as BGSAVE. " + noDataDir},
		{
			Name: "bgsave", Arity: -1, Flags: byOperator | FlagNotWithKeys,
			Since: "1.0.0", Summary: "Writes a snapshot in the background",
			Args:    []Arg{optional(token("SCHEDULE"))},
			Differs: "While a snapshot is being written, SCHEDULE writes another one after it. " + noDataDir,
		},
		{
			Name: "save", Arity: 1, Flags: byOperator | FlagNoMulti,
			Since: "1.0.0", Complexity: "O(N) in the number of keys",
			Summary: "Writes a snapshot, and replies when it is on the disk",
			Differs: "Other clients do not wait. The error says why it failed. " + noDataDir,
		},
		{
			Name: "waitaof", Arity: 4, Flags: FlagNoScript, Categories: []string{"connection"},
			Group: "generic", Since: "7.2.0",
			Summary: "Replies when all earlier changes are on the disk: 1 or 0, and 0 replicas",
			Args: []Arg{
				integer("numlocal"), integer("numreplicas"), integer("timeout"),
			},
			Differs: "It is about the changes of all clients, does not wait for replicas, and is not allowed in scripts. With numlocal 0, and in a " +
				"transaction, it replies at once, and 1 only with --fsync-interval=0.",
		},
	}
}
