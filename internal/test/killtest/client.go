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

// ioTimeout is how long a server may stop to answer, and more than any test stops one for. Of a client that has gone a server
// does not execute what waits for a turn, such as a script, but what was sent behind it: then its steps are not what it did.
const ioTimeout = time.Hour

// client calls on its own database, so that it knows what each of its calls does.
type client struct {
	number    int
	keys      []string
	random    *rand.Rand
	eachReply bool
	pausing   atomic.Bool

	state     []int64 // units of each key, if all calls were done
	base      []int64 // units of each key when the server was last started
	steps     []step  // since then, in the order in which they were sent
	replied   atomic.Int64
	confirmed atomic.Int64 // of the steps, how many are to be kept
}

// step is what a call does: it leaves a key with so many units.
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
		// Short ones and longer ones, which the store has in different places.
		c.keys = append(c.keys, fmt.Sprintf("k%d", i)+strings.Repeat("y", i%7*i%41))
	}
	return c
}

// dial returns a connection, which is not made again when it ends.
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

// isRefusal reports whether an error is a server's reply, or is about it.
func isRefusal(err error) bool {
	var refusal redis.Error
	return errors.As(err, &refusal) || errors.Is(err, errUnexpected)
}

// errUnexpected is a reply that says something else than what is so.
var errUnexpected = errors.New("unexpected reply")

// call calls until the connection ends or it is to pause.
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

// once does one of the things that clients do.
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

// flush empties the database, which is a step of each key that is charged.
func (c *client) flush(ctx context.Context, rdb *redis.Conn) error {
	for key, units := range c.state {
		if units != 0 {
			c.add(key, 0)
		}
	}
	if err := rdb.FlushDB(ctx).Err(); err != nil {
		return fmt.Errorf("FLUSHDB: %w", err)
	}
	c.answered(int64(len(c.steps)))
	return nil
}

// save has a snapshot written, unless one is being written already.
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

// answered notes that the first steps, so many, were answered.
func (c *client) answered(steps int64) {
	c.replied.Store(steps)
	if c.eachReply {
		c.confirmed.Store(steps)
	}
}

// sent is a call that was put into a pipeline.
type sent struct {
	reply *redis.Cmd
	steps int64  // that are answered with this reply
	want  string // of the reply
}

// send sends calls together, for keys by chance: more units, and sometimes fewer, a deletion, or that and more by a script.
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

// anew is a script that calls for a key that was deleted. Nobody may see it in between.
const anew = `redis.call('DEL', KEYS[1]) return redis.call(unpack(ARGV))`
