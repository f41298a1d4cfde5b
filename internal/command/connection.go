package command

import (
	"crypto/sha256"
	"crypto/subtle"
	"math"
	"strings"

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
	s.w.OK()
	s.status = Close
	return nil
}

func reset(s *Session, _ [][]byte) error {
	s.db, s.name, s.w.RESP3 = 0, "", false
	s.setAuthenticated(s.engine.config.Password == "")
	s.w.Status("RESET")
	return nil
}

func selectDB(s *Session, args [][]byte) error {
	n, ok := resp.ParseInt(args[1])
	switch {
	case !ok:
		return errNotInteger
	case n < math.MinInt32 || n > math.MaxInt32:
		return errInt32
	case n < 0 || n >= int64(s.engine.config.Databases):
		return errDBRange
	}
	s.db = uint16(n)
	s.w.OK()
	return nil
}

func auth(s *Session, args [][]byte) error {
	switch len(args) {
	case 2:
		if s.engine.config.Password == "" {
			return errNoPassword
		}
		if !s.login([]byte(defaultUser), args[1]) {
			return errWrongPass
		}
	case 3:
		if !s.login(args[1], args[2]) {
			return errWrongPass
		}
	default:
		return errSyntax
	}
	s.w.OK()
	return nil
}

const defaultUser = "default"

// login authenticates the client as the default user, the only one there is. Without a password any is right.
func (s *Session) login(user, password []byte) bool {
	want := s.engine.config.Password
	given, wanted := sha256.Sum256(password), sha256.Sum256([]byte(want))
	if string(user) != defaultUser || want != "" && subtle.ConstantTimeCompare(given[:], wanted[:]) != 1 {
		return false
	}
	s.setAuthenticated(true)
	return true
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
			if !s.login(args[i+1], args[i+2]) {
				return errWrongPass
			}
			i += 2
		case left >= 1 && lower(args[i]) == "setname":
			if err := checkClientText("Client names", args[i+1]); err != nil {
				return err
			}
			s.name = string(args[i+1]) // whatever is wrong behind it, as in Redis
			i++
		default:
			return replyError("ERR Syntax error in HELLO option '" + resp.Printable(args[i]) + "'")
		}
	}
	if !s.authenticated {
		return errHelloNoAuth
	}
	s.w.RESP3 = resp3
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
	s.w.Int(s.id)
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
