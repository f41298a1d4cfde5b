package admin

import (
	"strconv"
	"time"

	"cellserver/internal/redis/commands/docs"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

// debugSubs documents DEBUG's subcommands for HELP. As in Redis, the catalog does not list them.
func debugSubs() []*catalog.Command {
	return []*catalog.Command{
		{Name: "help", Summary: "Prints this help"},
		{Name: "protocol", Summary: "Replies with an example of a protocol type", Args: []catalog.Arg{{Name: "type"}}},
		{Name: "sleep", Summary: "Replies after a time", Args: []catalog.Arg{{Name: "seconds"}}},
	}
}

func (k *Server) debug(c execute.Call, conn execute.Connection, args [][]byte) error {
	if !k.MayDebug(conn.Client().Peer) {
		return reply.Error("ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run " +
			"it from a local connection, otherwise you need to start the server with --enable-debug-command")
	}
	switch name := glob.Fold(args[1]); {
	case name == "help" && len(args) == 2:
		docs.ReplyHelp(c.Reply(), "debug", debugSubs())
		return nil
	case name == "protocol" && len(args) == 3:
		return debugProtocol(c, args)
	case name == "sleep" && len(args) == 3:
		return debugSleep(c, args)
	}
	return reply.UnknownOrArity(args)
}

// debugSleep is DEBUG SLEEP seconds. It delays only its own client, so a transaction, which others may wait
// for, refuses it.
func debugSleep(c execute.Call, args [][]byte) error {
	sec, err := strconv.ParseFloat(string(args[2]), 64)
	const maxSec = 3600
	if err != nil || !(sec >= 0 && sec <= maxSec) {
		return reply.Error("ERR DEBUG SLEEP takes 0 to " + strconv.Itoa(maxSec) + " seconds")
	}
	return c.After(time.Duration(sec*float64(time.Second)), execute.Call.OK)
}

func debugProtocol(c execute.Call, args [][]byte) error {
	write := protocolExamples()[glob.Fold(args[2])]
	if write == nil {
		return reply.Error("ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|" +
			"array|set|map|attrib|push|verbatim|true|false")
	}
	write(c.Reply())
	return nil
}

// protocolExamples are Redis's.
func protocolExamples() map[string]func(w *resp.Writer) {
	count := func(w *resp.Writer) {
		for i := range 3 {
			w.Int(int64(i))
		}
	}
	return map[string]func(w *resp.Writer){
		"string":   func(w *resp.Writer) { w.BulkString("Hello World") },
		"integer":  func(w *resp.Writer) { w.Int(12345) },
		"double":   func(w *resp.Writer) { w.Double(3.141) },
		"null":     func(w *resp.Writer) { w.Null() },
		"array":    func(w *resp.Writer) { w.Array(3); count(w) },
		"set":      func(w *resp.Writer) { w.Set(3); count(w) },
		"bignum":   func(w *resp.Writer) { w.BigNumber("1234567999999999999999999999999999999") },
		"true":     func(w *resp.Writer) { w.Bool(true) },
		"false":    func(w *resp.Writer) { w.Bool(false) },
		"verbatim": func(w *resp.Writer) { w.Verbatim("This is a verbatim\nstring") },
		"map": func(w *resp.Writer) {
			w.Map(3)
			for i := range 3 {
				w.Int(int64(i))
				w.Bool(i == 1)
			}
		},
		"attrib": func(w *resp.Writer) {
			if w.RESP3 {
				w.Attribute(1)
				w.BulkString("key-popularity")
				w.Array(2)
				w.BulkString("key:123")
				w.Int(90)
			}
			w.BulkString("Some real reply following the attribute")
		},
		"push": func(w *resp.Writer) {
			w.Push(2)
			w.BulkString("server-cpu-usage")
			w.Int(42)
		},
	}
}
