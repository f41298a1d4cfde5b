package session

import (
	"context"
	"log/slog"
	"sync/atomic"

	"cellserver/internal/decide/clients"
	"cellserver/internal/lua"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
)

// inner is what a session for EXEC or a script has beyond a client's.
type inner struct {
	ctx      context.Context // ends when the client is gone
	declared declared        // of a script
	readOnly bool            // the script is

	lastError string          // of a script's commands
	compiled  compiledScripts // of EXEC
	scripts   *lua.Allowance  // of EXEC
	timedOut  bool            // and a script of EXEC was ended, or not executed, for that
	newKeys   *newKeys        // of all attempts
	apart     *apart          // what is executed, where that is one command of the client; else nil

	// What is left to do when the keys are let go of:

	monitored   []byte // lines for those in MONITOR
	logged      []logLine
	loggedBytes int
	leftOut     int // lines beyond maxLoggedBytes
	killed      []*clients.Client
	unblocked   []unblocked
	looked      lookedAt
	counted     map[*atomic.Uint64]uint64
}

func (in *inner) count(counter *atomic.Uint64, n uint64) {
	if in.counted == nil {
		in.counted = map[*atomic.Uint64]uint64{}
	}
	in.counted[counter] += n
}

// logLine is a line that a script logs.
type logLine struct {
	level   slog.Level
	message string
}

// now is the time that a command sees; in EXEC and in scripts it stands still.
func (s *Session) now() int64 {
	if s.role != outer {
		return s.space.NowNs
	}
	return s.engine.config.Now()
}

// child returns a session for what EXEC or a script executes: as the client's own, with replies of its own.
func (s *Session) child(ctx context.Context, role role, in *transact.Space) *Session {
	return &Session{
		engine:        s.engine,
		user:          s.user,
		authenticated: s.authenticated,
		db:            s.db,
		replies:       s.replies,
		w:             resp.Writer{RESP3: s.w.RESP3},
		role:          role,
		client:        s.client,
		monitored:     s.monitored,
		space:         in,
		inner:         &inner{ctx: ctx},
	}
}

// maxLoggedBytes bounds what a script, or an EXEC, may log.
const maxLoggedBytes = 64 << 10

// log keeps a line until the keys are let go of.
func (in *inner) log(line logLine) {
	if in.loggedBytes += len(line.message); in.loggedBytes <= maxLoggedBytes {
		in.logged = append(in.logged, line)
	} else {
		in.leftOut++
	}
}

// settle does what a session for EXEC or a script has left to do until the keys were let go of; within another such
// session, that one's end is waited for. It may be called in the background.
func (s *Session) settle(in *inner) {
	if s.inner != nil {
		s.keepMonitored(in.monitored)
		for _, line := range in.logged {
			s.inner.log(line)
		}
		s.inner.leftOut += in.leftOut
		s.inner.killed = append(s.inner.killed, in.killed...)
		s.inner.unblocked = append(s.inner.unblocked, in.unblocked...)
		s.inner.looked.all = s.inner.looked.all || in.looked.all
		for _, key := range in.looked.keys {
			s.inner.looked.add(key)
		}
		for counter, n := range in.counted {
			s.inner.count(counter, n)
		}
		return
	}
	s.sendMonitored(in.monitored)
	s.writeLogged(in)
	for _, victim := range in.killed {
		victim.Conn.Kill()
	}
	for _, u := range in.unblocked {
		u.turn.Leave(u.why)
	}
	s.lookAgain(&in.looked)
	for counter, n := range in.counted {
		counter.Add(n)
	}
}

const (
	// headBytes is left in front of what EXEC or a script replies for what a reply begins with.
	headBytes = 64
	// copiedBytes is how much an event loop copies of replies that it could have as they are.
	copiedBytes = 64 << 10
)

// takeOver appends what EXEC or a script has replied behind headBytes of room.
func (s *Session) takeOver(replies []byte) {
	if head := len(s.w.Buf); head <= headBytes && len(replies) > copiedBytes {
		whole := replies[headBytes-head:]
		copy(whole, s.w.Buf)
		s.w.Buf = whole
		return
	}
	s.w.Buf = append(s.w.Buf, replies[headBytes:]...)
}
