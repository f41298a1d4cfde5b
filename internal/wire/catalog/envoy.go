package catalog

func envoyRows() []*Command {
	const since = "0.4.0"
	help := helpRow()
	help.Since = since
	return []*Command{container("cl.envoy", since, "commands about the limits for Envoy", []*Command{
		help,
		{
			Name: "limits", Arity: -2, Flags: byAdmin, Cost: Cost{Call: 200_000},
			Since: since, Complexity: "O(N) in the number of limits returned, at most 100",
			Summary: "Lists limits for Envoy, by default of all domains: returns the next cursor, 0 at the end, and a map for each: " +
				"domain, descriptor, unit, requests_per_unit, algorithm, name and flags",
			Args: []Arg{optional(text("domain")), optional(option("CURSOR", integer("cursor")))},
			Differs: "Not in Redis. The unit and the number are null if unlimited, the name without one. A cursor is valid until the " +
				"limits are replaced. In RESP2 a map is an array of names and values in turn.",
		},
		{
			Name: "status", Arity: 2, Flags: byAdmin,
			Since: since,
			Summary: "Tells where the limits for Envoy come from (none, files or xds) and how many domains and rules there are; of files " +
				"the directory and whether the last reload failed; of xds the server, whether it is connected, the version and whether that is " +
				"stale, since when, the numbers of versions accepted and rejected, and the last refusal and failure, or null",
			Differs: "Not in Redis.",
		},
	})}
}
