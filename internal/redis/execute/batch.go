package execute

import (
	"cellserver/internal/decide"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// Batch adds a call to the batch. An error in its arguments is replied after the batch. It returns false,
// without effect, while an earlier batch is unanswered.
func (x *Executor) Batch(c *catalog.Command, args [][]byte) (done bool) {
	to, ok := x.begin(c)
	if !ok {
		return false
	}
	err := x.Engine.requests[c.ID](to, x.DB, args, x.Engine.Config.Reading, &x.Scratch.names)
	if err == nil {
		err = x.enter(to)
	}
	if err != nil && !x.Flush() {
		return false
	}
	if err == argument.ErrUnbatched { //nolint:errorlint // it is never wrapped
		return x.unbatched(c, args)
	}
	if err != nil {
		x.failBatched(c, args, err)
	}
	if x.Monitored {
		x.Tell(c, args)
	}
	return true
}

// unbatched executes a call by its command's handler. The batch before it is answered.
func (x *Executor) unbatched(c *catalog.Command, args [][]byte) (done bool) {
	x.Scratch.forget(x.Scratch.batch[:1])
	x.runUnbatched(c, args)
	return true
}

// begin returns the place for a request of a command behind the batch. ok is false while an earlier batch is
// unanswered.
func (x *Executor) begin(c *catalog.Command) (q *store.Request, ok bool) {
	if x.Scratch.batchOf != c && !x.Flush() {
		return nil, false
	}
	x.Scratch.batchOf = c
	n := len(x.Scratch.batch) // a full batch has been flushed
	return &x.Scratch.batch[:n+1][n], true
}

// enter adds the request behind the batch to it, if it is admitted. Flush decides the batch.
func (x *Executor) enter(q *store.Request) error {
	if q.Rule.Kind == limiter.Value {
		x.prepareValue(q)
	}
	if q.Quantity < 0 {
		if err := x.Engine.refusal(); err != nil {
			return err
		}
	}
	if x.Scratch.limitsNewKeys && q.MakesKey() {
		if err := x.mayMakeKey(&q.Key); err != nil {
			return err
		}
	}
	n := len(x.Scratch.batch) + 1
	if x.Scratch.batch = x.Scratch.batch[:n]; n == maxBatch {
		x.Flush()
	}
	return nil
}

// failBatched replies with the error of a call whose request has not joined the batch, which is answered.
func (x *Executor) failBatched(c *catalog.Command, args [][]byte, err error) {
	x.Scratch.forget(x.Scratch.batch[:1])
	x.Scratch.Local.Called(c, 1)
	if x.Space == &x.Engine.Live { // else the client has sent what it is part of
		x.Client.Sent(c)
	}
	x.FailCommand(c, args, err)
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
	if batch[0].Rule.Kind != limiter.Named { // as in all requests of the command
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
	s.names.Forget()
	s.sink.Texts = s.sink.Texts[:0]
}

// replyBatch replies to each request of a batch. Its error is always nil: each request has its own.
func (x *Executor) replyBatch(c *catalog.Command, batch []store.Request) error {
	if q := &batch[0]; q.Rule.Kind == limiter.Value && !q.Rule.Writes() { // as in all requests of the command
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

// noteChange notes what an answered request has changed, for the replies and for those who wait.
func (x *Executor) noteChange(q *store.Request) {
	x.Wrote = x.Wrote || changes(q)
	if q.Quantity < 0 {
		x.lookAt(q.Key)
	}
}

func (x *Executor) replyRequest(c *catalog.Command, q *store.Request) {
	x.noteChange(q)
	switch {
	case q.Rule.Kind == limiter.Value:
		if err := x.replyValue(q); err != nil {
			x.FailCommand(c, nil, err)
		}
	case x.Asked != nil:
		x.Asked.Decide(q)
	default:
		Result(&x.W, &q.Result)
	}
}

// countNamed counts decisions by named limits.
func (x *Executor) countNamed(batch []store.Request) {
	if batch[0].Rule.Kind != limiter.Named { // as in all requests of the command
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
		return q.Rule.Writes() && !q.Result.Limited
	}
	denied := (q.Result.Limited || q.Result.Marks&funnel.Shadowed != 0) && q.Result.Marks&funnel.Changed == 0
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
	for _, n := range integers(r) {
		w.Int(n)
	}
}

func integers(r *funnel.Result) [5]int64 {
	return [...]int64{LimitedInt(r.Limited), r.Limit, r.Remaining, r.RetryAfter, r.ResetAfter}
}

// LimitedInt returns the first of the integers.
func LimitedInt(limited bool) int64 {
	if limited {
		return 1
	}
	return 0
}
