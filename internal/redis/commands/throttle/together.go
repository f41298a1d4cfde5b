package throttle

import (
	"strconv"

	"cellserver/internal/decide/observe"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// limitArgs counts the arguments of one limit: key, max_burst, count, period, quantity.
const limitArgs = 5

// throttleTogether is CL.MTHROTTLE n key max_burst count period quantity [key max_burst count period quantity ...].
func (k handlers) throttleTogether(c execute.Call, args [][]byte) error {
	n, err := argument.Int(args[1]) // in the grammar of its row, by which its keys were checked
	switch {
	case err != nil:
		return err
	case n < 1 || n > observe.MaxBatch:
		return reply.Cell("n, the number of limits, must be 1 to " + strconv.Itoa(observe.MaxBatch) + ", got " + strconv.FormatInt(n, 10))
	case len(args) != 2+int(n)*limitArgs:
		return reply.Cell("Usage: cl.mthrottle <n> and n times <key> <max_burst> <count per period> <period> <quantity>")
	}
	batch := make([]store.Request, n)
	for i := range batch {
		if err := k.readLimit(&batch[i], c, args[2+i*limitArgs:]); err != nil {
			return err
		}
	}
	limited, err := c.Together(batch)
	if err != nil {
		return err
	}
	w := c.Reply()
	w.Array(1 + len(batch))
	w.Int(execute.LimitedInt(limited))
	for i := range batch {
		execute.Result(w, &batch[i].Result)
	}
	return nil
}

func (k handlers) readLimit(q *store.Request, c execute.Call, args [][]byte) error {
	var n [limitArgs - 1]int64 // max_burst, count, period, quantity
	limit, err := k.readFunnel(n[:], args[1:])
	if err != nil {
		return err
	}
	if n[3] < 0 {
		return reply.Cell("quantity must be at least 0; CL.REFUND gives units back")
	}
	*q = store.Request{Key: c.Key(args[0]), Rule: limiter.OfFunnel(limit), Quantity: n[3]}
	return nil
}
