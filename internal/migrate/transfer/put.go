package transfer

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/limiter"
	"cellserver/internal/resp"
)

// put writes entries to a database, except those expired by the server's clock or older than the state there.
// A Redis takes funnels only and sets their expiry as redis-cell does; a cellserver sets it itself.
func (s *Server) put(ctx context.Context, db int, entries []Entry, counts *Counts) error {
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

// write returns SET for a funnel's TAT, else RESTORE.
func (s *Server) write(e *Entry, nowNs int64) []any {
	const ms = int64(time.Millisecond)
	switch {
	case e.State.Kind == limiter.Funnel:
		left := e.State.ExpiresNs - nowNs
		return []any{"SET", e.Key.Name, e.State.ExpiresNs, "PX", left/ms + min(left%ms, 1)}
	case e.State.ExpiresNs == limiter.NeverNs:
		return []any{"RESTORE", e.Key.Name, 0, s.codec.Append(nil, &e.State), "REPLACE"}
	}
	return []any{"RESTORE", e.Key.Name, e.State.ExpiresNs/ms + min(e.State.ExpiresNs%ms, 1), s.codec.Append(nil, &e.State), "REPLACE", "ABSTTL"}
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
	held, err := s.values(ctx, names, false)
	if err != nil {
		return nil, err
	}
	for i, v := range held {
		e := live[i]
		if !s.takes(&e, nowNs) {
			count(&counts.Others, "a "+e.State.Kind.String()+", which Redis cannot hold")
			continue
		}
		state, known := v.state()
		keep, alike := stays(&state, &e.State)
		switch {
		case v.err == nil && v.text == "":
			missing = append(missing, e)
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

// takes reports whether the server can hold an entry. A Redis holds a reserving funnel's debits only.
func (s *Server) takes(e *Entry, nowNs int64) bool {
	if !s.isCellserver && e.State.Kind == limiter.Reserving {
		tatNs, err := e.State.TAT(nowNs)
		if err != nil {
			return false
		}
		e.State = limiter.State{ExpiresNs: tatNs}
	}
	return s.isCellserver || e.State.Kind == limiter.Funnel
}
