package session

import (
	"cellserver/internal/base/often"
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/observe"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// Session implements peer.Session. It knows no socket.
type Session struct {
	// What every command needs comes first: with thousands of clients each cache line is a wait for memory.
	engine           *Engine
	scratch          *scratch // only during Feed
	user             *acl.User
	space            *transact.Space
	multi            *transact.Queue // between MULTI and EXEC; else nil
	pending          *pending        // the command that is not done; else nil
	unsynced         *unsynced       // replies that wait for the disk; else nil
	decoder          resp.Decoder
	w                resp.Writer
	db               uint16
	authenticated    bool
	role             role
	replies          replyMode
	repliesRequested bool // by CLIENT REPLY ON, since a command began whose reply is not wanted
	status           peer.Status
	monitored        bool // somebody is in MONITOR
	wrote            bool // something has changed that the replies since tell of

	client  *clients.Client
	watched *transact.Watched // nil without WATCH
	monitor *observe.Monitor  // nil without MONITOR
	inner   *inner            // of a session for EXEC or a script; else nil

	scriptLines *often.Rate // that were logged; nil before the first
}

// role is what a session executes for; EXEC and scripts have one of their own.
type role uint8

const (
	outer role = iota // a client's own commands
	inExec
	inScript
	away // a client's own command, in the background: see apart
)

// holdsTime reports whether the time is that of a transaction, which others may wait for.
func (r role) holdsTime() bool { return r == inExec || r == inScript }

// scratch is what a session needs only while it executes; sessions share them.
type scratch struct {
	args  [][]byte
	call  [8][]byte // of a script that is one
	batch []store.Request
	// batchOf is the command whose calls are in the batch.
	batchOf *catalog.Command
	local   observe.Local
	// watchedKeys is how many keys were watched, or are no longer, since the session had its turn.
	watchedKeys int
	// steps is what the batches may have taken, beyond what any does, and the other commands have or may have, since the session had
	// its turn.
	steps     int
	operation limiter.Operation // the one that is done
	setting   store.Setting     // likewise
	joined    []byte            // the names of the batch's keys that are no argument's
	// last is the command that was called last, as it was spelled: the next one is the same, most likely.
	last     *catalog.Command
	lastName []byte
	// limitsNewKeys says that a call may be refused for the key that it would make; a look at that for each would cost more.
	limitsNewKeys bool
	// notesTold says that replies may have to wait for the disk, and told which of them tell of a change.
	notesTold bool
	told      []told
}

const (
	// feedBytes is where Feed stops so that its replies can be sent, so that a short input with long replies
	// cannot fill the memory.
	feedBytes = 64 << 10
	// feedInputBytes is where it stops so that others have their turn: behind a long command a buffer may hold
	// megabytes of others that reply with little, or nothing.
	feedInputBytes = 64 << 10

	// feedSteps is where it stops for the same reason, in nanoseconds or so that its commands take: two milliseconds.
	feedSteps = 2_000_000

	maxBatch       = observe.MaxBatch
	maxScratchArgs = 64
	// maxScratchNameBytes is how large the buffer of joined names is kept: for a batch of them that are not long.
	maxScratchNameBytes = 128 * maxBatch
)

// Authenticated implements peer.Session.
func (s *Session) Authenticated() bool { return s.authenticated }

// Name implements peer.Session.
func (s *Session) Name() string { return s.client.Name() }

// Monitors implements peer.Session.
func (s *Session) Monitors() bool { return s.monitor != nil }

// HoldsInput implements peer.Session.
func (s *Session) HoldsInput(bytes, free int) { s.client.HoldInput(bytes, free) }

// HoldsOutput implements peer.Session.
func (s *Session) HoldsOutput(bytes int) { s.client.Hold(clients.Output, bytes) }

// HungUp implements peer.Session. A client that is gone wants nothing of the command that is not done; one that only
// sends no more may wait for its replies, but does not make others wait for a time or a turn.
func (s *Session) HungUp(h peer.Hangup) {
	if s.pending != nil {
		s.pending.hungUp(h)
	}
	if s.unsynced != nil && h == peer.Reset { // nobody is there to be told
		s.unsynced.end(true)
	}
}

// Close implements peer.Session.
func (s *Session) Close() {
	if s.pending != nil {
		s.pending.abandon() // before its watch ends: see execution.execute
		s.client.Await(nil)
		s.pending = nil // or what it waits for would stay for as long as something may wake it
	}
	if s.unsynced != nil {
		s.unsynced.abandon()
		s.unsynced = nil
	}
	s.unwatch()
	if s.monitor != nil {
		s.engine.config.Records.Monitors.Abandon(s.monitor)
		s.monitor = nil
	}
	s.engine.config.Clients.Remove(s.client)
}

// Feed implements peer.Session.
func (s *Session) Feed(in, out []byte) (consumed int, replies []byte, status peer.Status) {
	s.w.Buf = out
	s.status = peer.NeedInput
	s.borrow()
	defer s.endFeed()
	if s.unsynced != nil && !s.release(len(in) > 0) {
		return 0, s.w.Buf, s.status
	}
	if s.pending != nil && !s.resume() {
		s.status = peer.Waiting
		s.confirm(len(out))
		return 0, s.w.Buf, s.status
	}
	s.monitored = s.engine.config.Records.Monitors.Any() // only now: what is done in the background reads it
	most := len(out) + feedBytes
	if !s.authenticated {
		most = len(out) + peer.UnauthenticatedOutput
	}
	for s.status == peer.NeedInput {
		if len(s.w.Buf) >= most || consumed >= feedInputBytes && consumed < len(in) {
			s.status = peer.More
			break
		}
		n, args, err := s.decoder.Next(in[consumed:], s.scratch.args)
		if err != nil {
			s.failInput(err)
		}
		if n == 0 {
			break
		}
		command := in[consumed : consumed+n]
		consumed += n
		s.scratch.args = args
		if s.decoder.Long() > 0 {
			s.executeLong(args, command)
		} else if len(args) > 0 {
			s.execute(args)
		} else if s.replies == repliesSkipNext {
			s.replies = repliesOn // to Redis, nothing is a command, too
		}
	}
	s.flush()
	if s.monitored {
		s.sendLines()
	}
	s.confirm(len(out))
	return consumed, s.w.Buf, s.status
}

func (s *Session) endFeed() {
	s.w.Buf = nil
	s.giveBack()
}

func (s *Session) borrow() {
	s.scratch = s.engine.scratch.Get().(*scratch)
	s.scratch.watchedKeys, s.scratch.steps = 0, 0
	s.scratch.limitsNewKeys = s.engine.config.NewKeys.Limited()
	s.scratch.notesTold, s.scratch.told = s.role == outer && s.confirms(), s.scratch.told[:0]
}

// giveBack leaves nothing in the scratch that refers to the input, whose buffer it would keep alive.
func (s *Session) giveBack() {
	clear(s.scratch.batch) // not empty after a panic
	s.scratch.batch = s.scratch.batch[:0]
	if cap(s.scratch.args) > maxScratchArgs {
		s.scratch.args = nil
	}
	clear(s.scratch.args[:cap(s.scratch.args)])
	if cap(s.scratch.joined) > maxScratchNameBytes {
		s.scratch.joined = nil
	}
	s.engine.scratch.Put(s.scratch)
	s.scratch = nil
}

func (s *Session) execute(args [][]byte) {
	if s.replies != repliesOn {
		s.executeMuted(func() { s.dispatch(args) })
		return
	}
	s.dispatch(args)
}

func (s *Session) dispatch(args [][]byte) {
	if len(args) > resp.LongArgs && s.role == outer {
		s.dispatchLong(args, long{args: args})
		return
	}
	c, err := s.admit(s.lookup(args[0]), args)
	s.proceed(held{command: c, args: args, err: err})
}

// lookup is Catalog.Lookup, which takes longer than a look at what was called last.
func (s *Session) lookup(name []byte) *catalog.Command {
	x := s.scratch
	if x.last == nil || string(x.lastName) != string(name) {
		if x.last = s.engine.config.Catalog.Lookup(name); x.last != nil {
			x.lastName = append(x.lastName[:0], name...)
		}
	}
	return x.last
}

// held is a command that was admitted, or refused with an error, and has not been executed. Without a command and an
// error it is still to be admitted.
type held struct {
	command *catalog.Command // nil where there is none of that name
	args    [][]byte         // none where the input is no command, which err tells
	err     error
	long    *long // what is still to be decoded and admitted, in place of the others
	// ownBytes is what the arguments take, and frameBytes the command around them, where both are the
	// session's own; 0 where they are slices of the driver's buffer.
	ownBytes, frameBytes int
}

// proceed executes a command, or replies why it is not executed. Whatever comes behind a batch waits until that is
// answered.
func (s *Session) proceed(h held) {
	switch {
	case h.err == nil && h.command.Batches && s.multi == nil && s.monitor == nil:
		s.callBatched(h)
	case !s.flush():
		s.hold(h)
	case h.err != nil:
		s.reject(h, h.err)
	case s.monitor != nil && h.command.Flags&(catalog.FlagWrite|catalog.FlagReadonly|catalog.FlagScript) != 0:
		s.reject(h, reply.ErrMonitorHasNoKeys)
	case s.multi != nil && h.command.Flags&catalog.FlagNotQueued == 0:
		s.queue(h)
	default:
		s.run(h)
	}
}

// run executes a command that was admitted.
func (s *Session) run(h held) {
	switch {
	case h.command.Batches:
		s.callBatched(h)
	case s.monitored:
		s.callMonitored(h)
	default:
		s.call(h)
	}
}

// call executes a command that is not batched.
func (s *Session) call(h held) {
	c := h.command
	beganNs := s.engine.config.Now()
	nowNs := beganNs
	if s.role == outer {
		s.client.Active(c, beganNs)
	} else {
		nowNs = s.space.NowNs
	}
	from, wrote := len(s.w.Buf), s.wrote
	s.wrote = c.Flags&catalog.FlagWrite != 0
	handler := s.engine.handlers[c.ID]
	var err error
	if h.ownBytes > 0 && handler.own == nil {
		err = s.runApart(handler, s.engine.background, h.args)
	} else {
		err = handler.run(s, nowNs, h.args)
	}
	if s.wrote && err == nil {
		s.noteTold(from)
	}
	s.wrote = s.wrote || wrote
	s.lookAfter(c)
	s.count(h, beganNs)
	if err != nil {
		s.failCommand(h, err)
	}
	if c.Long && s.status == peer.NeedInput {
		s.status = peer.More
	}
}

// reject replies to a command that is not executed.
func (s *Session) reject(h held, err error) {
	c := h.command
	if c == nil && s.role == outer && isCrossProtocol(h.args[0]) {
		s.engine.reportCrossProtocol(s.client.Addr())
		s.status = peer.Abort
	} else if c == nil || c.Refusal != "" {
		s.engine.reportUnknown(s.client, h.args)
	}
	if c != nil {
		s.engine.config.Records.Rejected(c)
	}
	if s.role == outer {
		s.client.Sent(c)
	}
	if s.multi != nil {
		s.multi.Failed = true
	}
	if c != nil && c.Name == "exec" && s.role == outer {
		s.discard()
		err = reply.ExecAborted(err)
	}
	s.fail(h, err)
}

// failCommand replies an error of a command that was executed.
func (s *Session) failCommand(h held, err error) {
	s.engine.config.Records.Failed(h.command)
	s.fail(h, err)
}

// failInput replies to what is no command, if replies are wanted, and ends the connection.
func (s *Session) failInput(err error) {
	if !s.flush() {
		s.hold(held{err: err}) // the decoder may not find it a second time
		return
	}
	s.engine.config.Records.ProtocolError()
	s.status = peer.Close
	before := len(s.w.Buf)
	s.fail(held{}, err)
	if s.replies != repliesOn {
		s.w.Buf = s.w.Buf[:before]
	}
}

// fail replies an error to a call, of which less may be known. The batch in front of it has been answered.
func (s *Session) fail(h held, err error) {
	text := reply.Text(err)
	s.countError(h, text)
	if s.role == inScript {
		s.inner.lastError = text
	}
	s.w.Error(text)
}

// countError counts an error reply.
func (s *Session) countError(h held, text string) {
	e := observe.ErrorReply{Text: text, Command: h.command, Args: h.args, By: s.client}
	s.engine.config.Records.Errors.Count(e)
}
