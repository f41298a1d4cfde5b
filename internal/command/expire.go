package command

import (
	"math"
	"time"

	"cellserver/internal/resp"
)

// EXPIRE and its family delete a key whose time would be over. Any other time leaves it as it is, for a funnel drains at
// its own rate: when it is empty is what CL.THROTTLE made it.

func expire(s *Session, args [][]byte) error { return s.expire(args, time.Second, false) }

func pexpire(s *Session, args [][]byte) error { return s.expire(args, time.Millisecond, false) }

func expireAt(s *Session, args [][]byte) error { return s.expire(args, time.Second, true) }

func pexpireAt(s *Session, args [][]byte) error { return s.expire(args, time.Millisecond, true) }

func (s *Session) expire(args [][]byte, unit time.Duration, isTime bool) error {
	options, err := expireOptions(args[3:])
	if err != nil {
		return err
	}
	n, err := s.integer(args[2])
	if err != nil {
		return err
	}
	tatNs, nowNs, ok := s.state(args[1])
	nowMs, unitMs := cutMs(nowNs), int64(unit/time.Millisecond)
	if n > math.MaxInt64/unitMs || n < math.MinInt64/unitMs || !isTime && n*unitMs > math.MaxInt64-nowMs {
		return replyError("ERR invalid expire time in '" + lower(args[0]) + "' command")
	}
	atMs := n * unitMs
	if !isTime {
		atMs += nowMs
	}
	if !ok || !options.allow(cutMs(tatNs), atMs) {
		s.w.Int(0)
		return nil
	}
	if atMs <= nowMs {
		s.delete(args[1])
	}
	s.w.Int(1)
	return nil
}

func (s *Session) delete(name []byte) {
	if s.space != nil {
		s.space.Delete(s.key(name))
	} else {
		s.engine.config.Store.Delete(s.now(), s.key(name))
	}
}

// expireCondition is NX, XX, GT and LT of EXPIRE.
type expireCondition struct{ nx, xx, gt, lt bool }

func expireOptions(args [][]byte) (c expireCondition, err error) {
	for _, arg := range args {
		switch lower(arg) {
		case "nx":
			c.nx = true
		case "xx":
			c.xx = true
		case "gt":
			c.gt = true
		case "lt":
			c.lt = true
		default:
			return c, replyError("ERR Unsupported option " + resp.Printable(arg))
		}
	}
	switch {
	case c.nx && (c.xx || c.gt || c.lt):
		return c, replyError("ERR NX and XX, GT or LT options at the same time are not compatible")
	case c.gt && c.lt:
		return c, replyError("ERR GT and LT options at the same time are not compatible")
	}
	return c, nil
}

// allow says whether the condition lets a key have a new time. Every key here has one.
func (c expireCondition) allow(haveMs, wantMs int64) bool {
	return !c.nx && (!c.gt || wantMs > haveMs) && (!c.lt || wantMs < haveMs)
}

// persist replies 0: without its time a funnel would stay full.
func persist(s *Session, _ [][]byte) error {
	s.w.Int(0)
	return nil
}
