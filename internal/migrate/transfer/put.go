package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/limiter"
	"cellserver/internal/resp"
	"cellserver/internal/store"
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

const (
	pageKeys  = 1000 // per request
	batchKeys = 10 * pageKeys
	// batchBytes bounds a batch's names and payloads, except for one long entry.
	batchBytes = 16 << 20
)

// Load writes entries to a running server. States are absolute and not shifted.
func Load(ctx context.Context, from Reader, to *Server, progress func(Counts)) (counts Counts, err error) {
	var batch []Entry
	bytes := 0
	for err == nil {
		var e Entry
		if e, err = from.Read(); err == nil {
			counts.Seen++
			batch = append(batch, e.clone())
			bytes += len(e.Key.Name) + len(e.State.Payload)
		}
		if len(batch) == batchKeys || bytes >= batchBytes || errors.Is(err, io.EOF) {
			if putErr := to.putAll(ctx, batch, &counts); putErr != nil {
				counts.Seen = counts.known() // without the rest of the batch
				return counts, putErr
			}
			batch, bytes = batch[:0], 0
			progress(counts)
		}
	}
	if errors.Is(err, io.EOF) {
		return counts, nil
	}
	counts.Seen = counts.known() // a batch that was begun is not put
	return counts, err
}

// putAll puts entries of several databases.
func (s *Server) putAll(ctx context.Context, entries []Entry, counts *Counts) error {
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Key.DB, b.Key.DB) })
	for len(entries) > 0 {
		db, n := entries[0].Key.DB, 1
		for n < len(entries) && n < pageKeys && entries[n].Key.DB == db {
			n++
		}
		if err := s.put(ctx, int(db), entries[:n], counts); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

// Dump calls visit with a running cellserver's keys. A key that changes meanwhile has either state, and a key
// may come twice.
func (s *Server) Dump(ctx context.Context, visit func(e Entry) error, progress func(keys, of int64)) error {
	numbers, of, err := s.databases(ctx)
	if err != nil {
		return err
	}
	if db, ok := s.NamesDB(); ok {
		numbers = []int{db}
	}
	var told int64
	for _, db := range numbers {
		s.use(db)
		err := s.scan(ctx, "*", 0, pageKeys, func(keys []string, _ uint64) error {
			values, err := s.values(ctx, keys, false, tatBytes)
			if err = cmp.Or(err, s.mayDump()); err != nil {
				return err
			}
			for i, v := range values {
				state, ok := v.state()
				if v.text == "" && v.err == nil { // it has expired
					continue
				}
				if v.err != nil {
					return fmt.Errorf("%s: key %q of database %d: %w", s.name, shortened(keys[i]), db, resp.OneLine(v.err))
				}
				if !ok {
					return fmt.Errorf("%s: key %q of database %d is not a limiter; dump reads a cellserver, and cellserver import a Redis with redis-cell", s.name, shortened(keys[i]), db)
				}
				if err := visit(Entry{store.Key{DB: uint16(db), Name: []byte(keys[i])}, state}); err != nil {
					return err
				}
				told++
			}
			progress(told, of)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shortened returns the beginning of a key for a message.
func shortened(key string) string {
	const maxBytes = 64
	if len(key) > maxBytes {
		return key[:maxBytes] + "..."
	}
	return key
}
