package remote

import (
	"context"

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
	c, take := step.Copy()
	b := &batch{store: s, items: make([]item, 1), left: 1}
	it := &b.items[0]
	it.Job, it.batch = engine.Job{NowNs: nowNs, Step: c, Waiter: it}, b
	if !s.deadlines.add(b, s.Timeout) {
		return failureOf(closed())
	}
	var starting engine.Starting
	s.engine.Queue(&starting, []byte(s.name(key)), &it.Job, nil)
	s.engine.Start(starting)
	answered := make(chan struct{})
	b.Notify(func() { close(answered) })
	<-answered
	if it.failed != nil {
		return failureOf(it.failed)
	}
	take()
	return it.err
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
