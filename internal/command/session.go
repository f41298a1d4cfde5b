package command

import (
	"sync/atomic"
	"time"

	"cellserver/internal/acl"
	"cellserver/internal/peer"
	"cellserver/internal/resp"
	"cellserver/internal/shard"
	"cellserver/internal/topkeys"
)

// Session is one client's conversation: bytes in, bytes out. It knows no socket. It is for one goroutine at a
// time.
type Session struct {
	// What every command needs comes first: with thousands of clients each cache line is a wait for memory.
	engine        *Engine
	scratch       *scratch // only during Feed
	user          *acl.User
	space         keySpace     // what EXEC and scripts have of the store; else nil
	multi         *transaction // between MULTI and EXEC; else nil
	decoder       resp.Decoder
	w             resp.Writer
	db            uint16
	authenticated bool
	inner         innerKind
	replies       replyMode
	repliesAsked  bool // by CLIENT REPLY ON, since a command began whose reply is not wanted
	status        peer.Status
	monitored     bool // somebody is in MONITOR
	// waiting is what the last command still has to do: it appends its reply and returns true, or returns false
	// to be called again after the next wake-up.
	waiting func(*Session) bool

	conn         peer.Conn
	client       *client
	gone         atomic.Bool  // the client; what has not begun for it need not
	row          *row         // whose command runs or waits
	beganNs      int64        // when it was sent, if it waits
	handedNs     int64        // when its handler left the rest to others, if it waits
	watch        *shard.Watch // nil without WATCH
	watched      []shard.Key
	watchedBytes int          // of their names
	monitor      *monitor     // nil without MONITOR
	pending      *pendingCall // that waiting is for
	aheadNs      int64        // how long what it waited for has taken

	// Of a session for EXEC or a script:

	spaceNs  int64       // the time of the space
	keys     []shard.Key // that a script has declared
	readOnly bool        // the script is
	told     []byte      // for MONITOR, when it is done

	lastError   string        // of a script's commands
	scriptsTime time.Duration // that the scripts of EXEC have taken
}

// innerKind says what a session executes for; EXEC and scripts have one of their own.
type innerKind uint8

const (
	outer innerKind = iota // a client's own commands
	inExec
	inScript
)

// scratch is what a session needs only while it executes; sessions share them.
type scratch struct {
	args    [][]byte
	batch   []shard.Request
	tally   *tally
	sampler topkeys.Sampler
}

const (
	// feedBytes is where Feed stops so that its replies can be sent, so that a short input with long replies
	// cannot fill the memory.
	feedBytes = 64 << 10

	maxBatch       = 128
	maxScratchArgs = 64
)

// Authenticated reports whether the client has given the password, or there is none.
func (s *Session) Authenticated() bool { return s.authenticated }

// Name returns what the client calls itself, empty at first.
func (s *Session) Name() string { return s.client.snapshot().name }

// HungUp implements peer.Session.
func (s *Session) HungUp(peer.Hangup) {}

// Close ends the session; its driver calls it once, when the connection has ended, and feeds it no more.
func (s *Session) Close() {
	s.gone.Store(true) // before its watch ends: see execution.execute
	s.waiting = nil    // or what it waits for would stay for as long as something may wake it
	s.unwatch()
	s.endMonitor()
	s.engine.clients.remove(s.client)
}

// Feed executes the commands at the front of in and appends their replies to out. It returns how many bytes of in
// it consumed, and out. What it has not consumed must stand at the front of in the next time. It may change in.
func (s *Session) Feed(in, out []byte) (consumed int, replies []byte, status peer.Status) {
	s.w.Buf = out
	s.status = peer.NeedInput
	s.borrow()
	defer s.endFeed()
	if s.waiting != nil && !s.resume() {
		return 0, s.w.Buf, peer.Waiting
	}
	s.monitored = s.engine.monitors.any.Load() // only now: what is done aside reads it
	most := len(out) + feedBytes
	if !s.authenticated {
		most = len(out) + peer.UnauthenticatedOutput
	}
	for s.status == peer.NeedInput {
		if len(s.w.Buf) >= most {
			s.status = peer.More
			break
		}
		n, args, err := s.decoder.Next(in[consumed:], s.scratch.args)
		if err != nil {
			s.engine.protocolErrors.Add(1)
			s.failInput(err)
			s.status = peer.Close
		}
		if n == 0 {
			break
		}
		consumed += n
		s.scratch.args = args
		if len(args) > 0 {
			s.execute(args)
		} else if s.replies == repliesSkipNext {
			s.replies = repliesOn // to Redis, nothing is a command, too
		}
	}
	s.flush()
	if s.monitored {
		s.sendLines()
	}
	return consumed, s.w.Buf, s.status
}

func (s *Session) endFeed() {
	s.w.Buf = nil
	s.giveBack()
}

func (s *Session) borrow() { s.scratch = s.engine.scratch.Get().(*scratch) }

// giveBack leaves nothing in the scratch that refers to the input, whose buffer it would keep alive.
func (s *Session) giveBack() {
	clear(s.scratch.batch) // not empty after a panic
	s.scratch.batch = s.scratch.batch[:0]
	if cap(s.scratch.args) > maxScratchArgs {
		s.scratch.args = nil
	}
	clear(s.scratch.args[:cap(s.scratch.args)])
	s.engine.scratch.Put(s.scratch)
	s.scratch = nil
}

func (s *Session) execute(args [][]byte) {
	if s.replies != repliesOn {
		s.executeMuted(args)
		return
	}
	s.dispatch(args)
}

func (s *Session) dispatch(args [][]byte) {
	r, args, err := s.admit(args)
	switch {
	case err != nil:
		s.reject(r, err)
	case s.monitored && s.monitor != nil && r.flags&(flagWrite|flagReadonly|flagScript) != 0:
		s.reject(r, errMonitorHasNoKeys)
	case s.multi != nil && r.flags&flagNotQueued == 0:
		s.queue(r, args)
	case s.monitored:
		s.callMonitored(r, args)
	default:
		s.call(r, args)
	}
}

// call executes a command that was admitted.
func (s *Session) call(r *row, args [][]byte) {
	if r.batches { // flush counts those that are well, and reads the clock
		if err := r.run(s, args); err != nil {
			s.scratch.tally.called(r, 1)
			r.stats.failed.Add(1)
			s.fail(err)
		}
		return
	}
	s.flush()
	s.row = r
	beganNs := s.engine.config.Now()
	if s.inner == outer {
		s.client.touch(r, beganNs)
	}
	err := r.run(s, args)
	s.count(r, args, beganNs)
	if err != nil {
		s.failCommand(err)
	}
	if r.long && s.status == peer.NeedInput {
		s.status = peer.More
	}
}

// reject replies to a command that was not admitted; r is nil where there is none of that name.
func (s *Session) reject(r *row, err error) {
	if r != nil {
		r.stats.rejected.Add(1)
	}
	if s.inner == outer {
		s.client.last.Store(r)
	}
	if s.multi != nil {
		s.multi.failed = true
	}
	if r != nil && r.name == "exec" && s.inner == outer {
		s.discard()
		err = errExecAborted(err)
	}
	s.fail(err)
}

// failCommand replies an error of the command that runs, or has waited.
func (s *Session) failCommand(err error) {
	s.row.stats.failed.Add(1)
	s.fail(err)
}

// failInput replies to what is no command, if replies are wanted.
func (s *Session) failInput(err error) {
	s.flush()
	before := len(s.w.Buf)
	s.fail(err)
	if s.replies != repliesOn {
		s.w.Buf = s.w.Buf[:before]
	}
}

func (s *Session) fail(err error) {
	s.flush()
	text := replyText(err)
	s.engine.errors.count(text)
	if s.inner == inScript {
		s.lastError = text
	}
	s.w.Error(text)
}
