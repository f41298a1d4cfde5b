package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/limiter"
)

// tatBytes exceeds a TAT's digits: longer strings of a Redis are no TATs and are not read in full.
const tatBytes = 20

// reading is the command that reads a key.
type reading uint8

const (
	unknown    reading = iota // it was not asked yet
	byGetRange                // Redis
	byGet                     // Redis without the right to GETRANGE, or cellserver without DUMP: funnels
	byDump                    // cellserver
)

// value is a server's reply about a key.
type value struct {
	text   string         // empty if absent
	dumped *limiter.State // by DUMP; else nil
	ttl    time.Duration  // of a cellserver that keeps values, the time since 1970 at which it expires
	err    error          // the server's error about the key
}

func (v value) state() (limiter.State, bool) {
	if v.dumped != nil {
		return *v.dumped, true
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	return limiter.State{ExpiresNs: n}, err == nil && n > 0 && v.text[0] != '+' && v.text[0] != '0'
}

// isAboutCommand reports whether a server has refused the command, whatever its key: the user may not use
// it, or it is unknown.
func isAboutCommand(err error) bool {
	if !isRefused(err) {
		return false
	}
	text := err.Error()
	return strings.HasPrefix(text, "ERR unknown command") || strings.HasPrefix(text, "NOPERM") && strings.Contains(text, "command")
}

func isWrongType(err error) bool { return isReply(err) && strings.HasPrefix(err.Error(), "WRONGTYPE") }

func isRefused(err error) bool { return isReply(err) && !errors.Is(err, redis.Nil) }

// chooseRead chooses the command by trying one key.
func (s *Server) chooseRead(ctx context.Context, key string) error {
	info, err := s.client.Info(ctx, "server").Result()
	if err != nil && !isRefused(err) {
		return s.explain(err)
	}
	s.isCellserver = strings.Contains(info, "\ncellserver_version:")
	if s.isCellserver {
		stats, err := s.client.Info(ctx, "stats").Result()
		if err != nil && !isRefused(err) {
			return s.explain(err)
		}
		s.keepsValues = strings.Contains(stats, "\ncell_values:")
		s.reads = byDump
		if isAboutCommand(s.client.Dump(ctx, key).Err()) {
			s.reads = byGet
		}
		return nil
	}
	s.reads = byGetRange
	if isAboutCommand(s.client.GetRange(ctx, key, 0, 0).Err()) {
		s.reads = byGet
	}
	return nil
}

// ask reads a key, of a Redis only its first bytes.
func (s *Server) ask(ctx context.Context, p redis.Pipeliner, key string, bytes int64) *redis.StringCmd {
	switch s.reads {
	case byDump:
		return p.Dump(ctx, key)
	case byGetRange:
		return p.GetRange(ctx, key, 0, bytes-1)
	default:
		return p.Get(ctx, key)
	}
}

// askTTL reads when a key expires.
func (s *Server) askTTL(ctx context.Context, p redis.Pipeliner, key string) *redis.DurationCmd {
	if s.keepsValues && s.reads == byDump {
		return p.PExpireTime(ctx, key)
	}
	return p.PTTL(ctx, key)
}

// mayDump returns an error if values and funnels cannot be told apart.
func (s *Server) mayDump() error {
	if s.keepsValues && s.reads == byGet {
		return fmt.Errorf("%s: the user needs permission to DUMP", s.name)
	}
	return nil
}

// values returns the values of keys of the current database, and if requested their lifetimes. Of the strings
// of a Redis it reads the first bytes.
func (s *Server) values(ctx context.Context, keys []string, withTTLs bool, bytes int64) ([]value, error) {
	if s.reads == unknown && len(keys) > 0 {
		if err := s.chooseRead(ctx, keys[0]); err != nil {
			return nil, err
		}
	}
	withTTLs = withTTLs || s.keepsValues && s.reads == byDump
	texts, ttls := make([]*redis.StringCmd, len(keys)), make([]*redis.DurationCmd, len(keys))
	_, err := s.pipelined(ctx, func(p redis.Pipeliner) {
		for i, key := range keys {
			texts[i] = s.ask(ctx, p, key, bytes)
			if withTTLs {
				ttls[i] = s.askTTL(ctx, p, key)
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
		if withTTLs {
			v.ttl = ttls[i].Val()
			if v.err == nil {
				v.err = ttls[i].Err()
			}
		}
		if v.err != nil && !isAboutKey(v.err) {
			return nil, s.explain(v.err)
		}
		if s.reads == byDump {
			s.readDump(&v)
		}
		all[i] = v
	}
	return all, nil
}

// readDump reads what DUMP has returned.
func (s *Server) readDump(v *value) {
	switch {
	case v.text == "":
	case !s.keepsValues:
		if state, err := s.codec.ReadFunnel([]byte(v.text)); err == nil {
			v.dumped = &state
		}
	case v.ttl == absentTTL:
		v.text = ""
	default:
		state, err := s.codec.Read([]byte(v.text))
		if err != nil {
			return
		}
		if state.Kind == limiter.Value && v.ttl >= 0 {
			state.ExpiresNs = int64(v.ttl)
		}
		v.dumped = &state
	}
}

// pipelined sends commands together. The error is nil if each was answered, even by an error; an error at the
// start of a connection answers none.
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

// scan calls page with keys of the current database and the next cursor.
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
