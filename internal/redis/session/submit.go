package session

import (
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/peer"
)

// Submit is Feed for a door that has calls, and is answered by values: it executes the calls at the front and appends an Answer
// to each to answers, in their order. It returns how many it consumed, and answers. What it has not consumed must be at the front
// the next time; it keeps nothing of the rest. The status says what Feed's does: while Waiting, call Submit again, with or without
// calls, after the session has called its connection's Wake. A session is fed or submitted to, never both, and only commands that are
// decided in batches have answers.
func (s *Session) Submit(calls []peer.Call, answers []reply.Answer) (consumed int, _ []reply.Answer, status peer.Status) {
	x := &s.x
	x.Valued = true
	s.begin()
	defer s.end()
	before := len(answers)
	x.Scratch.Answers = answers
	if s.waits() && !s.goesOn(len(calls) > 0, before) {
		return 0, x.Scratch.Answers, x.Status
	}
	x.Monitored = x.Engine.Config.Records.Monitors.Any() // only now: what is done in the background reads it
	for x.Status == peer.NeedInput && consumed < len(calls) {
		args := calls[consumed]
		consumed++
		s.submit(args)
	}
	s.finish(before)
	return consumed, x.Scratch.Answers, x.Status
}

// submit executes a call.
func (s *Session) submit(args peer.Call) {
	if len(args) == 0 {
		s.proceed(held{err: reply.ErrNoDecision, args: [][]byte{nil}})
		return
	}
	c, err := s.x.Admit(s.x.Lookup(args[0]), args)
	if err == nil && !c.Batches {
		err = reply.ErrNoDecision
	}
	s.proceed(held{command: c, args: args, err: err})
}
