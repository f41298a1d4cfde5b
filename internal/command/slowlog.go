package command

import (
	"container/list"
	"sync"
	"sync/atomic"

	"cellserver/internal/resp"
)

// slowlog is what took long of late. It is safe for concurrent use.
type slowlog struct {
	maxLen atomic.Int64

	mu      sync.Mutex // guards all below
	entries list.List  // of slowEntry, the newest first
	lastID  int64
}

// slowEntry is a call, or a batch of them.
type slowEntry struct {
	id, unixSec, us int64
	args            []string
	addr, name      string // of the client
}

// MaxSlowlogLen bounds slowlog-max-len: an entry may be 6 KiB.
const MaxSlowlogLen = 1 << 14

func (l *slowlog) add(e slowEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id = l.lastID
	l.lastID++
	l.entries.PushFront(e)
	for int64(l.entries.Len()) > l.maxLen.Load() {
		l.entries.Remove(l.entries.Back())
	}
}

// latest returns up to n entries, the newest first; all with a negative n.
func (l *slowlog) latest(n int64) []slowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []slowEntry
	for at := l.entries.Front(); at != nil && int64(len(found)) != n; at = at.Next() {
		found = append(found, at.Value.(slowEntry))
	}
	return found
}

func (l *slowlog) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries.Len()
}

func (l *slowlog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries.Init()
}

// slowlogGet is SLOWLOG GET [count].
func slowlogGet(s *Session, args [][]byte) error {
	n := int64(10)
	if len(args) > 3 {
		return replyError("ERR unknown subcommand or wrong number of arguments for '" + resp.Printable(args[1]) + "'. Try SLOWLOG HELP.")
	}
	if len(args) == 3 {
		var ok bool
		if n, ok = resp.ParseInt(args[2]); !ok || n < -1 {
			return replyError("ERR count should be greater than or equal to -1")
		}
	}
	entries := s.engine.slowlog.latest(n)
	s.w.Array(len(entries))
	for _, e := range entries {
		s.w.Array(6)
		s.w.Int(e.id)
		s.w.Int(e.unixSec)
		s.w.Int(e.us)
		s.w.Array(len(e.args))
		for _, arg := range e.args {
			s.w.BulkString(arg)
		}
		s.w.BulkString(e.addr)
		s.w.BulkString(e.name)
	}
	return nil
}

func slowlogLen(s *Session, _ [][]byte) error {
	s.w.Int(int64(s.engine.slowlog.len()))
	return nil
}

func slowlogReset(s *Session, _ [][]byte) error {
	s.engine.slowlog.reset()
	s.w.OK()
	return nil
}
