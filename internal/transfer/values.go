package transfer

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// tatBytes is more than a TAT has digits: what is longer is none, and must not be sent whole, however long it is.
const tatBytes = 20

// value is what a server says of a key.
type value struct {
	text string // empty if the key is absent
	ttl  time.Duration
	err  error // that the server has answered about the key
}

// tatNs returns the TAT that a value is.
func (v value) tatNs() (int64, bool) {
	n, err := strconv.ParseInt(v.text, 10, 64)
	return n, err == nil && n > 0 && v.text[0] != '+' && v.text[0] != '0'
}

// values returns what keys of the current database hold, and with ttls how long they live.
func (s *Server) values(ctx context.Context, keys []string, ttls bool) ([]value, error) {
	if s.getRange == 0 && len(keys) > 0 {
		s.getRange = 1
		if err := s.client.GetRange(ctx, keys[0], 0, 0).Err(); isReply(err) && !strings.HasPrefix(err.Error(), "WRONGTYPE") {
			s.getRange = -1 // a cellserver, or a user who may not: GET does as well
		}
	}
	texts, lives := make([]*redis.StringCmd, len(keys)), make([]*redis.DurationCmd, len(keys))
	_, err := s.pipelined(ctx, func(p redis.Pipeliner) {
		for i, key := range keys {
			if s.getRange > 0 {
				texts[i] = p.GetRange(ctx, key, 0, tatBytes-1)
			} else {
				texts[i] = p.Get(ctx, key)
			}
			if ttls {
				lives[i] = p.PTTL(ctx, key)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	all := make([]value, len(keys))
	for i := range keys {
		v := value{text: texts[i].Val(), err: texts[i].Err()}
		if errors.Is(v.err, redis.Nil) {
			v.err = nil
		}
		if ttls {
			v.ttl = lives[i].Val()
			if v.err == nil {
				v.err = lives[i].Err()
			}
		}
		if v.err != nil && !isAboutKey(v.err) {
			return nil, s.explain(v.err)
		}
		all[i] = v
	}
	return all, nil
}

// pipelined sends commands at once. The error is nil if each of them was answered, by an error or not: one that a server has
// answered to the beginning of a connection is not an answer to any of them.
func (s *Server) pipelined(ctx context.Context, commands func(p redis.Pipeliner)) ([]redis.Cmder, error) {
	replies, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		commands(p)
		return nil
	})
	if err == nil || isReply(err) && slices.ContainsFunc(replies, func(r redis.Cmder) bool { return r.Err() != nil }) {
		return replies, nil
	}
	return nil, s.explain(err)
}

// scan calls page with the keys of the current database, some at a time, from a cursor on, and with the cursor of the next.
func (s *Server) scan(ctx context.Context, match string, cursor uint64, count int64, page func(keys []string, next uint64) error) error {
	for {
		keys, next, err := s.client.Scan(ctx, cursor, match, count).Result()
		if err != nil {
			return s.explain(err)
		}
		if err := page(keys, next); err != nil {
			return err
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}

// put makes entries' states those of their keys in a database, if they are not expired by the server's clock and no later state
// is there. Keys expire as redis-cell has them, for a Redis; a cellserver does that by itself.
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
		for _, e := range entries {
			const ms = int64(time.Millisecond)
			left := e.TATNs - nowNs
			p.Do(ctx, "SET", e.Key.Name, e.TATNs, "PX", left/ms+min(left%ms, 1))
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
		case entries[i].TATNs <= nowNs:
			counts.Expired++
		default:
			count(&counts.Refused, err.Error())
		}
	}
	return nil
}

// missing returns the entries that a server has not, or only an earlier state of.
func (s *Server) missing(ctx context.Context, nowNs int64, entries []Entry, counts *Counts) (missing []Entry, err error) {
	var live []Entry
	var names []string
	for _, e := range entries {
		if e.TATNs <= nowNs {
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
		tatNs, ok := v.tatNs()
		switch {
		case v.err != nil || v.text != "" && !ok:
			count(&counts.Refused, "the target has something else under the key")
		case tatNs >= live[i].TATNs:
			counts.Kept++
		default:
			missing = append(missing, live[i])
		}
	}
	return missing, nil
}
