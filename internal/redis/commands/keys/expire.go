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

// EXPIRE and its family delete a key if the time has passed. Otherwise they change only buckets, which do not
// drain: all other keys expire by their own rate.

func expire(c execute.Call, args [][]byte) error { return expireKey(c, args, time.Second, false) }

func pexpire(c execute.Call, args [][]byte) error { return expireKey(c, args, time.Millisecond, false) }

func expireAt(c execute.Call, args [][]byte) error { return expireKey(c, args, time.Second, true) }

func pexpireAt(c execute.Call, args [][]byte) error {
	return expireKey(c, args, time.Millisecond, true)
}

func expireKey(c execute.Call, args [][]byte, unit time.Duration, isTime bool) error {
	options, err := expireOptions(args[3:])
	if err != nil {
		return err
	}
	n, err := argument.Int(args[2])
	if err != nil {
		return err
	}
	e, ok, err := c.Entry(args[1])
	if err != nil {
		return err
	}
	nowMs, unitMs := cutMs(c.Now()), int64(unit/time.Millisecond)
	if n > math.MaxInt64/unitMs || n < math.MinInt64/unitMs || !isTime && n*unitMs > math.MaxInt64-nowMs {
		return invalidExpireTime(args[0])
	}
	atMs := n * unitMs
	if !isTime {
		atMs += nowMs
	}
	switch {
	case !ok || !options.allow(e.ExpiresNs, atMs):
		c.Reply().Int(0)
		return nil
	case atMs <= nowMs:
		if _, err := c.Delete([]store.Key{c.Key(args[1])}); err != nil {
			return err
		}
	case e.Kind.Row().Endless && isTime:
		return expireAtNs(c, args[1], sumNs(0, atMs))
	case e.Kind.Row().Endless:
		return expireAtNs(c, args[1], sumNs(c.Now(), n*unitMs))
	}
	c.Reply().Int(1)
	return nil
}

// expireAtNs sets a bucket's expiry.
func expireAtNs(c execute.Call, name []byte, atNs int64) error {
	o := limiter.Operation{Verb: limiter.Expire, AtNs: atNs}
	if err := c.Operate(name, &o); err != nil {
		return err
	}
	c.Reply().Int(o.Count)
	return nil
}

// latestNs is the latest expiry.
const latestNs = limiter.NeverNs - 1

// sumNs returns ns + ms, saturating at latestNs.
func sumNs(ns, ms int64) int64 {
	if ms > (latestNs-ns)/int64(time.Millisecond) {
		return latestNs
	}
	return ns + ms*int64(time.Millisecond)
}

func invalidExpireTime(name []byte) error {
	return reply.Error("ERR invalid expire time in '" + glob.Fold(name) + "' command")
}

type expireCondition struct{ nx, xx, gt, lt bool }

func expireOptions(args [][]byte) (c expireCondition, err error) {
	for _, arg := range args {
		switch glob.Fold(arg) {
		case "nx":
			c.nx = true
		case "xx":
			c.xx = true
		case "gt":
			c.gt = true
		case "lt":
			c.lt = true
		default:
			return c, reply.Error("ERR Unsupported option " + resp.Printable(arg))
		}
	}
	switch {
	case c.nx && (c.xx || c.gt || c.lt):
		return c, reply.Error("ERR NX and XX, GT or LT options at the same time are not compatible")
	case c.gt && c.lt:
		return c, reply.Error("ERR GT and LT options at the same time are not compatible")
	}
	return c, nil
}

// allow reports whether a key may get a new time. No expiry is later than any.
func (c expireCondition) allow(expiresNs, wantMs int64) bool {
	if expiresNs == limiter.NeverNs {
		return !c.xx && !c.gt
	}
	haveMs := cutMs(expiresNs)
	return !c.nx && (!c.gt || wantMs > haveMs) && (!c.lt || wantMs < haveMs)
}

// persist is PERSIST, which changes only buckets: a funnel without expiry would stay full.
func persist(c execute.Call, args [][]byte) error {
	e, ok, err := c.Entry(args[1])
	switch {
	case err != nil:
		return err
	case ok && e.Kind.Row().Endless && e.ExpiresNs != limiter.NeverNs:
		return expireAtNs(c, args[1], limiter.NeverNs)
	}
	c.Reply().Int(0)
	return nil
}
