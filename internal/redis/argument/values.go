package argument

import (
	"math"

	"cellserver/internal/funnel"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// valueRequests are the commands on values that are batched. An Executor completes their rules.
func valueRequests() map[string]Request {
	return map[string]Request{
		"get": func(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, _ *[]byte) error {
			q.Key.DB, q.Key.Name = db, args[1]
			q.Rule.Read(nil)
			return nil
		},
		"incr":   one(1),
		"decr":   one(-1),
		"incrby": by(1),
		"decrby": by(-1),
	}
}

func one(n int64) Request {
	return func(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, _ *[]byte) error {
		q.Key.DB, q.Key.Name = db, args[1]
		q.Rule.Add(n)
		return nil
	}
}

func by(sign int64) Request {
	return func(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, _ *[]byte) error {
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
