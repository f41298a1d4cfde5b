package keys

import (
	"math"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/glob"
)

// EXPIRE and its family delete a key if the time has passed. Otherwise they change only values and buckets:
// all other keys expire by their own rate.

// expire returns the handler for a time from now on, or for one at which a key expires.
func expire(unitMs int64, isTime bool) func(c execute.Call, args [][]byte) error {
	return func(c execute.Call, args [][]byte) error {
		when, err := expiryCondition(args[3:])
		if err != nil {
			return err
		}
		n, err := argument.Int(args[2])
		if err != nil {
			return err
		}
		nowMs := cutMs(c.Now())
		if n > math.MaxInt64/unitMs || n < math.MinInt64/unitMs || !isTime && n*unitMs > math.MaxInt64-nowMs {
			return invalidExpireTime(args[0])
		}
		atMs := n * unitMs
		if !isTime {
			atMs += nowMs
		}
		return retimed(c, args[1], limiter.Operation{Verb: limiter.Expire, AtNs: nsOf(atMs), When: when}, execute.Call.Change)
	}
}

// retimed changes a key's expiry and replies whether it did.
func retimed(c execute.Call, name []byte, o limiter.Operation, change func(execute.Call, []byte, store.Step) error) error {
	if err := change(c, name, &o); err != nil {
		return err
	}
	c.Reply().Int(o.Count)
	return nil
}

// latestNs is the latest expiry.
const latestNs = limiter.NeverNs - 1

// nsOf returns Unix milliseconds in nanoseconds, at most latestNs.
func nsOf(ms int64) int64 {
	switch {
	case ms > latestNs/int64(time.Millisecond):
		return latestNs
	case ms < 0:
		return 0
	}
	return ms * int64(time.Millisecond)
}

func invalidExpireTime(name []byte) error {
	return reply.Error("ERR invalid expire time in '" + glob.Fold(name) + "' command")
}

func expiryCondition(args [][]byte) (c limiter.ExpiryCondition, err error) {
	for _, arg := range args {
		switch glob.Fold(arg) {
		case "nx":
			c.None = true
		case "xx":
			c.Some = true
		case "gt":
			c.Later = true
		case "lt":
			c.Earlier = true
		default:
			return c, reply.Error("ERR Unsupported option " + resp.Printable(arg))
		}
	}
	switch {
	case c.None && (c.Some || c.Later || c.Earlier):
		return c, reply.Error("ERR NX and XX, GT or LT options at the same time are not compatible")
	case c.Later && c.Earlier:
		return c, reply.Error("ERR GT and LT options at the same time are not compatible")
	}
	return c, nil
}

// persist is PERSIST, which changes only values and buckets: a funnel without expiry would stay full.
func persist(c execute.Call, args [][]byte) error {
	return retimed(c, args[1], limiter.Operation{Verb: limiter.Expire, AtNs: limiter.NeverNs}, execute.Call.ChangeValue)
}
