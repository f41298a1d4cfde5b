package session

import (
	"bytes"

	"cellserver/internal/argument"
	"cellserver/internal/decide"
	"cellserver/internal/funnel"
	"cellserver/internal/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// callThrottle executes one CL.THROTTLE: it puts it into the batch. An error in its arguments is replied behind that.
func (s *Session) callThrottle(h held) {
	err := s.throttle(h.args)
	if err != nil && !s.flush() {
		s.hold(h)
		return
	}
	if err != nil {
		s.scratch.local.Called(h.command, 1)
		s.failCommand(h.command, err)
	}
	if s.monitored {
		s.tell(h)
	}
}

// throttle puts one CL.THROTTLE into the batch; flush has it decided and replies.
func (s *Session) throttle(args [][]byte) error {
	batch := s.scratch.batch
	n := len(batch)
	batch = batch[:n+1] // there is room: a full batch is flushed
	if err := argument.Throttle(&batch[n], s.db, args, s.engine.config.Reading); err != nil {
		return err
	}
	if s.scratch.limitsNewKeys && batch[n].MakesKey() {
		if err := s.mayMakeKey(&batch[n].Key); err != nil {
			clear(batch[n:])
			return err
		}
	}
	s.scratch.batch = batch
	if len(batch) == maxBatch {
		s.flush()
	}
	return nil
}

// mayMakeKey refuses a key behind the batch that would be a new one, where the client's address makes too many.
func (s *Session) mayMakeKey(key *store.Key) error {
	nowNs := s.now()
	if _, found, err := s.space.Keys.TAT(nowNs, *key); err != nil {
		return reply.StoreFailed(err)
	} else if found {
		return nil
	}
	for i := range s.scratch.batch {
		if before := &s.scratch.batch[i]; before.Key.DB == key.DB && bytes.Equal(before.Key.Name, key.Name) && before.MakesKey() {
			return nil
		}
	}
	if s.inner != nil && s.inner.newKeys.has(key) {
		return nil
	}
	if limit := s.engine.config.NewKeys; !limit.Take(&s.client.Peer, nowNs) {
		return reply.TooManyNewKeys(limit.PerSec())
	}
	if s.inner != nil {
		s.inner.newKeys.add(key)
	}
	return nil
}

// newKeys are those that EXEC or a script was allowed to make, so that each counts once, however many attempts there are.
type newKeys struct{ names map[newKey]struct{} }

type newKey struct {
	db   uint16
	name string
}

func (k *newKeys) has(key *store.Key) bool {
	_, ok := k.names[newKey{key.DB, string(key.Name)}]
	return ok
}

func (k *newKeys) add(key *store.Key) {
	if k.names == nil {
		k.names = map[newKey]struct{}{}
	}
	k.names[newKey{key.DB, string(key.Name)}] = struct{}{}
}

// flush has the batch decided and replies to it. It is false if the answers come later: then the session waits.
func (s *Session) flush() (answered bool) {
	batch := s.scratch.batch
	if len(batch) == 0 {
		return true
	}
	if later := s.decide(batch); later != nil {
		s.await(later, (*Session).replyBatch)
	} else {
		_ = s.replyBatch(batch) // always nil
		answered = true
	}
	clear(batch) // see giveBack
	s.scratch.batch = batch[:0]
	return answered
}

// replyBatch replies to the requests of a batch. Its own error is nil, for each request has one.
func (s *Session) replyBatch(batch []store.Request) error {
	for i := range batch {
		if batch[i].Err != nil {
			s.failCommand(s.engine.decider.Command, reply.StoreFailed(batch[i].Err))
		} else {
			s.wrote = s.wrote || changes(&batch[i])
			replyThrottle(&s.w, &batch[i].Result)
		}
	}
	return nil
}

// changes reports whether a request, which was answered, has changed its key.
func changes(q *store.Request) bool { return !q.Result.Limited && q.Quantity != 0 }

// decide has a batch decided at one reading of the clock. It returns nil if it is answered.
func (s *Session) decide(batch []store.Request) *decide.Later {
	d, by := &s.engine.decider, decide.By{Local: &s.scratch.local, Caller: s.client}
	if s.role != outer {
		d.BatchIn(s.space.Keys, s.space.NowNs, batch, by)
		return nil
	}
	nowNs := s.engine.config.Now()
	s.client.Active(d.Command, nowNs)
	return d.Batch(s.space.Keys, nowNs, batch, by)
}

func replyThrottle(w *resp.Writer, r *funnel.Result) {
	w.Array(5)
	w.Int(limitedInt(r))
	w.Int(r.Limit)
	w.Int(r.Remaining)
	w.Int(r.RetryAfterSec)
	w.Int(r.ResetAfterSec)
}

func limitedInt(r *funnel.Result) int64 {
	if r.Limited {
		return 1
	}
	return 0
}
