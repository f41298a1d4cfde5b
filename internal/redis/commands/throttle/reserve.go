package throttle

import (
	"math/rand/v2"
	"strconv"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/wire/glob"
)

const nsPerMs = 1_000_000

// reserve is CL.RESERVE key max_burst count period amount ttl_ms.
func (k handlers) reserve(c execute.Call, args [][]byte) error {
	var n [4]int64 // max_burst, count, period, amount
	limit, err := k.readFunnel(n[:], args[2:])
	if err != nil {
		return err
	}
	if n[3] < 1 {
		return reply.Cell("amount must be at least 1; CL.PEEK looks at a funnel, and CL.REFUND gives units back")
	}
	ttlNs, err := duration("ttl_ms", args[6])
	if err != nil {
		return err
	}
	o := limiter.Operation{Verb: limiter.Reserve, Funnel: limit, Quantity: n[3], ID: rand.Uint64N(limiter.MaxUndatedID + 1), Dated: true, TTLNs: ttlNs}
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

const maxDurationBytes = 64 // more than any valid duration has

// duration parses milliseconds, or numbers with units, such as 30s.
func duration(name string, arg []byte) (ns int64, err error) {
	const most = funnel.MaxToleranceNs / nsPerMs // milliseconds
	if ms, err := argument.Number(arg); err == nil {
		ns = max(-1, min(ms, most+1)) * nsPerMs
	} else {
		d, err := time.ParseDuration(string(arg[:min(len(arg), maxDurationBytes)]))
		if err != nil || len(arg) > maxDurationBytes {
			return 0, reply.Cell(name + " must be milliseconds, such as 30000, " +
				"or a time with a unit, such as 30s, got " + resp.Printable(arg))
		}
		ns = int64(d)
	}
	switch {
	case ns < nsPerMs:
		return 0, reply.Cell(name + " must be at least 1 ms, got " + resp.Printable(arg))
	case ns > most*nsPerMs:
		return 0, reply.Cell(name + " is more than 2^62 ns (146 years)")
	}
	return ns, nil
}

// commit is CL.COMMIT key id actual [LATE max_burst count period].
func (k handlers) commit(c execute.Call, args [][]byte) error {
	id, err := strconv.ParseUint(string(args[2]), 10, 64)
	if err != nil {
		return reply.Cell("id must be what CL.RESERVE has returned, got " + resp.Printable(args[2]))
	}
	actual, err := argument.Number(args[3])
	switch {
	case err != nil:
		return err
	case actual < 0:
		return &funnel.ArgumentError{Name: "actual", Value: actual}
	}
	o := limiter.Operation{Verb: limiter.Commit, ID: id, Quantity: actual}
	const lateArgs = 8
	if o.Late = len(args) > 4; o.Late {
		var n [3]int64 // max_burst, count, period
		if len(args) != lateArgs || !glob.IsFolded(args[4], "late") {
			return reply.Cell("Usage: cl.commit <key> <id> <actual> [LATE <max_burst> <count per period> <period>]")
		}
		if o.Funnel, err = k.readFunnel(n[:], args[5:]); err != nil {
			return err
		}
	}
	return replyCount(c, args[1], &o)
}
