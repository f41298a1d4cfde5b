package command

import (
	"runtime/debug"
	"strconv"
	"time"

	"cellserver/internal/peer"
	"cellserver/internal/resp"
)

func timeCommand(s *Session, _ [][]byte) error {
	now := time.Now()
	if s.inner != outer {
		now = time.Unix(0, s.now()) // stands still, as in Redis
	}
	s.w.Array(2)
	s.w.BulkString(strconv.FormatInt(now.Unix(), 10))
	s.w.BulkString(strconv.Itoa(now.Nanosecond() / 1000))
	return nil
}

func moduleList(s *Session, _ [][]byte) error {
	s.replyModules()
	return nil
}

func (s *Session) replyModules() {
	s.w.Array(1)
	s.w.Map(4)
	s.replyPair("name", moduleName)
	s.w.BulkString("ver")
	s.w.Int(moduleVersion)
	s.replyPair("path", "")
	s.w.BulkString("args")
	s.w.Array(0)
}

func role(s *Session, _ [][]byte) error {
	s.w.Array(3)
	s.w.BulkString("master")
	s.w.Int(0)
	s.w.Array(0)
	return nil
}

// lastSave replies when the server started: there has been nothing to save since.
func lastSave(s *Session, _ [][]byte) error {
	s.w.Int(s.engine.started.Unix())
	return nil
}

// replicaOf is REPLICAOF NO ONE, which is how it is, or a refusal.
func replicaOf(s *Session, args [][]byte) error {
	if lower(args[1]) == "no" && lower(args[2]) == "one" {
		s.w.OK()
		return nil
	}
	return replyError("ERR cellserver has no replication; run it over Redis or Valkey Cluster to share limits between machines")
}

// shutdown is SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [ABORT]. There is nothing to save.
func shutdown(s *Session, args [][]byte) error {
	given := map[string]bool{}
	for _, arg := range args[1:] {
		switch option := lower(arg); option {
		case "nosave", "save", "now", "force", "abort":
			given[option] = true
		default:
			return errSyntax
		}
	}
	if given["abort"] && len(given) > 1 || given["save"] && given["nosave"] {
		return errSyntax
	}
	if given["abort"] {
		return replyError("ERR No shutdown in progress.")
	}
	s.engine.config.Log.Info("a client asked for shutdown", "client", s.client.peer.Addr)
	s.engine.config.Shutdown()
	s.status = peer.Close
	return nil
}

// memoryPurge gives freed memory back to the system.
func memoryPurge(s *Session, _ [][]byte) error {
	s.aside(debug.FreeOSMemory, func(s *Session) { s.w.OK() })
	return nil
}

// waitCommand replies how many replicas have all writes: there are none.
func waitCommand(s *Session, args [][]byte) error {
	if _, err := s.integer(args[1]); err != nil {
		return err
	}
	switch timeoutMs, ok := resp.ParseInt(args[2]); {
	case !ok:
		return replyError("ERR timeout is not an integer or out of range")
	case timeoutMs < 0:
		return replyError("ERR timeout is negative")
	}
	s.w.Int(0)
	return nil
}
