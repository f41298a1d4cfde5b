package remote

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/keep/remote/engine"
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// errCrossSlot is Redis's error for keys of different slots.
var errCrossSlot = store.Failure{Line: "CROSSSLOT Keys in request don't hash to the same slot"}

var errTooLarge = tooLarge{store.Failure{Line: "ERR the states of the keys have more than 4 MiB, which is too much for one step; nothing was charged"}}

// tooLarge is the failure of a step on keys that have too many bytes together.
type tooLarge struct{ store.Failure }

func (tooLarge) Is(target error) bool { return target == store.ErrTooLarge }

func (t tooLarge) Unwrap() error { return t.Failure }

func (s *Store) Entry(nowNs int64, key store.Key) (e store.Entry, ok bool, err error) {
	st, ok, err := s.State(nowNs, key)
	return store.Entry{Kind: st.Kind, ExpiresNs: st.ExpiresNs}, ok, err
}

func (s *Store) State(nowNs int64, key store.Key) (st limiter.State, ok bool, err error) {
	serverNs, at, err := s.read(context.Background(), nowNs, []string{s.name(key)})
	if err != nil {
		return limiter.State{}, false, err
	}
	if f := &at[0]; f.Err != nil || f.State.ExpiresNs <= serverNs {
		return limiter.State{}, false, f.Err
	}
	st = at[0].State
	limiter.Shift(&st, nowNs-serverNs)
	return st, true, nil
}

// Delete implements store.Keys. It is one step for all keys of a slot, or of a server without a cluster.
func (s *Store) Delete(nowNs int64, keys []store.Key) (deleted int, err error) {
	for _, names := range s.steps(keys) {
		heads, serverNs, err := s.call(context.Background(), names[0], s.scripts.RemoveCall(nowNs, names))
		for _, name := range names {
			s.filter.Learn(name, limiter.Replaces, nil, 0)
		}
		if err != nil {
			return deleted, err
		}
		if len(heads) != len(names) {
			return deleted, limiter.ErrWrongType
		}
		for _, head := range heads {
			text, _ := head.(string)
			if _, expiresNs, ok := script.ReadHead(text); ok && expiresNs > serverNs {
				deleted++
			}
		}
	}
	return deleted, nil
}

// maxRemoved bounds the keys of a script, which blocks its server.
const maxRemoved = 1000

// steps groups the distinct names of keys by the step that deletes them.
func (s *Store) steps(keys []store.Key) [][]string {
	known := make(map[string]struct{}, len(keys))
	bySlot, slots := map[uint16][]string{}, []uint16(nil)
	for i := range keys {
		name, slot := s.name(keys[i]), uint16(0)
		if _, is := known[name]; is {
			continue
		}
		known[name] = struct{}{}
		if s.Pool.Clustered() {
			slot = s.Pool.Slot(name)
		}
		if bySlot[slot] == nil {
			slots = append(slots, slot)
		}
		bySlot[slot] = append(bySlot[slot], name)
	}
	steps := make([][]string, 0, len(slots))
	for _, slot := range slots {
		steps = slices.AppendSeq(steps, slices.Chunk(bySlot[slot], maxRemoved))
	}
	return steps
}

var errScansOne = store.Failure{Line: "ERR a store of a cluster cannot be scanned: no server of it has all keys"}

// Size implements store.Remote. It counts foreign keys, too.
func (s *Store) Size(ctx context.Context) (keys int, err error) {
	ctx, cancel := s.timeout(ctx)
	defer cancel()
	masters, err := s.Pool.Masters(ctx)
	if err != nil {
		return 0, failureOf(servers.FailedOf(err))
	}
	for _, m := range masters {
		n, err := m.Client().DBSize(ctx).Result()
		if err != nil {
			return 0, failureOf(readFailed(ctx, err))
		}
		keys += int(n)
	}
	return keys, nil
}

// readFailed describes the error of a command that changes nothing.
func readFailed(ctx context.Context, err error) *servers.Failed {
	f := &servers.Failed{Reason: servers.Network, Text: err.Error()}
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		f.Reason = servers.Timeout
	}
	return f
}

// Scan implements store.Remote. It visits our states under names with the store's prefix, and cuts that off.
// Any decimal number that is a time after now counts as a funnel.
func (s *Store) Scan(ctx context.Context, nowNs int64, cursor uint64, count int, visit func(key store.Key, e store.Entry)) (next uint64, err error) {
	if s.Pool.Clustered() {
		return 0, errScansOne
	}
	reply, serverNs, err := s.call(ctx, "", s.scripts.ScanCall(nowNs, cursor, s.KeyPrefix, count))
	if err != nil {
		return 0, err
	}
	text := ""
	if len(reply) > 0 {
		text, _ = reply[0].(string)
	}
	if next, err = strconv.ParseUint(text, 10, 64); err != nil {
		return 0, store.Failure{Line: "ERR a server returned a cursor that is no number"}
	}
	for at := 1; at+1 < len(reply); at += 2 {
		name, _ := reply[at].(string)
		head, _ := reply[at+1].(string)
		kind, expiresNs, ok := script.ReadHead(head)
		if !ok || expiresNs <= serverNs {
			continue
		}
		st := limiter.State{Kind: kind, ExpiresNs: expiresNs}
		limiter.Shift(&st, nowNs-serverNs)
		visit(store.Key{Name: []byte(strings.TrimPrefix(name, s.KeyPrefix))}, store.Entry{Kind: kind, ExpiresNs: st.ExpiresNs})
	}
	return next, nil
}

func (s *Store) Apply(nowNs int64, key store.Key, step store.Step) error {
	if s.leaksTooFast(step.Traits().IntervalNs) {
		return errTooFast
	}
	c, take := step.Copy()
	b := &batch{store: s, items: make([]item, 1), left: 1}
	it := &b.items[0]
	it.Job, it.batch = engine.Job{NowNs: nowNs, Step: c, Waiter: it}, b
	if s.deadlines.add(b, s.Timeout) {
		var starting engine.Starting
		s.engine.Queue(&starting, []byte(s.name(key)), &it.Job, nil)
		s.engine.Start(starting)
	} else {
		it.Fail(closed())
	}
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
