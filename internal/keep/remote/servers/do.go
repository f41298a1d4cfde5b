package servers

import (
	"context"
	"errors"
	"time"
)

// Pauses between attempts.
const (
	firstPause = time.Millisecond
	maxPause   = 16 * time.Millisecond
)

// Do makes one call on key's server, following redirections, and waits for its reply. It repeats the call
// until ctx ends while it was certainly not executed, for a reason that passes. wait is as for Send. The
// error is c.Err: nil or a *Failed.
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
			continue // once without a pause
		}
		if !sleep(ctx, pause) {
			return c.Err
		}
		pause = min(2*pause, maxPause)
	}
}

// saysLess reports whether an attempt did not reach the server, so that the failure before says more.
func saysLess(f *Failed) bool {
	return f.Executed == No && (f.Reason == CircuitOpen || f.Reason == QueueFull || f.Reason == Timeout)
}

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

// sleep returns false if the context ends first.
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
