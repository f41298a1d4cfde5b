package servers

import (
	"context"
	"errors"
	"time"
)

// Between attempts that a server must first become ready for.
const (
	firstPause = time.Millisecond
	maxPause   = 16 * time.Millisecond
)

// Do makes one call and waits for its reply. The call goes to the server of key, or to where that sends it, and is sent again
// while ctx lasts and it was certainly not executed, for a reason that passes. So many replicas must have it, as with Send. The
// error is c.Err: nil, or a *Failed.
func (p *Pool) Do(ctx context.Context, key string, c *Call, wait int) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.config.Timeout)
		defer cancel()
	}
	var to *Redirect
	var before *Failed
	pause := firstPause
	for {
		c.Asking = to != nil && to.Asking
		failed := p.once(ctx, key, to, c, wait)
		if failed != nil && before != nil && saysLess(failed) {
			c.Err = before
			return c.Err
		}
		if failed == nil || !failed.Again() {
			return c.Err
		}
		before = failed
		last := to
		if to = failed.Redirect; to != nil && last == nil {
			continue // at once, but not round and round
		}
		if !sleep(ctx, pause) {
			return c.Err
		}
		pause = min(2*pause, maxPause)
	}
}

// saysLess is whether an attempt has only not come through, so that the one before says more of why.
func saysLess(f *Failed) bool {
	return f.Executed == No && (f.Reason == CircuitOpen || f.Reason == QueueFull || f.Reason == Timeout)
}

// once sends the call one time.
func (p *Pool) once(ctx context.Context, key string, to *Redirect, c *Call, wait int) *Failed {
	var s *Server
	if to != nil {
		s = p.At(to.Addr)
	} else if s, c.Err = p.Of(ctx, key); c.Err != nil {
		c.Reply = nil
		return asFailed(c.Err)
	}
	lane := s.single
	if c.Large {
		lane = s.large
	}
	s.sendIn(ctx, lane, []*Call{c}, wait)
	return asFailed(c.Err)
}

func asFailed(err error) *Failed {
	f, _ := errors.AsType[*Failed](err)
	return f
}

// sleep is false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
