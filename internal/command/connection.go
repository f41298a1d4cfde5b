package command

import (
	"math"
	"strings"

	"cellserver/internal/peer"
	"cellserver/internal/resp"
)

func ping(s *Session, args [][]byte) error {
	switch len(args) {
	case 1:
		s.w.Status("PONG")
	case 2:
		s.w.Bulk(args[1])
	default:
		return errArity(s.engine.table.lookup(args[0]))
	}
	return nil
}

func echo(s *Session, args [][]byte) error {
	s.w.Bulk(args[1])
	return nil
}

func quit(s *Session, _ [][]byte) error {
	s.endMonitor()
	s.w.OK()
	s.status = peer.Close
	return nil
}

func reset(s *Session, _ [][]byte) error {
	s.endMonitor()
	s.discard()
	s.db, s.replies, s.w.RESP3 = 0, repliesOn, false
	s.client.change(func(i *clientInfo) {
		*i = clientInfo{libName: i.libName, libVersion: i.libVersion, queued: -1}
	})
	s.greet()
	s.w.Status("RESET")
	return nil
}

func selectDB(s *Session, args [][]byte) error {
	db, err := s.database(args[1])
	if err != nil {
		return err
	}
	s.db = db
	if s.inner != inScript { // whose database is its own
		s.client.change(func(i *clientInfo) { i.db = int(db) })
	}
	s.w.OK()
	return nil
}

func (s *Session) database(arg []byte) (db uint16, err error) {
	n, err := s.integer(arg)
	switch {
	case err != nil:
		return 0, err
	case n < math.MinInt32 || n > math.MaxInt32:
		return 0, errInt32
	case n < 0 || n >= int64(s.engine.config.Databases):
		return 0, errDBRange
	}
	return uint16(n), nil
}

// integer reads an argument as Redis does.
func (s *Session) integer(arg []byte) (int64, error) {
	n, ok := resp.ParseInt(arg)
	if !ok {
		return 0, errNotInteger
	}
	return n, nil
}

// hello is HELLO [protover [AUTH username password] [SETNAME clientname]].
func hello(s *Session, args [][]byte) error {
	resp3 := s.w.RESP3
	if len(args) > 1 {
		version, ok := resp.ParseInt(args[1])
		switch {
		case !ok:
			return errProtoNotInteger
		case version != 2 && version != 3:
			return errProtoVersion
		}
		resp3 = version == 3
	}
	for i := 2; i < len(args); i++ {
		switch left := len(args) - i - 1; {
		case left >= 2 && lower(args[i]) == "auth":
			if !s.login(args[0], args[i+1], args[i+2]) {
				s.delayed(errWrongPass)
				return nil
			}
			i += 2
		case left >= 1 && lower(args[i]) == "setname":
			if err := s.setName(args[i+1]); err != nil { // whatever is wrong behind it, as in Redis
				return err
			}
			i++
		default:
			return replyError("ERR Syntax error in HELLO option '" + resp.Printable(args[i]) + "'")
		}
	}
	if !s.authenticated {
		return errHelloNoAuth
	}
	s.w.RESP3 = resp3
	s.client.change(func(i *clientInfo) { i.resp3 = resp3 })
	s.replyHello()
	return nil
}

func (s *Session) replyHello() {
	protocol := int64(2)
	if s.w.RESP3 {
		protocol = 3
	}
	s.w.Map(7)
	s.w.BulkString("server")
	s.w.BulkString("redis")
	s.w.BulkString("version")
	s.w.BulkString(RedisVersion)
	s.w.BulkString("proto")
	s.w.Int(protocol)
	s.w.BulkString("id")
	s.w.Int(s.client.id)
	s.w.BulkString("mode")
	s.w.BulkString("standalone")
	s.w.BulkString("role")
	s.w.BulkString("master")
	s.w.BulkString("modules")
	s.replyModules()
}

// maxClientText bounds the names that a client gives itself, which are kept for as long as it is connected.
const maxClientText = 1 << 10

// checkClientText refuses what would not be one word in CLIENT INFO.
func checkClientText(what string, text []byte) error {
	if len(text) > maxClientText {
		return replyError("ERR " + what + " cannot be longer than 1024 bytes.")
	}
	if strings.ContainsFunc(string(text), func(r rune) bool { return r < '!' || r > '~' }) {
		return replyError("ERR " + what + " cannot contain spaces, newlines or special characters.")
	}
	return nil
}
