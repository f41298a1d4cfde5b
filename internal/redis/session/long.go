package session

import (
	"context"

	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/resp"
)

// A command of more than resp.LongArgs arguments takes milliseconds to traverse. The driver's goroutine sees
// only the first ones, which suffice for most refusals; the rest runs in the background.

// long is a command of many arguments.
type long struct {
	args    [][]byte // nil before decoding
	command []byte   // raw bytes
	count   int      // number of arguments
}

// bytes returns its size after decoding.
func (l *long) bytes() int {
	if l.args != nil {
		return argument.Memory(l.args)
	}
	return len(l.command) + l.count*argument.HeaderBytes
}

// kept returns a copy for the session.
func (l *long) kept() *long {
	if l.args != nil {
		return &long{args: argument.CloneAll(l.args)}
	}
	return &long{command: append([]byte(nil), l.command...), count: l.count}
}

// kept returns the arguments, copied unless the session owns them.
func (h *parsed) kept() [][]byte {
	if h.ownBytes > 0 {
		return h.args
	}
	return argument.CloneAll(h.args)
}

// argsBytes returns the bytes of the stored arguments.
func (h *parsed) argsBytes() int {
	if h.ownBytes > 0 {
		return h.ownBytes
	}
	return argument.Memory(h.args)
}

// bytes returns the bytes of the stored command.
func (h *parsed) bytes() int { return h.argsBytes() + h.frameBytes }

// executeLong is execute for a command whose first arguments are decoded.
func (s *Session) executeLong(first [][]byte, command []byte) {
	dispatch := func() { s.dispatchLong(first, long{command: command, count: s.decoder.Long()}) }
	if s.x.Replies != execute.RepliesOn {
		s.executeMuted(dispatch)
		return
	}
	dispatch()
}

// dispatchLong refuses a command by its first arguments, or admits it in the background.
func (s *Session) dispatchLong(first [][]byte, l long) {
	c, err := s.x.AdmitBegin(s.x.Lookup(first[0]), first, max(l.count, len(l.args)))
	switch {
	case err != nil:
		s.run(parsed{command: c, args: first[:min(len(first), shownArgs)], err: err})
	case !s.x.Flush():
		s.stash(s.x.Client, parsed{long: &l}) // executed after the batch
	default:
		s.admitLater(l.kept())
	}
}

// shownArgs suffice for any error.
const shownArgs = 64

// admitLater decodes and admits a command in the background, as each key may be compared with each rule, and
// executes it with its own arguments.
func (s *Session) admitLater(l *long) {
	h := &parsed{}
	t := s.waitForTask(&s.x, noFinish)
	s.pending.next = h
	held := l.bytes()
	s.holdArguments(s.x.Client, held)
	t.Run(s.engine.Background, who(&s.x), func(context.Context) {
		if h.args = l.args; h.args == nil {
			h.args = resp.Split(l.command, l.count, background.Yield)
		}
		h.ownBytes = argument.Memory(h.args)
		h.frameBytes = held - h.ownBytes
		h.command, h.err = s.x.Admit(s.engine.Config.Catalog.Lookup(h.args[0]), h.args)
	})
}
