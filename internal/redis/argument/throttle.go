package argument

import (
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// Request reads the arguments of a command that is decided in batches, in a database, into q, in place because it is large. A
// key's name that is none of the arguments is appended to joined, and is valid for as long as that is.
type Request func(q *store.Request, db uint16, args [][]byte, reading funnel.Reading, joined *[]byte) error

// Requests returns what reads each of the commands that are decided in batches, by their full names.
func Requests(named *namedlimit.Registry) map[string]Request {
	all := map[string]Request{
		"cl.throttle":    throttle("cl.throttle").request(),
		"rl.throttle":    throttle("rl.throttle").request(),
		"cl.refund":      refund(throttle("cl.refund").request()),
		"cl.pthrottle":   (shape{"cl.pthrottle", [3]string{"max_burst", "count", "period_ms"}, funnel.Milliseconds, false}).request(),
		"cl.tokenbucket": (shape{"cl.tokenbucket", [3]string{"capacity", "refill_count", "period"}, funnel.Seconds, true}).request(),
		"cl.check":       check(named),
	}
	for command, s := range siblings() {
		all[command] = s.request
	}
	return all
}

// shape is how a command has the shape of a funnel as its arguments.
type shape struct {
	command    string
	names      [3]string // of max_burst, count and period
	unit       funnel.Unit
	isCapacity bool // max_burst is the whole capacity, whatever the reading
}

func throttle(command string) shape {
	return shape{command: command, names: [3]string{"max_burst", "count", "period"}}
}

// request is the Request of a command that requests units of a funnel.
func (s shape) request() Request {
	unit, isCapacity := s.unit, s.isCapacity
	return func(q *store.Request, db uint16, args [][]byte, reading funnel.Reading, _ *[]byte) error {
		if len(args) < 5 || len(args) > 6 {
			return s.usage()
		}
		n := [4]int64{3: 1}            // max_burst, count, period, quantity
		for i, arg := range args[2:] { // Numbers takes a few nanoseconds more
			value, ok := integer(arg)
			if !ok {
				return notInteger(arg)
			}
			n[i] = value
		}
		if isCapacity {
			reading = funnel.Capacity
		}
		limit := limiter.Spec{Unit: unit, Reading: reading, Numbers: limiter.Numbers(n[:])}
		if err := limit.Build(&q.Rule); err != nil {
			return s.named(err)
		}
		q.Key = store.Key{DB: db, Name: args[1]}
		q.Quantity = n[3]
		return nil
	}
}

func (s shape) usage() error {
	return reply.Cell("Usage: " + s.command + " <key> <" + s.names[0] + "> <" + s.names[1] + " per period> <" + s.names[2] + "> [<quantity>]")
}

// named is a limit's error with the command's own names of the arguments.
func (s shape) named(err error) error {
	names := strings.NewReplacer("max_burst", s.names[0], "count", s.names[1], "period", s.names[2])
	return reply.Cell(names.Replace(err.Error()))
}

// refund has a command give back the units that it would otherwise request.
func refund(request Request) Request {
	return func(q *store.Request, db uint16, args [][]byte, reading funnel.Reading, joined *[]byte) error {
		if err := request(q, db, args, reading, joined); err != nil {
			return err
		}
		if q.Quantity < 1 {
			return &funnel.ArgumentError{Name: "quantity", Value: q.Quantity, Least: 1}
		}
		q.Quantity = -q.Quantity
		return nil
	}
}

// Peek reads the arguments of CL.PEEK, whose quantity is 0 unless it is given.
func Peek(q *store.Request, db uint16, args [][]byte, reading funnel.Reading) error {
	err := throttle("cl.peek").request()(q, db, args, reading, nil)
	if err == nil && len(args) == 5 {
		q.Quantity = 0
	}
	return err
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
