package command

func connectionRows() []*row {
	connection := []string{"connection"}
	return []*row{
		{
			name: "auth", arity: -2, flags: transacting | flagNoAuth | flagNoMulti, categories: connection, run: auth,
			group: "connection", since: "1.0.0", complexity: "O(1)",
			summary: "Authenticates the connection",
			args:    []arg{{name: "username", kind: "string", optional: true}, {name: "password", kind: "string"}},
			differs: "A wrong password is answered after a pause, which gets longer with each; not in a transaction.",
		},
		{
			name: "client", arity: -2, subs: clientRows(),
			group: "connection", since: "2.4.0", complexity: "Depends on subcommand",
			summary: "A container for client connection commands",
		},
		{
			name: "echo", arity: 2, flags: anyTime, categories: connection, run: echo,
			group: "connection", since: "1.0.0", complexity: "O(1)",
			summary: "Replies with its argument",
			args:    []arg{{name: "message", kind: "string"}},
		},
		{
			name: "hello", arity: -1, flags: transacting | flagNoAuth | flagNoMulti, categories: connection, run: hello,
			group: "connection", since: "6.0.0", complexity: "O(1)",
			summary: "Chooses the protocol version, and may authenticate and name the connection",
			args: []arg{{name: "arguments", kind: "block", optional: true, args: []arg{
				{name: "protover", kind: "integer"},
				{name: "username_password", kind: "block", token: "AUTH", optional: true, args: []arg{
					{name: "username", kind: "string"}, {name: "password", kind: "string"},
				}},
				{name: "clientname", kind: "string", token: "SETNAME", optional: true},
			}}},
			differs: "Not in a transaction.",
		},
		{
			name: "ping", arity: -1, flags: flagFast, categories: connection, run: ping,
			group: "connection", since: "1.0.0", complexity: "O(1)",
			summary: "Replies PONG, or its argument",
			args:    []arg{{name: "message", kind: "string", optional: true}},
		},
		{
			name: "quit", arity: -1, flags: transacting | flagNoAuth | flagNotQueued, categories: connection, run: quit,
			group: "connection", since: "1.0.0", complexity: "O(1)",
			summary: "Closes the connection",
		},
		{
			name: "reset", arity: 1, flags: transacting | flagNoAuth | flagNotQueued, categories: connection, run: reset,
			group: "connection", since: "6.2.0", complexity: "O(1)",
			summary: "Makes the connection as if it were new",
		},
		{
			name: "select", arity: 2, flags: anyTime, categories: connection, run: selectDB,
			group: "connection", since: "1.0.0", complexity: "O(1)",
			summary: "Chooses the database of the connection",
			args:    []arg{{name: "index", kind: "integer"}},
		},
	}
}

func clientRows() []*row {
	return append(clientSelfRows(), clientOthersRows()...)
}

// clientSelfRows are about the connection itself.
func clientSelfRows() []*row {
	connection := []string{"connection"}
	help := helpRow()
	help.categories = connection
	yesNoArg := func(name, yes, no string) []arg {
		return []arg{{name: name, kind: "oneof", args: []arg{
			{name: lower([]byte(yes)), kind: "pure-token", token: yes}, {name: lower([]byte(no)), kind: "pure-token", token: no},
		}}}
	}
	return []*row{
		{
			name: "caching", arity: 3, flags: asIs, categories: connection, run: clientCaching,
			since: "6.0.0", complexity: "O(1)", summary: "Refuses to let the client cache what it reads next",
			args: yesNoArg("mode", "YES", "NO"), differs: "YES is an error: nothing is cached here.",
		},
		{
			name: "getname", arity: 2, flags: asIs, categories: connection, run: clientGetName,
			since: "2.6.9", complexity: "O(1)", summary: "Returns the connection's name",
		},
		{
			name: "getredir", arity: 2, flags: asIs, categories: connection, run: clientGetRedir,
			since: "6.0.0", complexity: "O(1)", summary: "Returns the client that is told of changes",
		},
		help,
		{
			name: "id", arity: 2, flags: asIs, categories: connection, run: clientID,
			since: "5.0.0", complexity: "O(1)", summary: "Returns the connection's number",
		},
		{
			name: "info", arity: 2, flags: asIs, categories: connection, long: true, run: clientInfoCommand,
			since: "6.2.0", complexity: "O(1)", summary: "Returns what is known of the connection",
		},
		{
			name: "no-touch", arity: 3, flags: asIs, categories: connection, run: clientNoTouch,
			since: "7.2.0", complexity: "O(1)", summary: "Is accepted: no command here changes when a key was used",
			args: yesNoArg("enabled", "ON", "OFF"),
		},
		{
			name: "reply", arity: 3, flags: asIs, categories: connection, run: clientReply,
			since: "3.2.0", complexity: "O(1)", summary: "Chooses whether commands are replied to",
			args: []arg{{name: "action", kind: "oneof", args: []arg{
				{name: "on", kind: "pure-token", token: "ON"}, {name: "off", kind: "pure-token", token: "OFF"},
				{name: "skip", kind: "pure-token", token: "SKIP"},
			}}},
		},
		{
			name: "setinfo", arity: 4, flags: asIs, categories: connection, run: clientSetInfo,
			since: "7.2.0", complexity: "O(1)", summary: "Tells the client library's name or version",
			args: []arg{{name: "attr", kind: "oneof", args: []arg{
				{name: "libname", kind: "string", token: "LIB-NAME"},
				{name: "libver", kind: "string", token: "LIB-VER"},
			}}},
		},
		{
			name: "setname", arity: 3, flags: asIs, categories: connection, run: clientSetName,
			since: "2.6.9", complexity: "O(1)", summary: "Names the connection",
			args: []arg{{name: "connection-name", kind: "string"}},
		},
		{
			name: "tracking", arity: -3, flags: asIs, categories: connection, run: clientTracking,
			since: "6.0.0", complexity: "O(1)", summary: "Is accepted: no key is ever worth caching",
			args: append(yesNoArg("status", "ON", "OFF"),
				arg{name: "prefix", kind: "string", token: "PREFIX", optional: true, multiple: true},
				arg{name: "bcast", kind: "pure-token", token: "BCAST", optional: true},
				arg{name: "optin", kind: "pure-token", token: "OPTIN", optional: true},
				arg{name: "optout", kind: "pure-token", token: "OPTOUT", optional: true},
				arg{name: "noloop", kind: "pure-token", token: "NOLOOP", optional: true}),
			differs: "No key is tracked and no invalidation sent; REDIRECT is refused.",
		},
		{
			name: "trackinginfo", arity: 2, flags: asIs, categories: connection, run: clientTrackingInfo,
			since: "6.2.0", complexity: "O(1)", summary: "Returns what CLIENT TRACKING was told",
		},
	}
}

// clientOthersRows are about other connections, too.
func clientOthersRows() []*row {
	connection := []string{"connection"}
	filter := func(name, kind, token string) arg { return arg{name: name, kind: kind, token: token} }
	return []*row{
		{
			name: "kill", arity: -3, flags: byAdmin, categories: connection, long: true, run: clientKill,
			since: "2.4.0", complexity: "O(N) in the number of clients", summary: "Ends connections",
			args: []arg{{name: "filter", kind: "oneof", multiple: true, args: []arg{
				filter("ip:port", "string", ""), filter("client-id", "integer", "ID"), filter("type", "string", "TYPE"),
				filter("username", "string", "USER"), filter("addr", "string", "ADDR"), filter("laddr", "string", "LADDR"),
				filter("yes|no", "string", "SKIPME"),
			}}},
		},
		{
			name: "list", arity: -2, flags: byAdmin, categories: connection, long: true, run: clientList,
			since: "2.4.0", complexity: "O(N) in the number of clients", summary: "Lists the connections",
			differs: "Has the fields of Redis 7.2; an ID that is given twice is listed once.",
			args: []arg{{name: "filter", kind: "oneof", optional: true, args: []arg{
				filter("type", "string", "TYPE"), {name: "client-id", kind: "integer", token: "ID", multiple: true},
			}}},
		},
		{
			name: "no-evict", arity: 3, flags: byAdmin, categories: connection, run: clientNoEvict,
			since: "7.0.0", complexity: "O(1)", summary: "Is accepted: no client is evicted",
			args: []arg{{name: "enabled", kind: "oneof", args: []arg{
				{name: "on", kind: "pure-token", token: "ON"}, {name: "off", kind: "pure-token", token: "OFF"},
			}}},
		},
		{
			name: "unblock", arity: -3, flags: byAdmin, categories: connection, run: clientUnblock,
			since: "5.0.0", complexity: "O(1)", summary: "Replies 0: no command blocks its client",
			args: []arg{{name: "client-id", kind: "integer"}, {name: "unblock-type", kind: "oneof", optional: true, args: []arg{
				{name: "timeout", kind: "pure-token", token: "TIMEOUT"}, {name: "error", kind: "pure-token", token: "ERROR"},
			}}},
		},
	}
}
