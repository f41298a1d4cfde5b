package session

import (
	"bytes"

	"cellserver/internal/decide/queue"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// AwaitTurn does an operation Wait, and replies its Result when its turn has come, or at once if that would not be within its
// time. In EXEC and in scripts it does not wait, for others would, too: as if it had no time.
func (c Call) AwaitTurn(name []byte, o *limiter.Operation) error {
	s := c.s
	if s.role == away && o.Quantity > 0 {
		return c.awaitTurnAway(name, o)
	}
	if s.inner != nil || o.Quantity <= 0 {
		o.TTLNs = 0
		if err := c.Operate(name, o); err != nil {
			return err
		}
		Result(&s.w, &o.Result)
		return nil
	}
	key := c.Key(name)
	if err := s.mayApply(&key, o); err != nil {
		return err
	}
	turn, err := s.engine.room.Enter(c.Now(), key, o, s.client.Conn)
	if err != nil {
		return reply.StoreFailed(err)
	}
	s.engine.decider.Applied(c.Now(), key, o, &s.scratch.local)
	if turn == nil {
		Result(&s.w, &o.Result)
		return nil
	}
	s.wait(&pending{turn: turn})
	s.client.Await(turn)
	return nil
}

// awaitTurnAway is AwaitTurn over a store on other machines: whoever executes the command has its client wait.
func (c Call) awaitTurnAway(name []byte, o *limiter.Operation) error {
	if c.s.engine.ctx.Err() != nil { // the server ends
		o.TTLNs = 0
	}
	if err := c.Operate(name, o); err != nil {
		return err
	}
	if o.Result.Limited || o.WaitNs == 0 {
		Result(&c.s.w, &o.Result)
	} else {
		c.s.inner.apart.leave(&apartTurn{who: c.s.who(), atNs: c.Now(), key: c.Key(name), operation: *o})
	}
	return nil
}

// mayApply refuses a step that would make a key, where the client's address makes too many.
func (s *Session) mayApply(key *store.Key, step store.Step) error {
	if s.scratch.limitsNewKeys && step.MakesKey() {
		return s.mayMakeKey(key)
	}
	return nil
}

// replyTurn replies to who has waited for its turn.
func (s *Session) replyTurn(p *pending) error {
	s.client.Await(nil)
	nowNs := s.engine.config.Now()
	p.beganNs = nowNs - p.handlerNs // what it has waited for is what it wanted
	switch p.turn.Outcome() {
	case queue.Cancelled:
		return s.cancelled(p.command)
	case queue.Ended:
		return reply.ErrEnded
	case queue.Unblocked:
		return reply.ErrUnblocked
	default:
		r := p.turn.Result(nowNs)
		Result(&s.w, &r)
		return nil
	}
}

// lookedAt are keys that those who wait for them may move up for, as EXEC or a script may have given units back: when it has
// let go of its keys.
type lookedAt struct {
	keys []store.Key
	all  bool
}

func (l *lookedAt) add(key store.Key) {
	switch {
	case l.all:
	case len(l.keys) == mostLooked:
		*l = lookedAt{all: true}
	default:
		l.keys = append(l.keys, store.Key{DB: key.DB, Name: bytes.Clone(key.Name)})
	}
}

// lookAfter has all who wait move up, if a command about all keys may have given units back.
func (s *Session) lookAfter(c *catalog.Command) {
	const flush = catalog.FlagWhole | catalog.FlagWrite
	switch {
	case c == nil || c.Flags&flush != flush || s.engine.room.Waiting() == 0:
	case s.inner != nil:
		s.inner.looked.all = true
	default:
		s.engine.room.LookAtAll()
	}
}

// mostLooked is how many keys EXEC or a script keeps to look at; beyond that it looks at all for which somebody waits.
const mostLooked = 1000

// lookAt has those who wait for a key move up, if it was given units back.
func (s *Session) lookAt(key store.Key) {
	switch {
	case s.engine.room.Waiting() == 0:
	case s.inner != nil:
		s.inner.looked.add(key)
	default:
		s.engine.room.Look(key)
	}
}

// lookAgain is what lookAt and lookAfter have left until EXEC or a script had let go of its keys.
func (s *Session) lookAgain(l *lookedAt) {
	if l.all {
		s.engine.room.LookAtAll()
		return
	}
	for _, key := range l.keys {
		s.engine.room.Look(key)
	}
}
