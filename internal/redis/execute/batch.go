package execute

import (
	"cellserver/internal/decide"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// Batch adds a call to the batch. An error in its arguments is replied after the batch. It returns false,
// without effect, while an earlier batch is unanswered.
func (x *Executor) Batch(c *catalog.Command, args [][]byte) (done bool) {
	if x.Scratch.batchOf != c && !x.Flush() {
		return false
	}
	x.Scratch.batchOf = c
	err := x.request(c, args)
	if err != nil && !x.Flush() {
		return false
	}
	if err != nil {
		x.Scratch.forget(nil)
		x.Scratch.Local.Called(c, 1)
		x.FailCommand(c, args, err)
	}
	if x.Monitored {
		x.Tell(c, args)
	}
	return true
}

// request adds a call to the batch, which Flush decides.
func (x *Executor) request(c *catalog.Command, args [][]byte) error {
	batch := x.Scratch.batch
	n := len(batch)
	batch = batch[:n+1] // a full batch has been flushed
	if err := x.Engine.requests[c.ID](&batch[n], x.DB, args, x.Engine.Config.Reading, &x.Scratch.joined); err != nil {
		return err
	}
	if batch[n].Rule.Kind == limiter.Value {
		x.prepareValue(&batch[n])
	} else if x.Valued {
		precise(&batch[n])
	}
	if batch[n].Quantity < 0 {
		if err := x.Engine.refusal(); err != nil {
			clear(batch[n:])
			return err
		}
	}
	if x.Scratch.limitsNewKeys && batch[n].MakesKey() {
		if err := x.mayMakeKey(&batch[n].Key); err != nil {
			clear(batch[n:])
			return err
		}
	}
	x.Scratch.batch = batch
	if len(batch) == maxBatch {
		x.Flush()
	}
	return nil
}

// Flush decides the batch and replies. It returns false if the answers come later: then the session waits.
func (x *Executor) Flush() (answered bool) {
	batch := x.Scratch.batch
	if len(batch) == 0 {
		return true
	}
	x.Scratch.endedNs = 0
	c := x.Scratch.batchOf
	if later := x.Role.Decide(x, c, batch); later != nil {
		x.Role.Await(later, func(x *Executor, batch []store.Request) error { return x.replyBatch(c, batch) })
	} else {
		_ = x.replyBatch(c, batch) // always nil
		answered = !x.Role.Replies()
	}
	x.spend(c.Cost.Call*len(batch) + exactSteps(batch))
	x.Scratch.batch = batch[:0]
	x.Scratch.forget(batch)
	return answered
}

// exactSteps returns the cost of exact sliding windows among the rules of named limits.
func exactSteps(batch []store.Request) (steps int) {
	if batch[0].Rule.Kind != limiter.Named { // likewise for all requests of the command
		return 0
	}
	for i := range batch {
		if n, ok := batch[i].Rule.Shared.(*limiter.NamedLimit); ok {
			steps += n.ExactWindows() * catalog.SlidingSteps
		}
	}
	return steps
}

// forget drops decided or refused requests and their joined names, which would keep buffers alive.
func (s *Scratch) forget(batch []store.Request) {
	clear(batch) // see End
	s.joined, s.sink.Texts = s.joined[:0], s.sink.Texts[:0]
}

// replyBatch replies to each request of a batch. Its error is always nil: each request has its own.
func (x *Executor) replyBatch(c *catalog.Command, batch []store.Request) error {
	if q := &batch[0]; q.Rule.Kind == limiter.Value && !q.Rule.Writes() { // likewise for all requests of the command
		x.replyReads(c, batch)
		return nil
	}
	for i := range batch {
		if batch[i].Err != nil {
			x.FailCommand(c, nil, reply.StoreFailed(batch[i].Err))
			continue
		}
		from := x.Replied()
		x.replyRequest(c, &batch[i])
		if x.Scratch.NotesTold && changes(&batch[i]) {
			x.Scratch.NoteTold(from, x.Replied())
		}
	}
	x.countNamed(batch)
	return nil
}

func (x *Executor) replyRequest(c *catalog.Command, q *store.Request) {
	x.Wrote = x.Wrote || changes(q)
	if q.Quantity < 0 {
		x.lookAt(q.Key)
	}
	switch {
	case q.Rule.Kind == limiter.Value:
		if err := x.replyValue(q); err != nil {
			x.FailCommand(c, nil, err)
		}
		x.Collect()
	case x.Valued:
		x.Scratch.Answers = append(x.Scratch.Answers, AnswerOf(q))
	default:
		Result(&x.W, &q.Result)
	}
}

// Request reads a call of a batched command for Call.Together.
func (x *Executor) Request(q *store.Request, c *catalog.Command, args [][]byte, joined *[]byte) error {
	if err := x.Engine.requests[c.ID](q, x.DB, args, x.Engine.Config.Reading, joined); err != nil {
		return err
	}
	if q.Quantity < 0 {
		return reply.Cell("quantity must be at least 0 where several are decided in one step")
	}
	precise(q)
	return nil
}

// precise has a request answered in milliseconds, with the results of a named limit's rules.
func precise(q *store.Request) {
	q.Rule.Unit = funnel.Milliseconds
	if n, ok := q.Rule.Shared.(*limiter.NamedLimit); ok {
		q.Rule.Shared = n.Precise()
	}
}

// AnswerOf returns the answer to a decided request.
func AnswerOf(q *store.Request) reply.Answer {
	by, _ := q.Rule.Shared.(*limiter.NamedLimit)
	return reply.Answer{Result: q.Result, By: by}
}

// countNamed counts decisions by named limits.
func (x *Executor) countNamed(batch []store.Request) {
	if batch[0].Rule.Kind != limiter.Named { // likewise for all requests of the command
		return
	}
	tally := &x.Scratch.tally
	for i := range batch {
		if q := &batch[i]; q.Err == nil {
			tally.Add(&q.Rule, q.Quantity, &q.Result, x.Effects)
		}
	}
	tally.Flush(x.Effects)
}

// changes reports whether an answered request has changed its key.
func changes(q *store.Request) bool {
	if q.Rule.Kind == limiter.Value {
		return q.Rule.Writes()
	}
	denied := q.Result.Limited || q.Result.Marks&funnel.Shadowed != 0
	return q.Quantity != 0 && (!denied || q.Rule.Flags&(limiter.CountDenied|limiter.Debit) != 0)
}

// By identifies the client and the command of a request for the counters.
func (x *Executor) By(c *catalog.Command) decide.By {
	return decide.By{Command: c, Local: &x.Scratch.Local, Caller: x.Client}
}

// Result writes the five integers of CL.THROTTLE.
func Result(w *resp.Writer, r *funnel.Result) {
	w.Array(5)
	Integers(w, r)
}

// Integers writes them as part of an array.
func Integers(w *resp.Writer, r *funnel.Result) {
	w.Int(LimitedInt(r.Limited))
	w.Int(r.Limit)
	w.Int(r.Remaining)
	w.Int(r.RetryAfter)
	w.Int(r.ResetAfter)
}

// LimitedInt returns the first of the integers.
func LimitedInt(limited bool) int64 {
	if limited {
		return 1
	}
	return 0
}
