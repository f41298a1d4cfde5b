package session

import (
	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// Session implements peer.Session, independent of sockets.
type Session struct {
	// Fields of every command come first: with thousands of clients, each cache line is a memory access.
	x      execute.Executor
	engine *Engine
	multi  *transact.Queue // between MULTI and EXEC; else nil
	waiting
	confirming
	listens *listening // nil without MONITOR and SUBSCRIBE
	decoder resp.Decoder
	// ownBytes is the memory of the current command's arguments and frame where the session owns them; 0
	// where they are parts of the driver's buffer.
	ownBytes int
	watching
}

const (
	// feedBytes of replies end a Feed, so that short commands with long replies cannot fill the memory.
	feedBytes = execute.PieceBytes
	// feedInputBytes end a Feed, so that others get their turn beside megabytes of commands with short
	// replies.
	feedInputBytes = 64 << 10
)

func (s *Session) Authenticated() bool { return s.x.Authenticated() }

func (s *Session) Name() string { return s.x.Client.Name() }

func (s *Session) Listens() bool { return s.listens != nil }

func (s *Session) HoldsInput(bytes, free int) { s.x.Client.HoldInput(bytes, free) }

func (s *Session) HoldsOutput(bytes int) { s.x.Client.Hold(clients.Output, bytes) }

// HungUp ends what a closed client no longer needs. After a half-close, pending replies are still sent, but
// nobody else waits for a delay or a turn.
func (s *Session) HungUp(h peer.Hangup) {
	if s.pending != nil {
		s.pending.gone = true
		s.pending.wait.cancel(h)
	}
	if s.unsynced != nil && h == peer.Reset { // nobody can read the replies
		s.unsynced.end(true)
	}
}

func (s *Session) Close() {
	if s.pending != nil {
		s.pending.wait.abandon() // before its watch ends: see execute.Execution
		s.x.Client.Await(nil)
		s.pending = nil // a waker would keep it alive
	}
	if s.unsynced != nil {
		s.unsynced.abandon()
		s.unsynced = nil
	}
	s.unwatch(&s.x)
	if s.listens != nil {
		s.listens.abandon()
		s.listens = nil
	}
	if n, info := s.engine.Config.Replication, s.x.Client.Info(); n != nil && (info.Replica || info.ReplicaAt != nil) {
		n.Detach(s.x.Client.ID)
	}
	s.engine.Config.Clients.Remove(s.x.Client)
}

func (s *Session) Feed(in, out []byte) (consumed int, replies []byte, status peer.Status) {
	x := &s.x
	x.W.Buf = out
	s.begin()
	defer s.finish()
	if s.isBlocked() && !s.drainHeld(len(in) > 0, len(out)) {
		return 0, x.W.Buf, x.Status
	}
	x.Monitored = x.Engine.Config.Records.Monitors.Any() // read late: the background uses it
	most := len(out) + feedBytes
	if !x.Authenticated() {
		most = len(out) + peer.UnauthenticatedOutput
	}
	for x.Status == peer.NeedInput {
		if len(x.W.Buf) >= most || consumed >= feedInputBytes && consumed < len(in) {
			x.Status = peer.More
			break
		}
		s.decoder.Unauthenticated = !x.Authenticated()
		n, args, err := s.decoder.Next(in[consumed:], x.Scratch.Args)
		if err != nil {
			s.failInput(err)
		}
		if n == 0 {
			break
		}
		command := in[consumed : consumed+n]
		consumed += n
		x.Scratch.Args = args
		if s.decoder.Long() > 0 {
			s.executeLong(args, command)
		} else if len(args) > 0 {
			s.execute(args)
		} else if x.Replies == execute.RepliesSkipNext {
			x.Replies = execute.RepliesOn // in Redis, nothing counts as a command, too
		}
	}
	s.release(len(out))
	return consumed, x.W.Buf, x.Status
}

// begin and finish frame everything that the session executes.
func (s *Session) begin() {
	s.x.Status = peer.NeedInput
	s.x.Begin()
	s.x.Scratch.NotesTold = confirms(&s.x)
}

func (s *Session) finish() {
	s.x.W.Buf, s.x.Asked = nil, nil
	s.x.End()
}

// isBlocked reports whether the session was waiting after the last Feed.
func (s *Session) isBlocked() bool { return s.unsynced != nil || s.pending != nil }

// drainHeld sends pending replies, and reports whether commands may be executed now. from is the position of
// earlier replies.
func (s *Session) drainHeld(hasInput bool, from int) bool {
	if u := s.unsynced; u != nil {
		released := s.unhold(&s.x, hasInput)
		if s.unsynced == nil && u.toTheEnd && u.state.Load() == isLate {
			s.dropPieces()
		}
		if !released {
			return false
		}
	}
	if s.pending != nil && !s.resume() {
		switch {
		case s.pieces() != nil:
			s.x.Status = peer.More
		case s.pending != nil:
			s.x.Status = peer.Waiting
		}
		s.confirm(&s.x, from)
		return false
	}
	return true
}

// release sends the replies that need not wait.
func (s *Session) release(from int) {
	s.x.Flush()
	if s.listens != nil && s.pieces() == nil {
		s.sendLines()
	}
	s.confirm(&s.x, from)
}

func (s *Session) execute(args [][]byte) {
	if s.x.Replies != execute.RepliesOn {
		s.executeMuted(func() { s.dispatch(args) })
		return
	}
	s.dispatch(args)
}

func (s *Session) dispatch(args [][]byte) {
	if len(args) > resp.LongArgs {
		s.dispatchLong(args, long{args: args})
		return
	}
	c, err := s.x.Admit(s.x.Lookup(args[0]), args)
	if err != nil || !s.batches(c) {
		s.run(parsed{command: c, args: args, err: err})
	} else if !s.x.Batch(c, args) { // without a parsed, whose copies stall
		s.stash(s.x.Client, parsed{command: c, args: args})
	}
}

// batches reports whether a command joins the batch.
func (s *Session) batches(c *catalog.Command) bool {
	return c.Batches && s.multi == nil && s.listens == nil
}

// parsed is a command waiting for execution, refusal or, without a command and an error, admission.
type parsed struct {
	command *catalog.Command // nil if unknown
	args    [][]byte         // none for invalid input, see err
	err     error
	long    *long // instead of the other fields, before decoding
	// ownBytes and frameBytes are the memory of arguments and frame where the session owns them; 0 where they
	// are parts of the driver's buffer.
	ownBytes, frameBytes int
}

// run executes or refuses a command, after the batch before it is answered.
func (s *Session) run(h parsed) {
	if s.listens != nil && h.err == nil {
		h.err = s.listens.refuses(&s.x, h.command)
	}
	switch {
	case h.err == nil && s.batches(h.command):
		if !s.x.Batch(h.command, h.args) {
			s.stash(s.x.Client, h)
		}
	case !s.x.Flush():
		s.stash(s.x.Client, h)
	case h.err == reply.ErrHeld: //nolint:errorlint // it is never wrapped
		s.awaitRelease(h)
	case h.err != nil:
		s.reject(h, h.err)
	case s.multi != nil && h.command.Flags&catalog.FlagNotQueued == 0:
		s.queue(h)
	default:
		s.ownBytes = h.ownBytes + h.frameBytes
		s.x.Run(h.command, h.args)
	}
}

// reject replies to a refused command.
func (s *Session) reject(h parsed, err error) {
	c := h.command
	if c == nil && isCrossProtocol(h.args[0]) {
		s.engine.reportCrossProtocol(s.x.Client.Addr())
		s.x.Status = peer.Abort
	} else {
		s.x.Reject(c, h.args)
	}
	s.x.Client.Sent(c)
	if s.multi != nil {
		s.multi.Failed = true
	} else if c == nil || c.Name != "pttl" { // which redis-rs sends before what it caches
		s.x.Forbidden = 0
	}
	if c != nil && c.Name == "exec" {
		s.discard()
		err = reply.ExecAborted(err)
	}
	s.x.Fail(c, h.args, err)
}

// failInput replies to invalid input, unless replies are off, and closes the connection.
func (s *Session) failInput(err error) {
	if !s.x.Flush() {
		s.stash(s.x.Client, parsed{err: err}) // the decoder may not find it again
		return
	}
	s.engine.Config.Records.ProtocolError()
	s.x.Status = peer.Close
	before := len(s.x.W.Buf)
	s.x.Fail(nil, nil, err)
	if s.x.Replies != execute.RepliesOn {
		s.x.W.Buf = s.x.W.Buf[:before]
	}
}
