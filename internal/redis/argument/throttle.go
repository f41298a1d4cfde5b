package argument

import (
	"maps"
	"math"
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// Request parses a batched command into q, in place because it is large. Composed key names are appended to
// names and are valid as long as these are.
type Request func(q *store.Request, db uint16, args [][]byte, reading funnel.Reading, names *Names) error

// Requests returns the parsers of batched commands by full name.
func Requests(named *namedlimit.Registry) map[string]Request {
	cell := throttle()
	cell.isInCell = true
	all := map[string]Request{
		"cl.throttle":    cell.request(),
		"rl.throttle":    throttle().request(),
		"cl.refund":      refund(throttle().request()),
		"cl.pthrottle":   (shape{names: [3]string{"max_burst", "count", "period_ms"}, unit: funnel.Milliseconds}).request(),
		"cl.tokenbucket": (shape{names: [3]string{"capacity", "refill_count", "period"}, isCapacity: true}).request(),
		"cl.debit":       debit(throttle().request()),
		"cl.quota":       quota(named.Calendars()),
		"cl.check":       check(named),
	}
	for command, s := range siblings() {
		all[command] = s.request
	}
	maps.Copy(all, valueRequests())
	return all
}

// shape describes a command that takes a funnel.
type shape struct {
	names      [3]string // names of max_burst, count and period
	unit       funnel.Unit
	isCapacity bool // max_burst is the whole capacity in any reading
	isInCell   bool // the command is redis-cell's, and so are its errors
}

func throttle() shape { return shape{names: [3]string{"max_burst", "count", "period"}} }

// request returns the Request of a command on a funnel.
func (s shape) request() Request {
	unit, isCapacity := s.unit, s.isCapacity
	return func(q *store.Request, db uint16, args [][]byte, reading funnel.Reading, _ *Names) error {
		if len(args) < 5 || len(args) > 6 {
			return s.arity()
		}
		limit, quantity := limiter.Spec{Unit: unit, Reading: reading}, int64(1)
		for i, arg := range args[2:] { // faster than Numbers by a few nanoseconds
			value, ok := integer(arg)
			if !ok {
				return s.refused(notInteger(arg))
			}
			if i < 3 {
				limit.Numbers[i] = value
			} else {
				quantity = value
			}
		}
		if isCapacity {
			limit.Reading = funnel.Capacity
		}
		if err := limit.Build(&q.Rule); err != nil {
			return s.named(err)
		}
		q.Key.DB, q.Key.Name, q.Quantity = db, args[1], quantity
		return nil
	}
}

func (s shape) arity() error {
	if s.isInCell {
		return reply.Cell("Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]")
	}
	return reply.ErrArity
}

// refused puts an error about an argument into the command's words.
func (s shape) refused(err error) error {
	if s.isInCell {
		return reply.InCell(err)
	}
	return err
}

// named puts the command's argument names into a limit's error.
func (s shape) named(err error) error {
	names := strings.NewReplacer("max_burst", s.names[0], "count", s.names[1], "period", s.names[2])
	return s.refused(reply.Error("ERR " + names.Replace(err.Error())))
}

// refund turns a request for units into their return.
func refund(request Request) Request {
	return func(q *store.Request, db uint16, args [][]byte, reading funnel.Reading, names *Names) error {
		if err := request(q, db, args, reading, names); err != nil {
			return err
		}
		q.Quantity = -q.Quantity
		return checkDebit(-q.Quantity)
	}
}

// debit turns a request for units into their debit. There is at least one.
func debit(request Request) Request {
	return func(q *store.Request, db uint16, args [][]byte, reading funnel.Reading, names *Names) error {
		if len(args) != 6 {
			return reply.ErrArity
		}
		if err := request(q, db, args, reading, names); err != nil {
			return err
		}
		q.Rule.Flags = limiter.Debit
		return checkDebit(q.Quantity)
	}
}

// Peek parses CL.PEEK, whose quantity defaults to 0.
func Peek(q *store.Request, db uint16, args [][]byte, reading funnel.Reading) error {
	err := throttle().request()(q, db, args, reading, nil)
	if err == nil && len(args) == 5 {
		q.Quantity = 0
	}
	return err
}

// integer reads a number by redis-cell's grammar: decimal, an optional sign, leading zeros allowed.
func integer(b []byte) (n int64, ok bool) {
	const maxDigits = 18 // fit 64 bits; strconv, which takes three times as long, reads the rest
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

// valueRequests are the commands on values that are batched. An Executor completes their rules.
func valueRequests() map[string]Request {
	return map[string]Request{
		"get": func(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, _ *Names) error {
			q.Key.DB, q.Key.Name = db, args[1]
			q.Rule.Read(nil)
			return nil
		},
		"incr":   one(1),
		"decr":   one(-1),
		"incrby": by(1),
		"decrby": by(-1),
		"increx": increx,
	}
}

func one(n int64) Request {
	return func(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, _ *Names) error {
		q.Key.DB, q.Key.Name = db, args[1]
		q.Rule.Add(n)
		return nil
	}
}

func by(sign int64) Request {
	return func(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, _ *Names) error {
		n, err := Int(args[2])
		switch {
		case err != nil:
			return err
		case sign < 0 && n == math.MinInt64:
			return reply.Error("ERR decrement would overflow")
		}
		q.Key.DB, q.Key.Name = db, args[1]
		q.Rule.Add(sign * n)
		return nil
	}
}
