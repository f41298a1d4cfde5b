package killtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ioTimeout exceeds every pause of a server in the tests. After a client has disconnected, a server drops its
// waiting scripts and still executes later calls, so the order of steps would be lost.
const ioTimeout = time.Hour

// client owns a database, so that it can predict the result of each call.
type client struct {
	number    int
	keys      []string
	random    *rand.Rand
	eachReply bool
	pausing   atomic.Bool

	state     []int64 // units of each key after all calls
	base      []int64 // units of each key at the last start
	steps     []step  // since the last start, in sending order
	replied   atomic.Int64
	confirmed atomic.Int64 // number of durable steps
}

// step is the effect of a call on a key.
type step struct {
	key   int
	units int64
}

func newClient(number int, config Config) *client {
	c := &client{
		number: number, random: rand.New(rand.NewPCG(config.Seed, uint64(number))), eachReply: config.EachReply,
		state: make([]int64, config.Keys), base: make([]int64, config.Keys),
	}
	for i := range config.Keys {
		// Short and longer keys: the store keeps them in different places.
		c.keys = append(c.keys, fmt.Sprintf("k%d", i)+strings.Repeat("y", i%7*i%41))
	}
	return c
}

// dial returns a connection that does not reconnect.
func dial(ctx context.Context, addr string, db int) (rdb *redis.Conn, hangUp func(), err error) {
	nc, err := (&net.Dialer{Timeout: ioTimeout}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, err
	}
	client := redis.NewClient(&redis.Options{
		Dialer: func(context.Context, string, string) (net.Conn, error) { return nc, nil },
		DB:     db, PoolSize: 1, MaxRetries: -1, Protocol: 2, DisableIdentity: true,
		ReadTimeout: ioTimeout, WriteTimeout: ioTimeout, PoolTimeout: ioTimeout,
	})
	rdb = client.Conn()
	return rdb, func() { _ = errors.Join(rdb.Close(), client.Close(), nc.Close()) }, nil
}

// isRefusal reports whether an error is a reply, or about one.
func isRefusal(err error) bool {
	var refusal redis.Error
	return errors.As(err, &refusal) || errors.Is(err, errUnexpected)
}

// unlessEnding returns an error of a command, which is no refusal if the server ends: it tells clients so
// that wait for one that takes longer.
func unlessEnding(err error) error {
	if strings.HasPrefix(err.Error(), "ERR the command was ended before it was done") {
		return errors.New(err.Error())
	}
	return err
}

var errUnexpected = errors.New("unexpected reply")

// call calls until the connection ends or the client pauses.
func (c *client) call(ctx context.Context, addr string) error {
	rdb, hangUp, err := dial(ctx, addr, c.number)
	if err != nil {
		return fmt.Errorf("client %d: %w", c.number, err)
	}
	defer hangUp()
	for !c.pausing.Load() {
		if err := c.once(context.WithoutCancel(ctx), rdb); err != nil {
			return fmt.Errorf("client %d: %w", c.number, err)
		}
	}
	return nil
}

func (c *client) once(ctx context.Context, rdb *redis.Conn) error {
	switch n := c.random.IntN(1000); {
	case n < 2:
		return c.flush(ctx, rdb)
	case n < 4:
		return save(ctx, rdb)
	case n < 50:
		return c.send(ctx, rdb.TxPipeline(), 1+c.random.IntN(10))
	case n < 400:
		return c.send(ctx, rdb.Pipeline(), 1)
	default:
		return c.send(ctx, rdb.Pipeline(), 1+c.random.IntN(100))
	}
}

// flush empties the database: a step of each charged key.
func (c *client) flush(ctx context.Context, rdb *redis.Conn) error {
	for key, units := range c.state {
		if units != 0 {
			c.add(key, 0)
		}
	}
	if err := rdb.FlushDB(ctx).Err(); err != nil {
		return fmt.Errorf("FLUSHDB: %w", unlessEnding(err))
	}
	c.answered(int64(len(c.steps)))
	return nil
}

// save starts a snapshot, unless one is under way.
func save(ctx context.Context, rdb *redis.Conn) error {
	err := rdb.BgSave(ctx).Err()
	if isRefusal(err) && strings.Contains(err.Error(), "in progress") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("BGSAVE: %w", err)
	}
	return nil
}

func (c *client) add(key int, units int64) {
	c.state[key] = units
	c.steps = append(c.steps, step{key, units})
}

// answered notes that the first steps are answered.
func (c *client) answered(steps int64) {
	c.replied.Store(steps)
	if c.eachReply {
		c.confirmed.Store(steps)
	}
}

type sent struct {
	reply *redis.Cmd
	steps int64  // answered with this reply
	want  string // prefix of the reply
}

// send pipelines calls on random keys: charges, refunds, deletions and scripts.
func (c *client) send(ctx context.Context, p redis.Pipeliner, calls int) error {
	all := make([]sent, calls)
	for i := range all {
		all[i] = c.put(ctx, p)
	}
	_, failed := p.Exec(ctx)
	for _, s := range all {
		if err := s.reply.Err(); err != nil {
			return fmt.Errorf("%v: %w", s.reply.Args(), errors.Join(err, failed))
		}
		if got := fmt.Sprint(s.reply.Val()); !strings.HasPrefix(got, s.want) {
			return fmt.Errorf("%w: %v: %s, want %s", errUnexpected, s.reply.Args(), got, s.want)
		}
		c.answered(s.steps)
	}
	return nil
}

func (c *client) put(ctx context.Context, p redis.Pipeliner) sent {
	key := c.random.IntN(len(c.keys))
	name, units, of := c.keys[key], c.state[key], kindOf(key)
	quantity := 1 + c.random.Int64N(3)
	if units+quantity > of.max() || c.random.IntN(50) == 0 {
		c.add(key, 0)
		return sent{p.Do(ctx, "DEL", name), int64(len(c.steps)), strconv.FormatInt(min(units, 1), 10)}
	}
	if c.random.IntN(50) == 0 {
		args, left, want := of.change(name, 0, quantity)
		c.add(key, left)
		return sent{p.Do(ctx, append([]any{"EVAL", anew, 1, name}, args...)...), int64(len(c.steps)), want}
	}
	if c.random.IntN(20) == 0 {
		quantity = -quantity
	}
	args, left, want := of.change(name, units, quantity)
	c.add(key, left)
	return sent{p.Do(ctx, args...), int64(len(c.steps)), want}
}

// anew deletes a key and calls for it in one step.
const anew = `redis.call('DEL', KEYS[1]) return redis.call(unpack(ARGV))`
