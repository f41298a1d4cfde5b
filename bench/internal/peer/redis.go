package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"cellserver/bench/internal/load"
)

// The limit of all peers: a burst of 15 beyond the first, and 30 per minute.
const (
	burst     = 15
	perMinute = 30
)

func client(s *Server) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Addr.String(), Protocol: 2, DisableIdentity: true})
}

// isOurs fails if another process took the port in the meantime.
func isOurs(ctx context.Context, s *Server) error {
	rdb := client(s)
	defer func() { _ = rdb.Close() }()
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil {
		return fmt.Errorf("peer: %s: %w", s.Name, err)
	}
	if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", s.cmd.Process.Pid)) {
		return fmt.Errorf("peer: another process took the port of %s; run again", s.Name)
	}
	return nil
}

// patient returns a client that calls once and waits for the reply.
func patient(s *Server) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Addr.String(), Protocol: 2, DisableIdentity: true, MaxRetries: -1, ReadTimeout: -1})
}

// Do calls a command once.
func (s *Server) Do(ctx context.Context, args ...any) (any, error) {
	rdb := patient(s)
	defer func() { _ = rdb.Close() }()
	reply, err := rdb.Do(ctx, args...).Result()
	if err != nil {
		return nil, fmt.Errorf("peer: %s: %v: %w", s.Name, args, errors.Join(err, s.Err()))
	}
	return reply, nil
}

// Save writes a snapshot and waits for it, after any that is under way.
func (s *Server) Save(ctx context.Context) error {
	for {
		_, err := s.Do(ctx, "SAVE")
		if err == nil || !strings.Contains(err.Error(), "in progress") {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// AwaitLoaded returns once the server has loaded its data.
func (s *Server) AwaitLoaded(ctx context.Context) error {
	rdb := patient(s)
	defer func() { _ = rdb.Close() }()
	for {
		err := rdb.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		if !redis.HasErrorPrefix(err, "LOADING") {
			return fmt.Errorf("peer: %s: %w", s.Name, errors.Join(err, s.Err()))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// moduleVersion returns the name and version of the loaded module, without its path.
func moduleVersion(ctx context.Context, s *Server) string {
	rdb := client(s)
	defer func() { _ = rdb.Close() }()
	modules, err := rdb.Do(ctx, "MODULE", "LIST").Slice()
	if err != nil || len(modules) == 0 {
		return "unknown"
	}
	fields, _ := modules[0].([]any)
	said := map[any]any{}
	for i := 0; i+1 < len(fields); i += 2 {
		said[fields[i]] = fields[i+1]
	}
	return fmt.Sprintf("module %v, version %v by MODULE LIST", said["name"], said["ver"])
}

// Throttle is CL.THROTTLE of cellserver and redis-cell. A load that repeats its keys quickly is mostly
// limited.
func Throttle() load.Command {
	return load.NewCommand("CL.THROTTLE", "k:"+load.KeyMark, strconv.Itoa(burst), strconv.Itoa(perMinute), "60", "1").LimitedBy('1')
}

// ThrottlePass is a CL.THROTTLE that is allowed two hundred million times in a row, so that each call writes.
// Each call extends a key's life by twenty seconds. It is used for cellserver only, and not with Throttle's
// keys, which would be limited after it.
func ThrottlePass() load.Command {
	return load.NewCommand("CL.THROTTLE", "p:"+load.KeyMark, "200000000", "1", "20", "1").LimitedBy('1')
}

// ThrottleUser is a CL.THROTTLE that allows 1,000 calls a period in bursts of 101. With a minute a funnel
// drains in 60 ms, before its key's next call.
func ThrottleUser(periodSec int) load.Command {
	return load.NewCommand("CL.THROTTLE", "u:"+load.KeyMark, "100", "1000", strconv.Itoa(periodSec), "1").LimitedBy('1')
}

// ThrottleLong is a CL.THROTTLE after which a key lives for at least a quarter of an hour.
func ThrottleLong(keyBytes int) load.Command {
	return load.NewCommand("CL.THROTTLE", keyOf(keyBytes), "1000000", "1", "1000", "1").LimitedBy('1')
}

// keyOf returns a key of bytes length, at least the twelve digits.
func keyOf(bytes int) string {
	const before = "key:"
	return strings.Repeat(before, bytes/len(before))[:bytes-load.KeyDigits] + load.KeyMark
}

// CrabThrottle is throttlecrab's command; its reply begins with 1 if the call is allowed.
func CrabThrottle() load.Command {
	return load.NewCommand("THROTTLE", "k:"+load.KeyMark, strconv.Itoa(burst), strconv.Itoa(perMinute), "60", "1").LimitedBy('0')
}

// Set is the reference: it makes Redis write one small value.
func Set() load.Command { return load.NewCommand("SET", "k:"+load.KeyMark, "1") }

// SetLong is Set with a longer key.
func SetLong(keyBytes int) load.Command { return load.NewCommand("SET", keyOf(keyBytes), "1") }

// Ping is the cheapest command of a Redis server.
func Ping() load.Command { return load.NewCommand("PING") }

// funnelScript is the funnel shown in articles: a hash with the water level and the time at which it was
// computed. It takes the capacity, the units that leak per second, the time in seconds and the quantity, and
// returns whether the call is limited and the remaining units.
const funnelScript = `
local capacity, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
local now, quantity = tonumber(ARGV[3]), tonumber(ARGV[4])
local state = redis.call('HMGET', KEYS[1], 'level', 'at')
local level = tonumber(state[1]) or 0
local at = tonumber(state[2]) or now
level = math.max(0, level - (now - at) * rate)
local limited = 1
if level + quantity <= capacity then
	level = level + quantity
	limited = 0
end
redis.call('HMSET', KEYS[1], 'level', level, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(level / rate * 1000) + 1000)
return {limited, math.floor(capacity - level)}
`

// Script returns what loads a script into a server and calls it with a number of keys, keys and arguments.
func Script(source string, words ...string) func(ctx context.Context, s *Server) (load.Command, error) {
	return func(ctx context.Context, s *Server) (load.Command, error) {
		rdb := client(s)
		defer func() { _ = rdb.Close() }()
		sha, err := rdb.ScriptLoad(ctx, source).Result()
		if err != nil {
			return load.Command{}, fmt.Errorf("peer: load a script: %w", err)
		}
		return load.NewCommand(append([]string{"EVALSHA", sha}, words...)...), nil
	}
}

// LuaFunnel loads funnelScript into the server. The time is constant: parsing it costs the server as much as
// a time that changes.
func LuaFunnel(ctx context.Context, s *Server) (load.Command, error) {
	rdb := client(s)
	defer func() { _ = rdb.Close() }()
	sha, err := rdb.ScriptLoad(ctx, funnelScript).Result()
	if err != nil {
		return load.Command{}, fmt.Errorf("peer: load the funnel script: %w", err)
	}
	now := float64(time.Now().UnixMilli()) / 1000
	return load.NewCommand("EVALSHA", sha, "1", "k:"+load.KeyMark, strconv.Itoa(burst+1),
		strconv.FormatFloat(perMinute/60.0, 'f', -1, 64), strconv.FormatFloat(now, 'f', 3, 64), "1").LimitedBy('1'), nil
}

// RedisRate records the bytes that go-redis's redis_rate sends for one call, so that its server side can be
// measured without the cost of its client.
func RedisRate(ctx context.Context, s *Server) (load.Command, error) {
	rdb := client(s)
	defer func() { _ = rdb.Close() }()
	recorder := &recorder{}
	rdb.AddHook(recorder)
	limit := redis_rate.Limit{Rate: perMinute, Burst: burst + 1, Period: time.Minute}
	const mark = "#key-digits#"
	for range 2 { // the first call also sends the script
		recorder.reset()
		if _, err := redis_rate.NewLimiter(rdb).Allow(ctx, "k:"+mark, limit); err != nil {
			return load.Command{}, fmt.Errorf("peer: redis_rate: %w", err)
		}
	}
	command, err := load.RecordedCommand(recorder.taken(), mark)
	return command.LimitedBy('0'), err
}

// recorder is a hook that records what a client writes to its connections.
type recorder struct {
	mu   sync.Mutex // guards sent
	sent []byte
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = nil
}

func (r *recorder) taken() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent
}

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		return recordedConn{conn, r}, err
	}
}

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

type recordedConn struct {
	net.Conn
	recorder *recorder
}

func (c recordedConn) Write(b []byte) (int, error) {
	c.recorder.mu.Lock()
	c.recorder.sent = append(c.recorder.sent, b...)
	c.recorder.mu.Unlock()
	return c.Conn.Write(b)
}
