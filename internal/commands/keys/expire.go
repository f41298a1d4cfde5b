package keys

import (
	"math"
	"time"

	"cellserver/internal/argument"
	"cellserver/internal/glob"
	"cellserver/internal/reply"
	"cellserver/internal/resp"
	"cellserver/internal/session"
	"cellserver/internal/store"
)

// EXPIRE and its family delete a key whose time would be over. Any other time leaves it as it is, for a funnel drains at
// its own rate: when it is empty is what CL.THROTTLE made it.

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
	tatNs, ok, err := c.TAT(args[1])
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
	if !ok || !options.allow(cutMs(tatNs), atMs) {
		c.Reply().Int(0)
		return nil
	}
	if atMs <= nowMs {
		if _, err := c.Delete([]store.Key{c.Key(args[1])}); err != nil {
			return err
		}
	}
	c.Reply().Int(1)
	return nil
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

// allow says whether the condition lets a key have a new time. Every key here has one.
func (c expireCondition) allow(haveMs, wantMs int64) bool {
	return !c.nx && (!c.gt || wantMs > haveMs) && (!c.lt || wantMs < haveMs)
}

// persist replies 0: without its time a funnel would stay full.
func persist(c session.Call, _ [][]byte) error {
	c.Reply().Int(0)
	return nil
}
