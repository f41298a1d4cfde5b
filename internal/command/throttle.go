package command

import (
	"strconv"

	"cellserver/internal/funnel"
	"cellserver/internal/resp"
	"cellserver/internal/shard"
)

// throttle puts one CL.THROTTLE into the batch; flush asks the store and replies.
func throttle(s *Session, args [][]byte) error {
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
	s.scratch.batch = append(s.scratch.batch, shard.Request{
		Key:      shard.Key{DB: s.db, Name: args[1]},
		Limit:    limit,
		Quantity: numbers[3],
	})
	if len(s.scratch.batch) == maxBatch {
		s.flush()
	}
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

// flush asks the store for the batch at one clock reading, and replies to it.
func (s *Session) flush() {
	batch := s.scratch.batch
	if len(batch) == 0 {
		return
	}
	s.engine.config.Store.Throttle(s.engine.config.Now(), batch)
	for i := range batch {
		s.replyThrottle(&batch[i].Result)
	}
	clear(batch) // see giveBack
	s.scratch.batch = batch[:0]
}

func (s *Session) replyThrottle(r *funnel.Result) {
	limited := int64(0)
	if r.Limited {
		limited = 1
	}
	s.w.Array(5)
	s.w.Int(limited)
	s.w.Int(r.Limit)
	s.w.Int(r.Remaining)
	s.w.Int(r.RetryAfterSec)
	s.w.Int(r.ResetAfterSec)
}
