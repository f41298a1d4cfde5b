package catalog

// SentinelChannel is the one channel: on it Redis Sentinels that watch this server find one another.
const SentinelChannel = "__sentinel__:hello"

// RefuseChannel is the reason to refuse any other channel, and the commands for them.
const RefuseChannel = "cellserver has no publish and subscribe, except on Sentinel's channel " + SentinelChannel + "; use Redis for that"

// MaxMessageBytes bounds a message. Sentinel's have at most 1,100 bytes.
const MaxMessageBytes = 4 << 10

// pubSubRows are what Sentinel needs. Others are refused.
func pubSubRows() []*Command {
	const alone = "Only on the channel " + SentinelChannel
	return []*Command{
		{
			Name: "publish", Arity: 3, Flags: anyTime | FlagPubSub,
			Since: "2.0.0", Complexity: "O(N) in the number of subscribers", Summary: "Posts a message to Redis Sentinel's channel",
			Args: []Arg{text("channel"), text("message")},
			Differs: alone + ". A message has at most 4,096 bytes and no line breaks. One to the own connection comes " +
				"behind the reply. At most 1 MiB in a script or a transaction: of what is beyond it there are 0 receivers.",
		},
		{
			Name: "subscribe", Arity: -2, Flags: asIs | FlagPubSub,
			Since: "2.0.0", Complexity: "O(N) in the number of channels", Summary: "Listens for messages on Redis Sentinel's channel",
			Args: []Arg{multiple(text("channel"))},
			Differs: alone + ", and not in a transaction. A client that falls too far behind is disconnected. " +
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
