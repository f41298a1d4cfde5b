package transfer

import (
	"cmp"
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/limiter"
	"cellserver/internal/resp"
)

// put writes entries to a database, except those expired by the server's clock or older than the state there.
// A Redis takes funnels and values only; funnels expire as redis-cell has them expire.
func (s *Server) put(ctx context.Context, db int, entries []Entry, counts *Counts) error {
	s.isTarget = true
	s.use(db)
	nowNs, err := s.NowNs(ctx)
	if err != nil {
		return err
	}
	entries, err = s.missing(ctx, nowNs, entries, counts)
	if err != nil || len(entries) == 0 {
		return err
	}
	replies, err := s.pipelined(ctx, func(p redis.Pipeliner) {
		for i := range entries {
			p.Do(ctx, s.write(&entries[i], nowNs)...)
		}
	})
	if err != nil {
		return err
	}
	nowNs = s.clock.nowNs()
	for i, reply := range replies {
		switch err := reply.Err(); {
		case err == nil:
			counts.Written++
		case !isAboutKey(err):
			return s.explain(err)
		case entries[i].State.ExpiresNs <= nowNs:
			counts.Expired++
		default:
			count(&counts.Refused, resp.ErrorLine(err.Error()))
		}
	}
	return nil
}

// write returns RESTORE for a cellserver, except for a funnel of an earlier one; else SET.
func (s *Server) write(e *Entry, nowNs int64) []any {
	isFunnel := e.State.Kind == limiter.Funnel
	if s.keepsValues || s.isCellserver && !isFunnel {
		return []any{"RESTORE", e.Key.Name, wholeMs(e.State.ExpiresNs), s.codec.Append(nil, &e.State), "REPLACE", "ABSTTL"}
	}
	if isFunnel {
		return []any{"SET", e.Key.Name, e.State.ExpiresNs, "PX", wholeMs(e.State.ExpiresNs - nowNs)}
	}
	set := []any{"SET", e.Key.Name, limiter.AppendValue(nil, &e.State)}
	if at := wholeMs(e.State.ExpiresNs); at != 0 {
		set = append(set, "PXAT", at)
	}
	return set
}

// wholeMs rounds a time up to milliseconds, and returns 0 for that of a state that never expires.
func wholeMs(ns int64) int64 {
	const ms = int64(time.Millisecond)
	if ns == limiter.NeverNs {
		return 0
	}
	return ns/ms + min(ns%ms, 1)
}

// missing returns the entries that the server can hold and lacks, or has in an earlier state.
func (s *Server) missing(ctx context.Context, nowNs int64, entries []Entry, counts *Counts) (missing []Entry, err error) {
	var live []Entry
	var names []string
	for _, e := range entries {
		if e.State.ExpiresNs <= nowNs {
			counts.Expired++
			continue
		}
		live, names = append(live, e), append(names, string(e.Key.Name))
	}
	held, err := s.held(ctx, live, names)
	if err = cmp.Or(err, s.mayDump()); err != nil {
		return nil, err
	}
	for i, v := range held {
		e := live[i]
		if !s.canHold(&e, nowNs) {
			count(&counts.Others, "a "+e.State.Kind.String()+", which "+s.whatCannot())
			continue
		}
		state, known := s.heldState(v, &e, nowNs)
		keep, alike := isKept(&state, &e.State)
		switch {
		case v.err == nil && v.text == "":
			missing = append(missing, e)
		case v.err != nil && !isWrongType(v.err):
			count(&counts.Refused, resp.ErrorLine(v.err.Error()))
		case v.err != nil || !known || !alike:
			count(&counts.Refused, "the target's key holds something else")
		case keep:
			counts.Kept++
		default:
			missing = append(missing, e)
		}
	}
	return missing, nil
}

// held returns the values of the entries' keys, of a Redis as much of them as tells them from the entries.
func (s *Server) held(ctx context.Context, entries []Entry, names []string) ([]value, error) {
	bytes, ttls := int64(tatBytes), false
	for i := range entries {
		if state := &entries[i].State; state.Kind == limiter.Value {
			bytes, ttls = max(bytes, int64(len(limiter.AppendValue(nil, state)))+1), true
		}
	}
	return s.values(ctx, names, ttls, bytes)
}

// heldState returns the state of an entry's key. In a Redis, a value is a string that redis-cell cannot have
// written.
func (s *Server) heldState(v value, e *Entry, beforeNs int64) (state limiter.State, known bool) {
	if s.isCellserver || e.State.Kind != limiter.Value {
		return v.state()
	}
	afterNs := s.clock.nowNs()
	if _, reason := v.limiterState(beforeNs, afterNs); reason == "" {
		return state, false
	}
	expiresNs := int64(limiter.NeverNs)
	if v.ttl >= 0 { // when the entry's does, if that can be
		expiresNs = min(max(e.State.ExpiresNs, beforeNs+int64(v.ttl)), afterNs+int64(v.ttl))
	}
	return limiter.ValueOf([]byte(v.text), expiresNs), true
}

// canHold reports whether the server can hold an entry. A Redis holds a reserving funnel's debits only.
func (s *Server) canHold(e *Entry, nowNs int64) bool {
	switch {
	case s.keepsValues:
		return true
	case e.State.Kind == limiter.Value:
		return !s.isCellserver
	case !s.isCellserver && e.State.Kind == limiter.Reserving:
		tatNs, err := e.State.TAT(nowNs)
		if err != nil {
			return false
		}
		e.State = limiter.State{ExpiresNs: tatNs}
	}
	return s.isCellserver || e.State.Kind == limiter.Funnel
}

func (s *Server) whatCannot() string {
	if s.isCellserver {
		return "an earlier version cannot hold"
	}
	return "Redis cannot hold"
}
