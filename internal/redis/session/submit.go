package session

import (
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/peer"
)

// Submit is Feed for callers with parsed calls: it executes calls in order and appends their Answers to
// answers. It returns the number of consumed calls; the caller passes the others again and keeps their
// buffers. The status is that of Feed: while Waiting, call Submit again after Wake, with or without calls. A
// session is either fed or submitted to, and only batched commands have answers.
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
	x.Monitored = x.Engine.Config.Records.Monitors.Any() // read late: the background uses it
	for x.Status == peer.NeedInput && consumed < len(calls) {
		args := calls[consumed]
		consumed++
		s.submit(args)
	}
	s.finish(before)
	return consumed, x.Scratch.Answers, x.Status
}

func (s *Session) submit(args peer.Call) {
	if len(args) == 0 {
		s.proceed(parsed{err: reply.ErrNoDecision, args: [][]byte{nil}})
		return
	}
	c, err := s.x.Admit(s.x.Lookup(args[0]), args)
	if err == nil && !c.Batches {
		err = reply.ErrNoDecision
	}
	s.proceed(parsed{command: c, args: args, err: err})
}
