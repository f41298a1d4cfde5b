package argument

import (
	"strconv"

	"cellserver/internal/funnel"
	"cellserver/internal/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// Throttle reads the arguments of CL.THROTTLE in a database into q, in place because it is large.
func Throttle(q *store.Request, db uint16, args [][]byte, reading funnel.Reading) error {
	if len(args) < 5 || len(args) > 6 {
		return reply.Cell("Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]")
	}
	numbers := [4]int64{3: 1} // max_burst, count, period, quantity
	for i, arg := range args[2:] {
		n, ok := integer(arg)
		if !ok {
			return reply.Cell("Couldn't parse as integer: " + resp.Printable(arg))
		}
		numbers[i] = n
	}
	limit, err := funnel.NewLimit(reading, numbers[0], numbers[1], numbers[2])
	if err != nil {
		return err
	}
	q.Key = store.Key{DB: db, Name: args[1]}
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
