package execute

import (
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/observe"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// Protocols other than RESP know a limit, a key and a number, and ask by values: nothing is written as words
// for another room to parse, and no reply is read back. RESP's arguments are parsed straight into the batch.
// Both ways join in Executor.enter.

// Ask is what a client asks by value: Requests, Together or an Operation. Its user owns it, and what it
// refers to, until the session has executed all of it.
type Ask interface {
	// Left reports whether a part has not been executed.
	Left() bool
	// run executes the rest, or what the turn has room for. It stops before a part that must wait.
	run(x *Executor)
	// Decided is the number of decisions so far.
	Decided() int
	// decide takes the next decision, and settle that of a whole operation, which has succeeded.
	decide(q *store.Request)
	settle()
	// fail takes an error for the next decision, and late for those between two positions.
	fail(err reply.Error)
	late(from, to int, err reply.Error)
	// words are those of a command like the one under way, for SLOWLOG.
	words(x *Executor) [][]byte
	// Bytes is about the memory of all of it.
	Bytes() int
}

// Request is a request to a limiter, and then its decision.
type Request struct {
	Command  string // as a client spells the command that is like it, whose rights and counters are its own
	Limit    []byte // the name of a limit; nil for one of the caller's own
	Key      []byte
	Spec     limiter.Spec // the caller's own limit; of a named one only the flag Debit
	Quantity int64        // of units; a negative one returns them

	Result funnel.Result       // in milliseconds
	By     *limiter.NamedLimit // with the results of its rules; nil for a limit of the caller's own
	Policy *namedlimit.Policy  // of By
	Err    reply.Error         // empty if the request was decided
}

// words are those of a command like the request.
func (q *Request) words(x *Executor) [][]byte {
	return argument.Words(q.Command, q.Limit, q.Key, &q.Spec, q.Quantity, x.Client.Peer.Door == peer.GRPC)
}

func (q *Request) bytes() int { return requestBytes + len(q.Limit) + len(q.Key) }

const requestBytes = 256

// Requests are decided in order, each by itself.
type Requests struct {
	All []Request

	limits     namedlimit.Limits // of the whole call
	next, done int
}

func (r *Requests) Left() bool { return r.next < len(r.All) }

func (r *Requests) run(x *Executor) {
	if r.next == 0 {
		r.limits = x.Engine.Config.NamedLimits.Limits()
	}
	for r.Left() && x.Status == peer.NeedInput && x.batchRequest(&r.All[r.next], r.limits) {
		r.next++
	}
}

func (r *Requests) Decided() int { return r.done }

func (r *Requests) decide(q *store.Request) {
	r.All[r.done].take(q)
	r.done++
}

// take takes a decision.
func (q *Request) take(from *store.Request) {
	q.Result = from.Result
	q.By, _ = from.Rule.Shared.(*limiter.NamedLimit)
}

func (r *Requests) settle() {}

func (r *Requests) fail(err reply.Error) {
	r.All[r.done].Err = err
	r.done++
}

func (r *Requests) late(from, to int, err reply.Error) {
	for i := from; i < to; i++ {
		r.All[i].Err = err
	}
}

func (r *Requests) words(*Executor) [][]byte { return nil } // SLOWLOG shows batches

func (r *Requests) Bytes() (bytes int) {
	for i := range r.All {
		bytes += r.All[i].bytes()
	}
	return bytes
}

// batchRequest is Batch for a request that is a value.
func (x *Executor) batchRequest(q *Request, limits namedlimit.Limits) (done bool) {
	c := x.Lookup([]byte(q.Command))
	if err := x.admitKey(c, q.Limit, q.Key, q.Quantity < 0); err != nil {
		if !x.Flush() {
			return false
		}
		x.refuse(c, q.words(x), err)
		return true
	}
	to, ok := x.begin(c)
	if !ok {
		return false
	}
	err := x.fill(to, q, limits, &x.Scratch.joined)
	if err == nil {
		err = x.enter(to)
	}
	if err != nil && !x.Flush() {
		return false
	}
	if err != nil {
		x.failBatched(c, q.words(x), err)
	}
	if x.Monitored {
		x.Tell(c, q.words(x))
	}
	return true
}

// fill makes the store's request.
func (x *Executor) fill(to *store.Request, q *Request, limits namedlimit.Limits, joined *[]byte) (err error) {
	if q.Limit == nil {
		err = argument.Own(to, x.DB, &q.Spec, q.Key, q.Quantity)
	} else {
		q.Policy, err = argument.Named(limits, x.Engine.Config.NamedLimits.Now, to, x.DB, q.Limit, q.Key, q.Quantity, q.Spec.Flags, joined)
	}
	if err == nil {
		precise(to)
	}
	return err
}

// precise has a request answered in milliseconds, with the results of a named limit's rules.
func precise(q *store.Request) {
	q.Rule.Unit = funnel.Milliseconds
	if n, ok := q.Rule.Shared.(*limiter.NamedLimit); ok {
		q.Rule.Shared = n.Precise()
	}
}

// Operation is another command about a key, or about none. Its Do may be called in the background and more
// than once, and leaves its results with its owner.
type Operation struct {
	Command string             // the full name of the command that is like it
	Key     []byte             // nil for none
	Words   func() [][]byte    // of that command, for those who watch and the log
	Do      func(c Call) error // nil to learn only whether the user might
	Err     reply.Error        // empty if it was done

	begun, done bool
}

// Left implements Ask.
func (o *Operation) Left() bool { return !o.begun }

func (o *Operation) run(x *Executor) {
	o.begun = true
	c := x.Engine.Config.Catalog.LookupFull([]byte(o.Command))
	said := o.Words()
	if err := x.admitKey(c, nil, o.Key, false, said[1:]...); err != nil {
		x.refuse(c, said, err)
		return
	}
	if o.Do == nil {
		return
	}
	x.operate(c, o.Do)
	if x.Monitored {
		x.Tell(c, said)
	}
}

// operate executes an operation of the Ask under way, as a command.
func (x *Executor) operate(c *catalog.Command, do func(c Call) error) {
	h := Plain(func(c Call, _ [][]byte) error {
		err := do(c)
		if err == nil && c.x.Asked != nil { // else in the background, and the session settles it
			c.x.Asked.settle()
		}
		return err
	})
	x.CallBy(h.Like(x.Engine.Handlers[c.ID]), c, nil)
}

func (o *Operation) Decided() int {
	if o.done {
		return 1
	}
	return 0
}

func (o *Operation) decide(*store.Request) {}

func (o *Operation) settle() { o.done = true }

func (o *Operation) fail(err reply.Error) { o.Err, o.done = err, true }

func (o *Operation) late(_, _ int, err reply.Error) { o.Err = err }

func (o *Operation) words(*Executor) [][]byte { return o.Words() }

func (o *Operation) Bytes() int { return requestBytes + len(o.Key) }

// Together are requests decided in one step: all are charged or none, or each by itself. Err is that of all.
type Together struct {
	Operation
	All  []Request
	Each bool

	batch []store.Request
}

// command is counted for requests that are decided together.
const togetherCommand = "CL.MCHECK"

func (t *Together) run(x *Executor) {
	t.begun = true
	t.batch = make([]store.Request, len(t.All))
	limits, joined := x.Engine.Config.NamedLimits.Limits(), []byte(nil)
	for i := range t.All {
		q := &t.All[i]
		c := x.Lookup([]byte(q.Command))
		err := x.admitKey(c, q.Limit, q.Key, q.Quantity < 0)
		if err == nil {
			err = x.fill(&t.batch[i], q, limits, &joined)
		}
		if err == nil && q.Quantity < 0 {
			err = reply.Cell("quantity must be at least 0 where several are decided in one step")
		}
		if err != nil {
			x.refuse(c, q.words(x), err)
			return
		}
	}
	x.operate(x.Engine.Config.Catalog.Lookup([]byte(togetherCommand)), func(c Call) error {
		_, err := c.Together(t.batch, !t.Each)
		return err
	})
	for i := range t.All {
		if q := &t.All[i]; x.Monitored {
			x.Tell(x.Lookup([]byte(q.Command)), q.words(x))
		}
	}
}

func (t *Together) settle() {
	t.done = true
	for i := range t.All {
		t.All[i].take(&t.batch[i])
	}
}

func (t *Together) words(x *Executor) [][]byte {
	all := [][]byte{[]byte(togetherCommand)}
	for i := range t.All {
		all = append(all, t.All[i].words(x)...)
	}
	return all
}

func (t *Together) Bytes() int { return (&Requests{All: t.All}).Bytes() }

// Continue executes the rest of what is asked, or what the turn has room for.
func (x *Executor) Continue() {
	if x.Asked.Left() && x.Status == peer.NeedInput {
		x.Asked.run(x)
	}
}

// Settle settles an operation that has been done in the background.
func (x *Executor) Settle() {
	if x.Asked != nil {
		x.Asked.settle()
	}
}

// FailLate replaces decisions between two positions, which have not reached the disk in time.
func (x *Executor) FailLate(from, to int) {
	for range to - from {
		x.noteError(observe.ErrorReply{Text: string(reply.ErrUnconfirmed), By: x.Client})
	}
	x.Asked.late(from, to, reply.ErrUnconfirmed)
}

// Shown returns a command as SLOWLOG shows it: its arguments, or the words of what is asked by value.
func (x *Executor) Shown(c *catalog.Command, args [][]byte) []string {
	if x.Asked != nil {
		args = x.Asked.words(x)
	}
	return observe.ShortArgs(observe.Redacted(c, args))
}

// refuse replies to a command that is not admitted.
func (x *Executor) refuse(c *catalog.Command, args [][]byte, err error) {
	x.Reject(c, args)
	x.Client.Sent(c)
	x.Fail(c, args, err)
}
