package remote

import (
	"context"
	"sync"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/engine"
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func (s *Store) Apply(nowNs int64, key store.Key, step store.Step) error {
	if s.leaksTooFast(step.Traits().IntervalNs) {
		return errTooFast
	}
	w := &caller{answered: make(chan struct{})}
	c, take := step.Copy()
	w.Job = engine.Job{NowNs: nowNs, Step: c, Waiter: w}
	var starting engine.Starting
	s.engine.Queue(&starting, []byte(s.name(key)), &w.Job, nil)
	s.engine.Start(starting)
	timer := time.NewTimer(s.Timeout)
	defer timer.Stop()
	select {
	case <-w.answered:
	case <-timer.C:
		w.expire(s.Timeout)
	}
	if w.failed != nil {
		s.counts.failed.Add(w.failed.Reason)
		return failureOf(w.failed)
	}
	if take(); w.err == nil {
		s.counts.outcome(c.Outcome())
	}
	return w.err
}

// caller is an engine.Waiter that waits on a channel.
type caller struct {
	engine.Job // the engine's until answered
	answered   chan struct{}

	mu    sync.Mutex // rank 50: guards all below until answered
	ended bool
	attempt
	err    error
	failed *servers.Failed
}

func (w *caller) Waits(to *servers.Server) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sentTo = to
	return !w.ended
}

func (w *caller) SentInVain(f *servers.Failed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempt = attempt{vain: f}
}

func (w *caller) Done(_ funnel.Result, err error) { w.end(err, nil) }

func (w *caller) Fail(f *servers.Failed) { w.end(nil, f) }

func (w *caller) end(err error, f *servers.Failed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended, w.err, w.failed = true, err, f
		close(w.answered)
	}
}

func (w *caller) expire(timeout time.Duration) {
	w.mu.Lock()
	f := w.tooLate(timeout)
	w.mu.Unlock()
	w.Fail(f)
}

// call runs a script on the server of a key, and waits for replicas if it writes. It returns the reply
// without the time, and the time. err is a store.Failure or of package limiter.
func (s *Store) call(ctx context.Context, key string, c *servers.Call) (rest []any, serverNs int64, err error) {
	ctx, cancel := s.timeout(ctx)
	defer cancel()
	wait := 0
	if s.scripts.Writes(c.Script) {
		wait = s.Wait
	}
	if err := s.Pool.Do(ctx, key, c, wait); err != nil {
		f := servers.FailedOf(err)
		s.counts.failed.Add(f.Reason)
		return nil, 0, failureOf(f)
	}
	return script.ReplyOf(c.Reply)
}

func (s *Store) read(ctx context.Context, nowNs int64, names []string) (
	serverNs int64, at []script.Found, err error,
) {
	ctx, cancel := s.timeout(ctx)
	defer cancel()
	sentNs := s.Now()
	rest, serverNs, err := s.call(ctx, names[0], s.scripts.ReadCall(nowNs, names, false))
	if err == nil && len(rest) != len(names) {
		rest, serverNs, err = s.call(ctx, names[0], s.scripts.ReadCall(nowNs, names, true))
	}
	if err != nil {
		return 0, nil, err
	}
	if len(rest) != len(names) {
		return 0, nil, errTooLarge
	}
	at = make([]script.Found, len(names))
	for i, v := range rest {
		at[i] = script.FoundIn(v)
		s.filter.Learn(names[i], limiter.Raises, &at[i].State, sentNs)
	}
	return serverNs, at, nil
}
