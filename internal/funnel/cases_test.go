package funnel

import (
	"math"

	"cellserver/internal/funnel/vectors"
)

// funnelCase is a sequence of calls that shows one property, on fresh keys.
type funnelCase struct {
	Name     string
	Capacity bool // max_burst is read as the whole capacity
	Rows     []vectors.Row
}

// cases returns hand-checked cases from time t0 on.
func cases() []funnelCase {
	k := func(maxBurst, count, periodSec int64) limit { return limit{maxBurst, count, periodSec} }
	reply, small, one := k(15, 30, 60), k(4, 1, 10), k(0, 1, 1)
	end := math.MaxInt64 - t0 // of time
	return []funnelCase{
		{"the articles' reply limit", false, []vectors.Row{reply.call(0, 1, 0, 16, 15, -1, 2)}},
		{"the same, read as capacity", true, []vectors.Row{reply.call(0, 1, 0, 15, 14, -1, 2)}},
		{"one a second", false, []vectors.Row{
			one.call(0, 1, 0, 1, 0, -1, 1),
			one.call(0, 1, 1, 1, 0, 1, 1),
			one.call(sec-ms, 1, 1, 1, 0, 1, 1),
			one.call(sec-1, 1, 1, 1, 0, 0, 0), // a remainder below a millisecond is dropped
			one.call(sec, 1, 0, 1, 0, -1, 1),
		}},
		{"more than the funnel holds", false, []vectors.Row{
			small.call(0, 6, 1, 5, 5, -1, 0),
			small.call(0, math.MaxInt64, 1, 5, 5, -1, 0),
			small.call(0, 5, 0, 5, 0, -1, 50),
			small.call(0, 6, 1, 5, 0, -1, 50),
		}},
		{"more than an unused funnel holds", false, []vectors.Row{
			small.call(0, math.MaxInt64, 1, 5, 5, -1, 0),
			k(0, 1_000_000_000, 1).call(0, 1<<62, 1, 1, 1, -1, 0),
		}},
		{"a probe of an unused funnel", false, []vectors.Row{small.call(0, 0, 0, 5, 5, -1, 0)}},
		{"a probe changes nothing", false, []vectors.Row{
			small.call(0, 0, 0, 5, 5, -1, 0),
			small.call(0, 2, 0, 5, 3, -1, 20),
			small.call(0, 0, 0, 5, 3, -1, 20),
			small.call(0, 3, 0, 5, 0, -1, 50),
			small.call(0, 0, 0, 5, 0, -1, 50),
		}},
		{"quantities", false, []vectors.Row{
			small.call(0, 3, 0, 5, 2, -1, 30),
			small.call(0, 3, 1, 5, 2, 10, 30),
			small.call(0, 2, 0, 5, 0, -1, 50),
			small.call(0, 0, 0, 5, 0, -1, 50),
			small.call(0, 6, 1, 5, 0, -1, 50),
		}},
		{"a refund never goes beyond empty", false, []vectors.Row{
			small.call(0, -1, 0, 5, 5, -1, 0),
			small.call(0, 3, 0, 5, 2, -1, 30),
			small.call(0, -1, 0, 5, 3, -1, 20),
			small.call(0, -100, 0, 5, 5, -1, 0),
			small.call(0, math.MinInt64, 0, 5, 5, -1, 0),
			small.call(0, 5, 0, 5, 0, -1, 50),
		}},
		{"a refund leaves no state", false, []vectors.Row{small.call(0, 3, 0, 5, 2, -1, 30), small.call(0, -3, 0, 5, 5, -1, 0)}},
		{"the limit may change from call to call", false, []vectors.Row{
			k(9, 10, 60).call(0, 1, 0, 10, 9, -1, 6),
			one.call(0, 1, 1, 1, 0, 6, 6),
			k(9, 1, 6).call(0, 1, 0, 10, 8, -1, 12),
		}},
		{"milliseconds round up, less is dropped", false, []vectors.Row{
			k(9, 1000, 1).call(0, 1, 0, 10, 9, -1, 1),
			k(9, 1000, 1).call(ms/2, 0, 0, 10, 9, -1, 0),
		}},
		{"the slowest funnel", false, []vectors.Row{k(0, 1, 4611686018).call(0, 1, 0, 1, 0, -1, 4611686018)}},
		{"the largest funnel", false, []vectors.Row{k(1<<62-1, 1_000_000_000, 1).call(0, 0, 0, 1<<62, 1<<62, -1, 0)}},
		{"not whole microseconds", false, []vectors.Row{k(9, 300_000, 1).call(0, 3, 0, 10, 7, -1, 0)}},
		{"a TAT beyond the end of time", false, []vectors.Row{
			one.call(end-ms, 1, 0, 1, 0, -1, 1),
			one.call(end-ms, 1, 1, 1, 0, 1, 1),
			one.call(end-1, 1, 1, 1, 0, 0, 0),
		}},
	}
}

// limit makes calls by one limit.
type limit struct{ maxBurst, count, periodSec int64 }

func (l limit) call(afterNs, quantity, limited, limit, remaining, retryAfterSec, resetAfterSec int64) vectors.Row {
	return vectors.Row{
		AtNs: t0 + afterNs, Key: "a", MaxBurst: l.maxBurst, Count: l.count, PeriodSec: l.periodSec, Quantity: quantity,
		Limited: limited == 1, Limit: limit, Remaining: remaining, RetryAfter: retryAfterSec, ResetAfter: resetAfterSec,
	}
}
