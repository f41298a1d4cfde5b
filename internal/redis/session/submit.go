package session

import (
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// Submit is Feed for callers with parsed calls: it executes calls in order and appends an Answer to each to
// answers. It returns the number of consumed calls; the caller passes the others again and keeps their
// buffers. The status is that of Feed: while Waiting, call Submit again after Wake, with or without calls. A
// session is either fed or submitted to. Commands about the connection and those about all keys are refused.
func (s *Session) Submit(calls []peer.Call, answers []reply.Answer) (consumed int, _ []reply.Answer, status peer.Status) {
	before := len(answers)
	s.beginSubmit(answers)
	defer s.end()
	x := &s.x
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

func (s *Session) beginSubmit(answers []reply.Answer) {
	s.x.Valued, s.x.W.RESP3 = true, true
	s.begin()
	s.x.Scratch.Answers = answers
}

func (s *Session) submit(args peer.Call) {
	c, err := s.admitSubmitted(args, false)
	if len(args) == 0 {
		args = [][]byte{nil}
	}
	s.proceed(parsed{command: c, args: args, err: err})
	if s.pending == nil {
		s.x.Collect()
	}
}

// admitSubmitted admits a call that is answered by a value; batched, only one that is decided in batches.
func (s *Session) admitSubmitted(args peer.Call, batched bool) (*catalog.Command, error) {
	if len(args) == 0 {
		return nil, reply.ErrNotSubmitted
	}
	c, err := s.x.Admit(s.x.Lookup(args[0]), args)
	if err == nil && !c.Batches && (batched || s.engine.Handlers[c.ID].Plain == nil || len(args) > resp.LongArgs) {
		err = reply.ErrNotSubmitted
	}
	return c, err
}

// Permits admits a call like Submit but does not execute it: the answer is an error if it is refused. A
// permitted call has no answer.
func (s *Session) Permits(call peer.Call) (refused *reply.Answer) {
	s.beginSubmit(nil)
	defer s.end()
	c, err := s.admitSubmitted(call, false)
	if err == nil {
		return nil
	}
	s.reject(parsed{command: c, args: call}, err)
	return &s.x.Scratch.Answers[0]
}

// SubmitTogether decides calls of batched commands in one step: all are charged, or none if one is limited;
// unless all, each is decided by itself. It appends an Answer to each, in order; an error is that of all, and
// then there may be fewer. While the status is Waiting, call Submit without calls after Wake.
func (s *Session) SubmitTogether(calls []peer.Call, all bool, answers []reply.Answer) (_ []reply.Answer, status peer.Status) {
	before := len(answers)
	s.beginSubmit(answers)
	defer s.end()
	x := &s.x
	x.Monitored = x.Engine.Config.Records.Monitors.Any()
	s.submitTogether(calls, all)
	s.finish(before)
	return x.Scratch.Answers, x.Status
}

func (s *Session) submitTogether(calls []peer.Call, all bool) {
	x := &s.x
	batch := make([]store.Request, len(calls))
	var joined []byte
	words := [][]byte{[]byte("CL.MCHECK")} // for SLOWLOG
	for i, args := range calls {
		args = argument.CloneAll(args)
		c, err := s.admitSubmitted(args, true)
		if err == nil {
			err = x.Request(&batch[i], c, args, &joined)
		}
		if err != nil {
			s.proceed(parsed{command: c, args: args, err: err})
			return
		}
		words = append(words, args...)
	}
	s.run(words, execute.Plain(func(c execute.Call, _ [][]byte) error {
		if _, err := c.Together(batch, all); err != nil {
			return err
		}
		return c.OK() // the answers follow, see collectTogether
	}), calls)
	switch {
	case s.pending != nil:
		s.pending.together = batch
	case len(x.W.Buf) > 0:
		collectTogether(x, batch)
	}
}

// run runs a handler under the name of CL.MCHECK.
func (s *Session) run(words [][]byte, h execute.Handler, calls []peer.Call) {
	c := s.engine.Config.Catalog.Lookup(words[0])
	s.x.CallBy(h.Like(s.engine.Handlers[c.ID]), c, words)
	if s.x.Monitored {
		for _, args := range calls {
			s.x.Tell(s.x.Lookup(args[0]), args)
		}
	}
}

// collectTogether turns the reply to SubmitTogether into answers.
func collectTogether(x *execute.Executor, batch []store.Request) {
	x.W.Buf = nil
	for i := range batch {
		x.Scratch.Answers = append(x.Scratch.Answers, execute.AnswerOf(&batch[i]))
	}
}

// Become sets the user of later calls; nil is whoever a new client would be.
func (s *Session) Become(user *acl.User) {
	if user == nil {
		if user = s.engine.Config.Users.Default(); user.NeedsPassword() || !user.Enabled() {
			s.x.Greet()
			return
		}
	}
	if user != s.x.User {
		s.x.Become(user)
	}
}
