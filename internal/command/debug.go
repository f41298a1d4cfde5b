package command

import (
	"strconv"
	"time"

	"cellserver/internal/resp"
)

// mayDebug refuses DEBUG to whom --enable-debug-command does.
func (s *Session) mayDebug() error {
	if s.engine.config.Debug(s.client.peer) {
		return nil
	}
	return replyError("ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run " +
		"it from a local connection, otherwise you need to start the server with --enable-debug-command")
}

// debugSleep is DEBUG SLEEP seconds. It holds up its own client only.
func debugSleep(s *Session, args [][]byte) error {
	if err := s.mayDebug(); err != nil {
		return err
	}
	sec, err := strconv.ParseFloat(string(args[2]), 64)
	const maxSec = 3600
	if err != nil || !(sec >= 0 && sec <= maxSec) {
		return replyError("ERR DEBUG SLEEP wants from 0 to " + strconv.Itoa(maxSec) + " seconds")
	}
	s.after(time.Duration(sec*float64(time.Second)), func(s *Session) { s.w.OK() })
	return nil
}

// debugProtocol is DEBUG PROTOCOL type, for those who write clients.
func debugProtocol(s *Session, args [][]byte) error {
	if err := s.mayDebug(); err != nil {
		return err
	}
	w := &s.w
	switch lower(args[2]) {
	case "string":
		w.BulkString("Hello World")
	case "integer":
		w.Int(12345)
	case "double":
		w.Double(3.141)
	case "null":
		w.Null()
	case "array":
		w.Array(3)
		for i := range 3 {
			w.Int(int64(i))
		}
	case "set":
		w.Set(3)
		for i := range 3 {
			w.Int(int64(i))
		}
	case "map":
		w.Map(3)
		for i := range 3 {
			w.Int(int64(i))
			w.Bool(i == 1)
		}
	case "attrib":
		if w.RESP3 {
			w.Attribute(1)
			w.BulkString("key-popularity")
			w.Array(2)
			w.BulkString("key:123")
			w.Int(90)
		}
		w.BulkString("Some real reply following the attribute")
	case "push":
		w.Push(2)
		w.BulkString("server-cpu-usage")
		w.Int(42)
	case "bignum":
		w.BigNumber("1234567999999999999999999999999999999")
	case "true":
		w.Bool(true)
	case "false":
		w.Bool(false)
	case "verbatim":
		w.Verbatim("This is a verbatim\nstring")
	default:
		return replyError("ERR Wrong protocol type name. Please use one of the following: string|integer|double|null|array|" +
			"set|map|attrib|push|verbatim|true|false, not '" + resp.Printable(args[2]) + "'")
	}
	return nil
}
