package honest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/lab/soak/internal/target"
)

// LongestWait bounds a call with all its attempts: a minute tells a busy server from a stopped one.
const LongestWait = time.Minute

// Client calls on one connection, which it opens again when it was closed by CLIENT KILL.
type Client struct {
	ledger *Ledger
	rdb    *redis.Client
	random *rand.Rand

	waits        []time.Duration
	Reconnected  int
	Refused      int    // transactions and scripts: a server may refuse what it has no time for
	LastRefusal  string // of them
	Unacceptable []string
}

// NewClient returns a client of a network of target.Networks.
func NewClient(s *target.Server, network string, ledger *Ledger, seed uint64) *Client {
	options := &redis.Options{
		Network: "tcp", Addr: s.TCP, PoolSize: 1, MaxRetries: -1, DialerRetries: 1, DialTimeout: LongestWait,
		ReadTimeout: LongestWait, WriteTimeout: LongestWait, PoolTimeout: LongestWait,
	}
	switch network {
	case "tls":
		options.Addr, options.TLSConfig = s.TLS, s.TLSConfig()
	case "unix":
		options.Network, options.Addr = "unix", s.Unix
	}
	return &Client{ledger: ledger, rdb: redis.NewClient(options), random: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // needs no secrets
}

// Run calls every few milliseconds until ctx is done, and finishes its last call.
func (c *Client) Run(ctx context.Context) {
	defer func() { _ = c.rdb.Close() }()
	for _, k := range c.ledger.keys {
		c.timed(func(ctx context.Context) error { return c.single(ctx, k, k.maxBurst+1) })
	}
	for ctx.Err() == nil && len(c.Unacceptable) < 10 {
		k := c.ledger.keys[c.random.IntN(len(c.ledger.keys))]
		switch c.random.IntN(20) {
		case 0:
			c.timed(func(ctx context.Context) error { return c.script(ctx, k) })
		case 1:
			c.timed(func(ctx context.Context) error { return c.batch(ctx, c.rdb.TxPipeline(), true) })
		case 2, 3:
			c.timed(func(ctx context.Context) error { return c.batch(ctx, c.rdb.Pipeline(), false) })
		default:
			c.timed(func(ctx context.Context) error { return c.single(ctx, k, 1) })
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// timed makes a call, once more each time that the connection was closed, and notes how long that took in
// all.
func (c *Client) timed(call func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), LongestWait)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	for closed := (*net.OpError)(nil); err != nil && !isReply(err) && ctx.Err() == nil; {
		if c.Reconnected++; errors.As(err, &closed) && closed.Op == "dial" {
			time.Sleep(10 * time.Millisecond)
		}
		err = call(ctx)
	}
	c.waits = append(c.waits, time.Since(began))
	if err != nil {
		c.Unacceptable = append(c.Unacceptable, fmt.Sprintf("a call failed after %s: %v", time.Since(began).Round(time.Millisecond), err))
	}
}

func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

func (c *Client) single(ctx context.Context, k *key, quantity int64) error {
	reply, err := c.rdb.Do(ctx, k.throttle(quantity)...).Slice()
	if err != nil {
		return err
	}
	return k.note(reply, quantity)
}

// note adds what a reply allowed.
func (k *key) note(reply []any, quantity int64) error {
	if len(reply) != 5 {
		return fmt.Errorf("%s: the reply %v does not have five elements", k.name, reply)
	}
	if reply[0] == int64(0) {
		k.allowed.Add(quantity)
	}
	return nil
}

// batch calls for several keys at once, in a transaction or not.
func (c *Client) batch(ctx context.Context, pipe redis.Pipeliner, transaction bool) error {
	var keys []*key
	var calls []*redis.Cmd
	for range 1 + c.random.IntN(8) {
		k := c.ledger.keys[c.random.IntN(len(c.ledger.keys))]
		keys, calls = append(keys, k), append(calls, pipe.Do(ctx, k.throttle(1)...))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return c.refused(err, transaction)
	}
	for i, call := range calls {
		reply, err := call.Slice()
		if err == nil {
			err = keys[i].note(reply, 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) script(ctx context.Context, k *key) error {
	call := k.throttle(1)
	reply, err := c.rdb.Eval(ctx, "return redis.call('CL.THROTTLE', KEYS[1], unpack(ARGV))", []string{k.name}, call[2:]...).Slice()
	if err != nil {
		return c.refused(err, true)
	}
	return k.note(reply, 1)
}

// refused counts an error reply where there may be one.
func (c *Client) refused(err error, may bool) error {
	if !may || !isReply(err) {
		return err
	}
	c.Refused++
	c.LastRefusal = err.Error()
	return nil
}

// Clients are several that run at once.
type Clients []*Client

// Run returns when all have ended.
func (all Clients) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, c := range all {
		running.Go(func() { c.Run(ctx) })
	}
	running.Wait()
}

// Waits returns how long all calls took, in increasing order.
func (all Clients) Waits() []time.Duration {
	var waits []time.Duration
	for _, c := range all {
		waits = append(waits, c.waits...)
	}
	slices.Sort(waits)
	return waits
}
