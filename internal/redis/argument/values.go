package argument

import (
	"math"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// valueRequests are the commands on values that are batched. An Executor completes their rules.
func valueRequests() map[string]Request {
	return map[string]Request{
		"get":    onValue(func([][]byte) (limiter.Rule, error) { return limiter.Reading(nil), nil }),
		"incr":   adding(1, false),
		"decr":   adding(-1, false),
		"incrby": adding(1, true),
		"decrby": adding(-1, true),
	}
}

func onValue(rule func(args [][]byte) (limiter.Rule, error)) Request {
	return func(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, _ *[]byte) (err error) {
		*q = store.Request{Key: store.Key{DB: db, Name: args[1]}}
		q.Rule, err = rule(args)
		return err
	}
}

// adding adds a number, or that times the second argument.
func adding(sign int64, given bool) Request {
	return onValue(func(args [][]byte) (limiter.Rule, error) {
		if !given {
			return limiter.Adding(sign, false), nil
		}
		n, err := Int(args[2])
		if err == nil && sign < 0 && n == math.MinInt64 {
			err = reply.Error("ERR decrement would overflow")
		}
		return limiter.Adding(sign*n, false), err
	})
}
