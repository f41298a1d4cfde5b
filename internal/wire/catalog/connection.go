package catalog

import "strings"

func connectionRows() []*Command {
	connection := []string{"connection"}
	return []*Command{
		{
			Name: "auth", Arity: -2, Flags: transacting | FlagNoAuth | FlagNoMulti, Categories: connection,
			Group: "connection", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Authenticates the connection",
			Args:    []Arg{{Name: "username", Type: "string", Optional: true}, {Name: "password", Type: "string"}},
			Differs: "The reply to a wrong password is delayed, longer after each failure. Not allowed in a transaction.",
		},
		{
			Name: "client", Arity: -2, Subs: clientRows(),
			Group: "connection", Since: "2.4.0", Complexity: "Depends on subcommand",
			Summary: "A container for client connection commands",
		},
		{
			Name: "echo", Arity: 2, Flags: anyTime, Categories: connection,
			Group: "connection", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Returns its argument",
			Args:    []Arg{{Name: "message", Type: "string"}},
		},
		{
			Name: "hello", Arity: -1, Flags: transacting | FlagNoAuth | FlagNoMulti, Categories: connection,
			Group: "connection", Since: "6.0.0", Complexity: "O(1)",
			Summary: "Selects the protocol version; can also authenticate and name the connection",
			Args: []Arg{{Name: "arguments", Type: "block", Optional: true, Args: []Arg{
				{Name: "protover", Type: "integer"},
				{Name: "username_password", Type: "block", Token: "AUTH", Optional: true, Args: []Arg{
					{Name: "username", Type: "string"}, {Name: "password", Type: "string"},
				}},
				{Name: "clientname", Type: "string", Token: "SETNAME", Optional: true},
			}}},
			Differs: "Not allowed in a transaction.",
		},
		{
			Name: "ping", Arity: -1, Flags: FlagFast, Categories: connection,
			Group: "connection", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Returns PONG or its argument",
			Args:    []Arg{{Name: "message", Type: "string", Optional: true}},
		},
		{
			Name: "quit", Arity: -1, Flags: transacting | FlagNoAuth | FlagNotQueued, Categories: connection,
			Group: "connection", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Closes the connection",
		},
		{
			Name: "reset", Arity: 1, Flags: transacting | FlagNoAuth | FlagNotQueued, Categories: connection,
			Group: "connection", Since: "6.2.0", Complexity: "O(1)",
			Summary: "Resets the connection to its initial state",
		},
		{
			Name: "select", Arity: 2, Flags: anyTime, Categories: connection,
			Group: "connection", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Selects the database of the connection",
			Args:    []Arg{{Name: "index", Type: "integer"}},
		},
	}
}

func clientRows() []*Command {
	return append(clientSelfRows(), clientOthersRows()...)
}

// clientSelfRows are about the connection itself.
func clientSelfRows() []*Command {
	connection := []string{"connection"}
	help := helpRow()
	help.Categories = connection
	yesNoArg := func(name, yes, no string) []Arg {
		return []Arg{{Name: name, Type: "oneof", Args: []Arg{
			{Name: strings.ToLower(yes), Type: "pure-token", Token: yes}, {Name: strings.ToLower(no), Type: "pure-token", Token: no},
		}}}
	}
	return []*Command{
		{
			Name: "caching", Arity: 3, Flags: asIs, Categories: connection,
			Since: "6.0.0", Complexity: "O(1)", Summary: "Selects whether the next keys are tracked: they never are",
			Args: yesNoArg("mode", "YES", "NO"), Differs: "YES is an error: keys are not tracked.",
		},
		{
			Name: "getname", Arity: 2, Flags: asIs, Categories: connection,
			Since: "2.6.9", Complexity: "O(1)", Summary: "Returns the connection's name",
		},
		{
			Name: "getredir", Arity: 2, Flags: asIs, Categories: connection,
			Since: "6.0.0", Complexity: "O(1)", Summary: "Returns the client that receives invalidations",
		},
		help,
		{
			Name: "id", Arity: 2, Flags: asIs, Categories: connection,
			Since: "5.0.0", Complexity: "O(1)", Summary: "Returns the connection's ID",
		},
		{
			Name: "info", Arity: 2, Flags: asIs, Categories: connection, Long: true,
			Since: "6.2.0", Complexity: "O(1)", Summary: "Describes the connection",
		},
		{
			Name: "no-touch", Arity: 3, Flags: asIs, Categories: connection,
			Since: "7.2.0", Complexity: "O(1)", Summary: "Accepted without effect: keys have no access time",
			Args: yesNoArg("enabled", "ON", "OFF"),
		},
		{
			Name: "reply", Arity: 3, Flags: asIs, Categories: connection,
			Since: "3.2.0", Complexity: "O(1)", Summary: "Turns replies on or off",
			Args: []Arg{{Name: "action", Type: "oneof", Args: []Arg{
				{Name: "on", Type: "pure-token", Token: "ON"}, {Name: "off", Type: "pure-token", Token: "OFF"},
				{Name: "skip", Type: "pure-token", Token: "SKIP"},
			}}},
		},
		{
			Name: "setinfo", Arity: 4, Flags: asIs, Categories: connection,
			Since: "7.2.0", Complexity: "O(1)", Summary: "Sets the name or version of the client library",
			Args: []Arg{{Name: "attr", Type: "oneof", Args: []Arg{
				{Name: "libname", Type: "string", Token: "LIB-NAME"},
				{Name: "libver", Type: "string", Token: "LIB-VER"},
			}}},
		},
		{
			Name: "setname", Arity: 3, Flags: asIs, Categories: connection,
			Since: "2.6.9", Complexity: "O(1)", Summary: "Names the connection",
			Args: []Arg{{Name: "connection-name", Type: "string"}},
		},
		{
			Name: "tracking", Arity: -3, Flags: asIs, Categories: connection,
			Since: "6.0.0", Complexity: "O(1)", Summary: "Accepted without effect: keys are not tracked",
			Args: append(yesNoArg("status", "ON", "OFF"),
				Arg{Name: "prefix", Type: "string", Token: "PREFIX", Optional: true, Multiple: true},
				Arg{Name: "bcast", Type: "pure-token", Token: "BCAST", Optional: true},
				Arg{Name: "optin", Type: "pure-token", Token: "OPTIN", Optional: true},
				Arg{Name: "optout", Type: "pure-token", Token: "OPTOUT", Optional: true},
				Arg{Name: "noloop", Type: "pure-token", Token: "NOLOOP", Optional: true}),
			Differs: "No invalidation is ever sent; REDIRECT is an error.",
		},
		{
			Name: "trackinginfo", Arity: 2, Flags: asIs, Categories: connection,
			Since: "6.2.0", Complexity: "O(1)", Summary: "Returns the options of CLIENT TRACKING",
		},
	}
}

// clientOthersRows are about other connections, too.
func clientOthersRows() []*Command {
	connection := []string{"connection"}
	filter := func(name, kind, token string) Arg { return Arg{Name: name, Type: kind, Token: token} }
	return []*Command{
		{
			Name: "kill", Arity: -3, Flags: byAdmin, Categories: connection, Long: true,
			Cost:  Cost{Client: 3000},
			Since: "2.4.0", Complexity: "O(N) in the number of clients", Summary: "Closes connections", Differs: "At most 64 filters.",
			Args: []Arg{{Name: "filter", Type: "oneof", Multiple: true, Args: []Arg{
				filter("ip:port", "string", ""), filter("client-id", "integer", "ID"), filter("type", "string", "TYPE"),
				filter("username", "string", "USER"), filter("addr", "string", "ADDR"), filter("laddr", "string", "LADDR"),
				filter("yes|no", "string", "SKIPME"),
			}}},
		},
		{
			Name: "list", Arity: -2, MaxArgs: 3 + maxListed, Flags: byAdmin, Categories: connection,
			Long:  true,
			Cost:  Cost{Client: 5000},
			Since: "2.4.0", Complexity: "O(N) in the number of clients", Summary: "Lists the connections",
			Differs: "Has the fields of Redis 7.2. At most 10,000 IDs; " +
				"one that is given twice is listed once. Memory is exact to a KiB.",
			Args: []Arg{{Name: "filter", Type: "oneof", Optional: true, Args: []Arg{
				filter("type", "string", "TYPE"), {Name: "client-id", Type: "integer", Token: "ID", Multiple: true},
			}}},
		},
		{
			Name: "no-evict", Arity: 3, Flags: byAdmin, Categories: connection,
			Since: "7.0.0", Complexity: "O(1)", Summary: "Exempts the connection from --maxmemory-clients, or no longer",
			Args: []Arg{{Name: "enabled", Type: "oneof", Args: []Arg{
				{Name: "on", Type: "pure-token", Token: "ON"}, {Name: "off", Type: "pure-token", Token: "OFF"},
			}}},
		},
		{
			Name: "unblock", Arity: -3, Flags: byAdmin, Categories: connection,
			Since: "5.0.0", Complexity: "O(1)", Summary: "Ends the wait of a client in a command that blocks, as if its time had run out, or by an error",
			Args: []Arg{{Name: "client-id", Type: "integer"}, {Name: "unblock-type", Type: "oneof", Optional: true, Args: []Arg{
				{Name: "timeout", Type: "pure-token", Token: "TIMEOUT"}, {Name: "error", Type: "pure-token", Token: "ERROR"},
			}}},
		},
	}
}
