package throttle

import (
	"strconv"

	"cellserver/internal/funnel"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/glob"
)

// reserve is CL.RESERVE key max_burst count period amount ttl_ms.
func (k handlers) reserve(c execute.Call, args [][]byte) error {
	var n [4]int64 // max_burst, count, period, amount
	limit, err := k.readFunnel(n[:], args[2:])
	if err != nil {
		return err
	}
	ttlNs, err := argument.Duration("ttl_ms", args[6])
	if err != nil {
		return err
	}
	o, err := argument.Reserve(limit, n[3], ttlNs, funnel.Seconds)
	if err != nil {
		return err
	}
	if err := c.Operate(args[1], &o); err != nil {
		return err
	}
	replyGranted(c, &o.Result, strconv.FormatUint(o.ID, 10))
	return nil
}

// replyGranted replies the five integers, and the ID or token of what was granted.
func replyGranted(c execute.Call, r *funnel.Result, id string) {
	w := c.Reply()
	w.Array(6)
	execute.Integers(w, r)
	if r.Limited {
		w.Null()
	} else {
		w.BulkString(id)
	}
}

// commit is CL.COMMIT key id actual [LATE max_burst count period].
func (k handlers) commit(c execute.Call, args [][]byte) error {
	actual, err := argument.Number(args[3])
	if err != nil {
		return err
	}
	var late *funnel.Limit
	const lateArgs = 8
	if len(args) > 4 {
		if len(args) != lateArgs || !glob.IsFolded(args[4], "late") {
			return reply.Cell("Usage: cl.commit <key> <id> <actual> [LATE <max_burst> <count per period> <period>]")
		}
		var n [3]int64 // max_burst, count, period
		limit, err := k.readFunnel(n[:], args[5:])
		if err != nil {
			return err
		}
		late = &limit
	}
	o, err := argument.Commit(args[2], actual, late)
	if err != nil {
		return err
	}
	return replyCount(c, args[1], &o)
}
