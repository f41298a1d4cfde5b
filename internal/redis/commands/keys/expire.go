package keys

import (
	"math"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/session"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/glob"
)

// EXPIRE and its family delete a key whose time would be over. Any other time leaves it as it is, for a funnel drains at its own
// rate: when it is empty is what CL.THROTTLE made it. Only a bucket, which its callers fill, expires when it is told to.

func expire(c session.Call, args [][]byte) error { return expireKey(c, args, time.Second, false) }

func pexpire(c session.Call, args [][]byte) error { return expireKey(c, args, time.Millisecond, false) }

func expireAt(c session.Call, args [][]byte) error { return expireKey(c, args, time.Second, true) }

func pexpireAt(c session.Call, args [][]byte) error {
	return expireKey(c, args, time.Millisecond, true)
}

func expireKey(c session.Call, args [][]byte, unit time.Duration, isTime bool) error {
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

// expireAtNs has a bucket expire at a time.
func expireAtNs(c session.Call, name []byte, atNs int64) error {
	o := limiter.Operation{Verb: limiter.Expire, AtNs: atNs}
	if err := c.Operate(name, &o); err != nil {
		return err
	}
	c.Reply().Int(o.Count)
	return nil
}

// latestNs is the latest time at which a key can expire that does.
const latestNs = limiter.NeverNs - 1

// sumNs returns the time that is so many milliseconds after another, or latestNs if it is beyond that.
func sumNs(ns, ms int64) int64 {
	if ms > (latestNs-ns)/int64(time.Millisecond) {
		return latestNs
	}
	return ns + ms*int64(time.Millisecond)
}

func invalidExpireTime(name []byte) error {
	return reply.Error("ERR invalid expire time in '" + glob.Fold(name) + "' command")
}

// expireCondition is NX, XX, GT and LT of EXPIRE.
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

// allow says whether the condition lets a key have a new time. One that does not expire does so later than all others.
func (c expireCondition) allow(expiresNs, wantMs int64) bool {
	if expiresNs == limiter.NeverNs {
		return !c.xx && !c.gt
	}
	haveMs := cutMs(expiresNs)
	return !c.nx && (!c.gt || wantMs > haveMs) && (!c.lt || wantMs < haveMs)
}

// persist has a bucket never expire. Without its time a funnel would stay full.
func persist(c session.Call, args [][]byte) error {
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
