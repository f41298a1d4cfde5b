package servers

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"cellserver/internal/resp"
)

// Send executes calls in order, in a single pipeline, and sets the Reply or Err of each. Calls fail with
// Replicas, although executed, if fewer than wait replicas have them before ctx ends. Unknown scripts are
// loaded and their calls sent again; nothing else is ever sent twice.
func (p *Pool) Send(ctx context.Context, s *Server, calls []*Call, wait int) {
	if calls[0].Large {
		s.sendIn(ctx, s.large, calls, wait)
		return
	}
	s.send(ctx, calls, wait)
}

func (s *Server) send(ctx context.Context, calls []*Call, wait int) {
	for _, c := range calls {
		c.Reply, c.Err = nil, nil
	}
	p := s.pool
	done, err := s.breaker.Allow()
	if err != nil {
		p.noticed()
		s.fail(calls, &Failed{Reason: CircuitOpen, Text: s.Addr + ": paused after failures: " + s.reasonOpen()})
		return
	}
	start := time.Now()
	s.usedNs.Store(int64(start.Sub(p.start)))
	unknown, broken := s.exchange(ctx, calls, nil, wait)
	if len(unknown) > 0 && broken == nil {
		_, broken = s.exchange(ctx, unknown, scriptsOf(unknown), wait)
	}
	s.judge(done, calls, broken, time.Since(start))
	s.count(calls)
}

func (s *Server) fail(calls []*Call, f *Failed) {
	for _, c := range calls {
		c.Err = f
	}
	s.count(calls)
}

func (s *Server) count(calls []*Call) {
	for _, c := range calls {
		if f, ok := c.Err.(*Failed); ok { //nolint:errorlint // set by this package
			if s.counts.failed.Add(f.Reason); f.Redirect != nil {
				s.counts.redirected.Add(1)
			}
			switch f.Reason {
			case Timeout, Network, Cluster, ReadOnly:
				s.pool.noticed()
			default:
			}
		}
	}
}

// errNeutral is an outcome that the circuit breaker does not count.
var errNeutral = errors.New("servers: not about the server")

// judge reports an exchange to the circuit breaker. Any answer is a success. A timeout does not count if
// little time was left, or if it is due to a single key.
func (s *Server) judge(done func(error), calls []*Call, broken *Failed, took time.Duration) {
	switch {
	case broken == nil:
		if s.lastErr.Load() != nil {
			s.lastErr.Store(nil)
		}
		s.slow.answered()
		done(nil)
	case broken.Reason == QueueFull || broken.Reason == Timeout && took < s.pool.config.Timeout/2 || s.pool.closed.Load():
		done(errNeutral)
	case broken.Reason == Timeout && s.breaker.State() == gobreaker.StateClosed && s.slow.known(calls):
		done(errNeutral)
	default:
		s.lastErr.Store(&broken.Text)
		done(broken)
	}
}

// exchange sends one pipeline: scripts to load, calls, and WAIT. It returns the calls with unknown scripts,
// and a failure of the connection.
func (s *Server) exchange(ctx context.Context, calls []*Call, load []*Script, wait int) (unknown []*Call, broken *Failed) {
	client := s.Client()
	pipe := client.Pipeline()
	loads, sent := make([]answer, len(load)), make([]answer, len(calls))
	for i, script := range load {
		loads[i].add(ctx, pipe, "script", "load", script.source)
		s.counts.loaded.Add(1)
	}
	for i, c := range calls {
		if c.Asking {
			_ = pipe.Do(ctx, "asking") // only appends
		}
		sent[i].add(ctx, pipe, c.command()...)
	}
	var waited answer
	if wait > 0 {
		waited.add(ctx, pipe, "wait", wait, s.waitMs(ctx))
	}
	_, err := pipe.Exec(ctx)
	if errors.Is(err, redis.ErrClosed) {
		s.reopen(client)
	}
	for i, c := range calls {
		var noScript bool
		if noScript, broken = sent[i].settle(s, c, err, broken); noScript {
			unknown = append(unknown, c)
		}
	}
	s.loaded(loads, unknown)
	if wait > 0 {
		waited.replicas(s, calls, wait)
	}
	return unknown, broken
}

// loaded sets the errors of calls whose scripts could not be loaded.
func (s *Server) loaded(loads []answer, unknown []*Call) {
	for i := range loads {
		if err := loads[i].err; err != nil && len(unknown) > 0 {
			for _, c := range unknown {
				c.Err = &Failed{Reason: NoScripting, Text: s.Addr + ": " + resp.ErrorLine(err.Error())}
			}
			return
		}
	}
}

// waitMs is WAIT's timeout: it must answer before we stop reading.
func (s *Server) waitMs(ctx context.Context) int64 {
	left := s.Client().Options().ReadTimeout
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline))
	}
	return max(1, (left * 3 / 4).Milliseconds()) // 0 means no timeout
}

func (c *Call) command() []any {
	command := make([]any, 0, 3+len(c.Keys)+len(c.Args))
	command = append(command, "evalsha", c.Script.hash, len(c.Keys))
	for _, key := range c.Keys {
		command = append(command, key)
	}
	return append(command, c.Args...)
}

func scriptsOf(calls []*Call) []*Script {
	var scripts []*Script
	for _, c := range calls {
		if !slices.Contains(scripts, c.Script) {
			scripts = append(scripts, c.Script)
		}
	}
	return scripts
}

// answer is a command in a pipeline that notes whether it was written and answered: go-redis gives all
// commands the error of the connection, also the answered ones.
type answer struct {
	*redis.Cmd
	text    string // the second word
	written bool
	settled bool
	err     error
}

// add appends a command to a pipeline. Its second word must be text or a number.
func (a *answer) add(ctx context.Context, pipe redis.Pipeliner, words ...any) {
	if text, ok := words[1].(string); ok {
		a.text, words[1] = text, a
	}
	a.Cmd = redis.NewCmd(ctx, words...)
	_ = pipe.Process(ctx, a) // only appends
}

// MarshalBinary is called as the command is written to a connection's buffer.
func (a *answer) MarshalBinary() ([]byte, error) {
	a.written = true
	return []byte(a.text), nil
}

// SetErr is called for the command first, then perhaps for the pipeline.
func (a *answer) SetErr(err error) {
	if !a.settled {
		a.settled, a.err = true, err
	}
	a.Cmd.SetErr(err)
}

// settle sets a call's reply or error; err is the pipeline's. broken collects the connection's failure.
func (a *answer) settle(s *Server, c *Call, err error, broken *Failed) (noScript bool, _ *Failed) {
	if a.settled {
		err = a.err
	}
	c.Err = nil
	switch {
	case a.settled && err == nil:
		c.Reply = a.Val()
	case a.settled && errors.Is(err, redis.Nil):
	case a.written && isReply(err):
		f := refused(s, err)
		c.Err = f
		return redis.HasErrorPrefix(err, "NOSCRIPT"), broken
	default:
		f := unanswered(s, err, a.written)
		c.Err = f
		if broken == nil || f.Executed == Maybe {
			broken = f
		}
	}
	return false, broken
}

// replicas fails calls that were executed if too few replicas have them.
func (a *answer) replicas(s *Server, calls []*Call, wait int) {
	n, ok := int64(0), false
	if a.settled && a.err == nil {
		n, ok = a.Val().(int64)
	}
	if ok && n >= int64(wait) {
		return
	}
	for _, c := range calls {
		if c.Err == nil {
			c.Err = tooFew(s, n, wait, ok)
		}
	}
}

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
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
