package session

import (
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/observe"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// Session implements peer.Session. It knows no socket.
type Session struct {
	// What every command needs comes first: with thousands of clients each cache line is a wait for memory.
	x      execute.Executor
	engine *Engine
	multi  *transact.Queue // between MULTI and EXEC; else nil
	waiting
	confirming
	monitor *observe.Monitor // nil without MONITOR
	decoder resp.Decoder
	// ownBytes is what the arguments of the command that is called take, and what is around them, where both are the session's
	// own; 0 where they are slices of the driver's buffer.
	ownBytes int
	watching
}

const (
	// feedBytes is where Feed stops so that its replies can be sent, so that a short input with long replies
	// cannot fill the memory.
	feedBytes = 64 << 10
	// feedInputBytes is where it stops so that others have their turn: behind a long command a buffer may hold
	// megabytes of others that reply with little, or nothing.
	feedInputBytes = 64 << 10
)

// Authenticated implements peer.Session.
func (s *Session) Authenticated() bool { return s.x.Authenticated }

// Name implements peer.Session.
func (s *Session) Name() string { return s.x.Client.Name() }

// Monitors implements peer.Session.
func (s *Session) Monitors() bool { return s.monitor != nil }

// HoldsInput implements peer.Session.
func (s *Session) HoldsInput(bytes, free int) { s.x.Client.HoldInput(bytes, free) }

// HoldsOutput implements peer.Session.
func (s *Session) HoldsOutput(bytes int) { s.x.Client.Hold(clients.Output, bytes) }

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
		s.x.Client.Await(nil)
		s.pending = nil // or what it waits for would stay for as long as something may wake it
	}
	if s.unsynced != nil {
		s.unsynced.abandon()
		s.unsynced = nil
	}
	s.unwatch(&s.x)
	if s.monitor != nil {
		s.engine.Config.Records.Monitors.Abandon(s.monitor)
		s.monitor = nil
	}
	s.engine.Config.Clients.Remove(s.x.Client)
}

// Feed implements peer.Session.
func (s *Session) Feed(in, out []byte) (consumed int, replies []byte, status peer.Status) {
	x := &s.x
	x.W.Buf = out
	s.begin()
	defer s.end()
	if s.waits() && !s.goesOn(len(in) > 0, len(out)) {
		return 0, x.W.Buf, x.Status
	}
	x.Monitored = x.Engine.Config.Records.Monitors.Any() // only now: what is done in the background reads it
	most := len(out) + feedBytes
	if !x.Authenticated {
		most = len(out) + peer.UnauthenticatedOutput
	}
	for x.Status == peer.NeedInput {
		if len(x.W.Buf) >= most || consumed >= feedInputBytes && consumed < len(in) {
			x.Status = peer.More
			break
		}
		s.decoder.Unauthenticated = !x.Authenticated
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
			x.Replies = execute.RepliesOn // to Redis, nothing is a command, too
		}
	}
	s.finish(len(out))
	return consumed, x.W.Buf, x.Status
}

// begin is in front of whatever the session executes, and end behind it.
func (s *Session) begin() {
	s.x.Status = peer.NeedInput
	s.x.Begin()
	s.x.Scratch.NotesTold = confirms(&s.x)
}

func (s *Session) end() {
	s.x.W.Buf = nil
	s.x.End()
}

// waits reports whether the session waited for something when it was fed last.
func (s *Session) waits() bool { return s.unsynced != nil || s.pending != nil }

// goesOn replies what was still to come, and reports whether commands may be executed now. There are replies of others up to a
// place.
func (s *Session) goesOn(hasInput bool, from int) bool {
	if s.unsynced != nil && !s.release(&s.x, hasInput) {
		return false
	}
	if s.pending != nil && !s.resume() {
		s.x.Status = peer.Waiting
		s.confirm(&s.x, from)
		return false
	}
	return true
}

// finish replies to what was executed, but for what has to wait.
func (s *Session) finish(from int) {
	s.x.Flush()
	if s.x.Monitored {
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
	s.proceed(held{command: c, args: args, err: err})
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
		if !s.x.Batch(h.command, h.args) {
			s.hold(s.x.Client, h)
		}
	case !s.x.Flush():
		s.hold(s.x.Client, h)
	case h.err != nil:
		s.reject(h, h.err)
	case s.monitor != nil && h.command.Flags&(catalog.FlagWrite|catalog.FlagReadonly|catalog.FlagScript) != 0:
		s.reject(h, reply.ErrMonitorHasNoKeys)
	case s.multi != nil && h.command.Flags&catalog.FlagNotQueued == 0:
		s.queue(h)
	default:
		s.ownBytes = h.ownBytes + h.frameBytes
		s.x.Run(h.command, h.args)
	}
}

// reject replies to a command that is not executed.
func (s *Session) reject(h held, err error) {
	c := h.command
	if c == nil && !s.x.Valued && isCrossProtocol(h.args[0]) {
		s.engine.reportCrossProtocol(s.x.Client.Addr())
		s.x.Status = peer.Abort
	} else {
		s.x.Reject(c, h.args)
	}
	s.x.Client.Sent(c)
	if s.multi != nil {
		s.multi.Failed = true
	}
	if c != nil && c.Name == "exec" {
		s.discard()
		err = reply.ExecAborted(err)
	}
	s.x.Fail(c, h.args, err)
}

// failInput replies to what is no command, if replies are wanted, and ends the connection.
func (s *Session) failInput(err error) {
	if !s.x.Flush() {
		s.hold(s.x.Client, held{err: err}) // the decoder may not find it a second time
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
