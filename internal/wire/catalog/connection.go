package catalog

func connectionRows() []*Command {
	return []*Command{
		{
			Name: "auth", Arity: -2, Flags: transacting | FlagNoAuth | FlagNoMulti,
			Since: "1.0.0", Summary: "Authenticates the connection",
			Args:    []Arg{optional(text("username")), text("password")},
			Differs: "The reply to a wrong password is delayed, longer after each failure. Not allowed in a transaction.",
		},
		container("client", "2.4.0", "client connection commands", append(clientSelfRows(), clientOthersRows()...)),
		{Name: "echo", Arity: 2, Flags: anyTime,
			Since: "1.0.0", Summary: "Returns its argument",
			Args: []Arg{text("message")}},
		{
			Name: "hello", Arity: -1, Flags: transacting | FlagNoAuth | FlagNoMulti,
			Since:   "6.0.0",
			Summary: "Selects the protocol version; can also authenticate and name the connection",
			Args: []Arg{optional(block("arguments", integer("protover"), optional(option("AUTH", block("username_password", text("username"), text("password")))),
				optional(option("SETNAME", text("clientname")))))},
			Differs: "Not allowed in a transaction.",
		},
		{Name: "ping", Arity: -1, Flags: FlagFast,
			Since: "1.0.0", Summary: "Returns PONG or its argument",
			Args: []Arg{optional(text("message"))}},
		{Name: "quit", Arity: -1, Flags: transacting | FlagNoAuth | FlagNotQueued,
			Since: "1.0.0", Summary: "Closes the connection"},
		{Name: "reset", Arity: 1, Flags: transacting | FlagNoAuth | FlagNotQueued,
			Since: "6.2.0", Summary: "Resets the connection to its initial state"},
		{Name: "select", Arity: 2, Flags: anyTime,
			Since: "1.0.0", Summary: "Selects the database of the connection",
			Args: []Arg{integer("index")}},
	}
}

// clientSelfRows are about the own connection.
func clientSelfRows() []*Command {
	return []*Command{
		{Name: "caching", Arity: 3, Flags: asIs,
			Since: "6.0.0", Summary: "Selects whether the next keys are tracked: they never are",
			Args: []Arg{oneOf("mode", token("YES"), token("NO"))}, Differs: "YES is an error, and so is what it is about: the next command or transaction with keys or a script."},
		{Name: "getname", Arity: 2, Flags: asIs,
			Since: "2.6.9", Summary: "Returns the connection's name"},
		{Name: "getredir", Arity: 2, Flags: asIs,
			Since: "6.0.0", Summary: "Returns the client that receives invalidations"},
		{Name: "id", Arity: 2, Flags: asIs,
			Since: "5.0.0", Summary: "Returns the connection's ID"},
		{Name: "info", Arity: 2, Flags: asIs, Long: true,
			Since: "6.2.0", Summary: "Describes the connection"},
		{Name: "no-touch", Arity: 3, Flags: asIs,
			Since: "7.2.0", Summary: "Accepted without effect: keys have no access time",
			Args: []Arg{oneOf("enabled", token("ON"), token("OFF"))}},
		{Name: "reply", Arity: 3, Flags: asIs,
			Since: "3.2.0", Summary: "Turns replies on or off",
			Args: []Arg{oneOf("action", token("ON"), token("OFF"), token("SKIP"))}},
		{Name: "setinfo", Arity: 4, Flags: asIs,
			Since: "7.2.0", Summary: "Sets the name or version of the client library",
			Args: []Arg{oneOf("attr", option("LIB-NAME", text("libname")), option("LIB-VER", text("libver")))}},
		{Name: "setname", Arity: 3, Flags: asIs,
			Since: "2.6.9", Summary: "Names the connection",
			Args: []Arg{text("connection-name")}},
		{
			Name: "tracking", Arity: -3, Flags: asIs,
			Since: "6.0.0", Summary: "Accepts the mode OPTIN, without effect: keys are not tracked",
			Args:    []Arg{oneOf("status", token("ON"), token("OFF")), optional(token("OPTIN"))},
			Differs: "No invalidation is ever sent, so every other mode and option is an error. HELLO with a version turns it off.",
		},
		{Name: "trackinginfo", Arity: 2, Flags: asIs,
			Since: "6.2.0", Summary: "Returns the options of CLIENT TRACKING"},
	}
}

// clientOthersRows need admin rights.
func clientOthersRows() []*Command {
	return []*Command{
		{
			Name: "kill", Arity: -3, Flags: byAdmin, Long: true,
			Cost:  Cost{Client: 3000},
			Since: "2.4.0", Complexity: "O(N) in the number of clients", Summary: "Closes connections", Differs: "At most 64 filters.",
			Args: []Arg{multiple(oneOf("filter", text("ip:port"), option("ID", integer("client-id")), option("TYPE", text("type")),
				option("USER", text("username")), option("ADDR", text("addr")), option("LADDR", text("laddr")),
				option("SKIPME", text("yes|no"))))},
		},
		{
			Name: "list", Arity: -2, MaxArgs: 3 + maxListed, Flags: byAdmin,
			Long: true, Cost: Cost{Client: 5000},
			Since: "2.4.0", Complexity: "O(N) in the number of clients", Summary: "Lists the connections",
			Differs: "Has the fields of Redis 7.2. At most 10,000 IDs; " +
				"one that is given twice is listed once. Memory is exact to a KiB.",
			Args: []Arg{optional(oneOf("filter", option("TYPE", text("type")), multiple(option("ID", integer("client-id")))))},
		},
		{Name: "no-evict", Arity: 3, Flags: byAdmin,
			Since: "7.0.0", Summary: "Exempts the connection from --maxmemory-clients, or no longer",
			Args: []Arg{oneOf("enabled", token("ON"), token("OFF"))}},
		{Name: "unblock", Arity: -3, Flags: byAdmin,
			Since: "5.0.0", Summary: "Ends the wait of a client in a command that blocks, as if its time had run out, or by an error",
			Args: []Arg{integer("client-id"), optional(oneOf("unblock-type", token("TIMEOUT"), token("ERROR")))}},
	}
}

// The channels.
const (
	// SentinelChannel is where Redis Sentinels that watch this server find one another.
	SentinelChannel = "__sentinel__:hello"
	// StackExchangeChannel is where clients of StackExchange.Redis tell one another of a new leader. They
	// subscribe to it whenever they connect.
	StackExchangeChannel = "__Booksleeve_MasterChanged"
)

// RefuseChannel is the reason to refuse any other channel, and the commands for them.
const RefuseChannel = "cellserver has no publish and subscribe, except on the channels " + SentinelChannel + " and " +
	StackExchangeChannel + "; use Redis for that"

// MaxMessageBytes bounds a message. Sentinel's have at most 1,100 bytes.
const MaxMessageBytes = 4 << 10

// pubSubRows are what Sentinel and StackExchange.Redis need. Others are refused.
func pubSubRows() []*Command {
	const alone = "Only on the channels " + SentinelChannel + " and " + StackExchangeChannel
	return []*Command{
		{
			Name: "publish", Arity: 3, Flags: anyTime | FlagPubSub,
			Since: "2.0.0", Complexity: "O(N) in the number of subscribers", Summary: "Posts a message to a channel of Redis Sentinel or StackExchange.Redis",
			Args: []Arg{text("channel"), text("message")},
			Differs: alone + ". A message has at most 4,096 bytes and no line breaks. One to the own connection comes " +
				"behind the reply. At most 1 MiB in a script or a transaction: of what is beyond it there are 0 receivers.",
		},
		{
			Name: "subscribe", Arity: -2, Flags: asIs | FlagPubSub,
			Since: "2.0.0", Complexity: "O(N) in the number of channels", Summary: "Listens for messages on channels of Redis Sentinel or StackExchange.Redis",
			Args: []Arg{multiple(text("channel"))},
			Differs: alone + ", and not in a transaction. A client that falls too far behind is disconnected. Messages are in order by channel. " +
				"CLIENT REPLY OFF suppresses its reply, though not the messages.",
		},
		{
			Name: "unsubscribe", Arity: -1, Flags: asIs | FlagPubSub,
			Since: "2.0.0", Complexity: "O(N) in the number of channels", Summary: "Stops listening for messages",
			Args:    []Arg{optional(multiple(text("channel")))},
			Differs: "Not in a transaction.",
		},
	}
}
