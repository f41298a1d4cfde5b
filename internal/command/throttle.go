package command

import (
	"strconv"

	"cellserver/internal/funnel"
	"cellserver/internal/resp"
	"cellserver/internal/shard"
)

// throttle puts one CL.THROTTLE into the batch; flush asks the store and replies.
func throttle(s *Session, args [][]byte) error {
	batch := s.scratch.batch
	n := len(batch)
	batch = batch[:n+1] // there is room: a full batch is flushed
	if err := s.readThrottle(args, &batch[n]); err != nil {
		return err
	}
	s.scratch.batch = batch
	if len(batch) == maxBatch {
		s.flush()
	}
	return nil
}

// readThrottle reads the arguments of CL.THROTTLE into q, in place: it is large.
func (s *Session) readThrottle(args [][]byte, q *shard.Request) error {
	if len(args) < 5 || len(args) > 6 {
		return &cellError{"Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"}
	}
	numbers := [4]int64{3: 1} // max_burst, count, period, quantity
	for i, arg := range args[2:] {
		n, ok := integer(arg)
		if !ok {
			return &cellError{"Couldn't parse as integer: " + resp.Printable(arg)}
		}
		numbers[i] = n
	}
	limit, err := funnel.NewLimit(s.engine.config.Reading, numbers[0], numbers[1], numbers[2])
	if err != nil {
		return err
	}
	q.Key = s.key(args[1])
	q.Limit = limit
	q.Quantity = numbers[3]
	return nil
}

// integer reads a number by the module's grammar: decimal, an optional sign, leading zeros allowed, nothing else.
func integer(b []byte) (n int64, ok bool) {
	const maxDigits = 18 // of any 64-bit number; the rest is for strconv, which takes three times as long
	if len(b) == 0 || len(b) > maxDigits {
		return slowInteger(b)
	}
	for _, c := range b {
		if c -= '0'; c > 9 {
			return slowInteger(b)
		}
		n = n*10 + int64(c)
	}
	return n, true
}

func slowInteger(b []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}

// flush asks the store for the batch, and replies to it.
func (s *Session) flush() {
	batch := s.scratch.batch
	if len(batch) == 0 {
		return
	}
	s.decide(batch)
	for i := range batch {
		replyThrottle(&s.w, &batch[i].Result)
	}
	clear(batch) // see giveBack
	s.scratch.batch = batch[:0]
}

// decide asks the store for a batch, at one clock reading. A second one tells how long that took: it costs less than
// a hundredth of a request that comes alone.
func (s *Session) decide(batch []shard.Request) {
	if s.space != nil {
		s.decideIn(s.space, batch)
		return
	}
	e := s.engine
	nowNs := e.config.Now()
	e.config.Store.Throttle(nowNs, batch)
	r := e.throttle
	s.client.touch(r, nowNs)
	ns := e.config.Now() - nowNs
	s.scratch.tally.batch(r, len(batch), ns)
	s.noteKeys(nowNs, batch)
	s.noteSlowBatch(batch, ns)
}

func (s *Session) decideIn(in keySpace, batch []shard.Request) {
	for i := range batch {
		q := &batch[i]
		q.Result = in.Throttle(q.Key, q.Limit, q.Quantity)
	}
	s.scratch.tally.called(s.engine.throttle, len(batch))
	s.noteKeys(s.spaceNs, batch)
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
