package command

import (
	"strconv"
	"time"

	"cellserver/internal/resp"
)

// debugRows are the subcommands of DEBUG, which to Redis are arguments only: they are in no list.
func debugRows() []*row {
	return []*row{
		{name: "help", arity: 2, run: debugHelp, summary: "Prints this help"},
		{
			name: "protocol", arity: 3, run: debugProtocol, summary: "Replies with an example of a type of the protocol",
			args: []arg{{name: "type", kind: "string"}},
		},
		{
			name: "sleep", arity: 3, run: debugSleep, summary: "Replies after a time",
			args: []arg{{name: "seconds", kind: "double"}},
		},
	}
}

// debugCommand is DEBUG subcommand [arg ...].
func debugCommand(s *Session, args [][]byte) error {
	if err := s.mayDebug(); err != nil {
		return err
	}
	for _, r := range debugRows() {
		if r.name == lower(args[1]) && r.acceptsArity(len(args)) {
			return r.run(s, args)
		}
	}
	return errUnknownOrArity(args)
}

func debugHelp(s *Session, _ [][]byte) error {
	s.replyHelp("debug", debugRows())
	return nil
}

// mayDebug refuses DEBUG to whom --enable-debug-command does.
func (s *Session) mayDebug() error {
	if s.engine.config.Debug(s.client.peer) {
		return nil
	}
	return replyError("ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run " +
		"it from a local connection, otherwise you need to start the server with --enable-debug-command")
}

// debugSleep is DEBUG SLEEP seconds. It holds up its own client only, so it is not for a transaction, which others may
// wait for.
func debugSleep(s *Session, args [][]byte) error {
	if s.inner != outer {
		return errNotInMulti
	}
	sec, err := strconv.ParseFloat(string(args[2]), 64)
	const maxSec = 3600
	if err != nil || !(sec >= 0 && sec <= maxSec) {
		return replyError("ERR DEBUG SLEEP wants from 0 to " + strconv.Itoa(maxSec) + " seconds")
	}
	s.after(time.Duration(sec*float64(time.Second)), func(s *Session) {
		s.aheadNs = int64(sec * float64(time.Second))
		s.w.OK()
	})
	return nil
}

// debugProtocol is DEBUG PROTOCOL type, for those who write clients.
func debugProtocol(s *Session, args [][]byte) error {
	write := protocolExamples()[lower(args[2])]
	if write == nil {
		return replyError("ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|" +
			"array|set|map|attrib|push|verbatim|true|false")
	}
	write(&s.w)
	return nil
}

// protocolExamples are Redis's own.
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
