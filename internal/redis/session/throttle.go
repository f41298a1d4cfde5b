package session

import (
	"bytes"
	"sync/atomic"

	"cellserver/internal/decide"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// callBatched executes a call that is decided in a batch: it puts it into that. An error in its arguments is replied behind it.
func (s *Session) callBatched(h held) {
	if s.scratch.batchOf != h.command && !s.flush() {
		s.hold(h)
		return
	}
	s.scratch.batchOf = h.command
	err := s.request(h.command, h.args)
	if err != nil && !s.flush() {
		s.hold(h)
		return
	}
	if err != nil {
		s.forget(nil)
		s.scratch.local.Called(h.command, 1)
		s.failCommand(h, err)
	}
	if s.monitored {
		s.tell(h)
	}
}

// request puts a call into the batch; flush has it decided and replies.
func (s *Session) request(c *catalog.Command, args [][]byte) error {
	batch := s.scratch.batch
	n := len(batch)
	batch = batch[:n+1] // there is room: a full batch is flushed
	if err := s.engine.requests[c.ID](&batch[n], s.db, args, s.engine.config.Reading, &s.scratch.joined); err != nil {
		return err
	}
	if batch[n].Quantity < 0 && s.isFrozen() {
		clear(batch[n:])
		return reply.ErrMisconf
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
	if _, found, err := s.space.Keys.Entry(nowNs, *key); err != nil {
		return reply.StoreFailed(err)
	} else if found {
		return nil
	}
	if makes(s.scratch.batch, key) {
		return nil
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

// makes reports whether one of the requests makes the key where there is none.
func makes(requests []store.Request, key *store.Key) bool {
	for i := range requests {
		if q := &requests[i]; q.Key.DB == key.DB && bytes.Equal(q.Key.Name, key.Name) && q.MakesKey() {
			return true
		}
	}
	return false
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
	c := s.scratch.batchOf
	if later := s.decide(c, batch); later != nil {
		s.await(later, func(s *Session, batch []store.Request) error { return s.replyBatch(c, batch) })
	} else {
		_ = s.replyBatch(c, batch) // always nil
		answered = true
	}
	s.spend(c.Cost.Call * len(batch))
	s.scratch.batch = batch[:0]
	s.forget(batch)
	return answered
}

// forget lets go of requests that the store has been given, or that were refused, and of the names that were joined for them.
func (s *Session) forget(batch []store.Request) {
	clear(batch) // see giveBack
	s.scratch.joined = s.scratch.joined[:0]
}

// spend notes what was done, and has the session stop when that was long enough for others to have their turn.
func (s *Session) spend(steps int) {
	if s.scratch.steps += steps; s.scratch.steps >= feedSteps && s.status == peer.NeedInput {
		s.status = peer.More
	}
}

// replyBatch replies to the requests of a batch. Its own error is nil, for each request has one.
func (s *Session) replyBatch(c *catalog.Command, batch []store.Request) error {
	for i := range batch {
		if batch[i].Err != nil {
			s.failCommand(held{command: c}, reply.StoreFailed(batch[i].Err))
			continue
		}
		from := len(s.w.Buf)
		s.replyRequest(&batch[i])
		if s.scratch.notesTold && changes(&batch[i]) {
			s.noteTold(from)
		}
	}
	s.countNamed(batch)
	return nil
}

// replyRequest replies to a request that was answered.
func (s *Session) replyRequest(q *store.Request) {
	s.wrote = s.wrote || changes(q)
	if q.Quantity < 0 {
		s.lookAt(q.Key)
	}
	Result(&s.w, &q.Result)
}

// countNamed counts what was decided by named limits: once for many requests of one limit, for all loops share its counters.
func (s *Session) countNamed(batch []store.Request) {
	if batch[0].Rule.Shared == nil { // and so it is of all, as they are of one command
		return
	}
	var counter *atomic.Uint64
	n := uint64(0)
	for i := range batch {
		q := &batch[i]
		if q.Err != nil {
			continue
		}
		if next := q.Rule.Shared.Counter(q.Quantity, &q.Result); next != counter {
			s.countOn(counter, n)
			counter, n = next, 0
		}
		n++
	}
	s.countOn(counter, n)
}

// countOn counts on a counter, if there is one. EXEC and scripts do so once they are done, however often they were attempted.
func (s *Session) countOn(counter *atomic.Uint64, n uint64) {
	switch {
	case counter == nil:
	case s.inner != nil:
		s.inner.count(counter, n)
	default:
		counter.Add(n)
	}
}

// changes reports whether a request, which was answered, has changed its key.
func changes(q *store.Request) bool {
	denied := q.Result.Limited || q.Result.Shadowed
	return q.Quantity != 0 && (!denied || q.Rule.Flags&limiter.CountDenied != 0)
}

// decide has a batch decided at one reading of the clock. It returns nil if it is answered.
func (s *Session) decide(c *catalog.Command, batch []store.Request) *decide.Later {
	d, by := &s.engine.decider, decide.By{Command: c, Local: &s.scratch.local, Caller: s.client}
	if s.role != outer {
		d.BatchIn(s.space.Keys, s.space.NowNs, batch, by)
		return nil
	}
	nowNs := s.engine.config.Now()
	s.client.Active(c, nowNs)
	return d.Batch(s.space.Keys, nowNs, batch, by)
}

// Result replies the five integers of CL.THROTTLE.
func Result(w *resp.Writer, r *funnel.Result) {
	w.Array(5)
	Integers(w, r)
}

// Integers replies them as a part of an array.
func Integers(w *resp.Writer, r *funnel.Result) {
	w.Int(LimitedInt(r.Limited))
	w.Int(r.Limit)
	w.Int(r.Remaining)
	w.Int(r.RetryAfter)
	w.Int(r.ResetAfter)
}

// LimitedInt is the first of the integers: 1 or 0.
func LimitedInt(limited bool) int64 {
	if limited {
		return 1
	}
	return 0
}
