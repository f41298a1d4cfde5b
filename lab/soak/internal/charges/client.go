package charges

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ioTimeout exceeds every pause of a server: a call that is given up could still be made.
const ioTimeout = time.Hour

// item is what a client changes: a key's units, or the rules of one.
type item struct {
	kind kind
	key  string
	base state // at the last comparison
	now  state // after all calls
}

// state is an item's, so far as its client knows it.
type state struct {
	units int64
	open  string // id of a reservation; "" for none
	held  int64  // units of it
}

// step is the effect of a call on an item.
type step struct {
	item     int
	state    state
	answered bool
	void     bool // it was refused
}

// client owns its items, so it can predict the result of each call.
type client struct {
	number int
	db     int
	random *rand.Rand
	items  []*item

	steps     []step // since the last comparison, in the order in which they were sent
	confirmed int    // number of charges that WAIT confirmed
	refused   map[string]int
	waits     []time.Duration // of WAIT, confirmed
	answered  atomic.Int64
	pausing   atomic.Bool
}

func newClient(number int, c Config) *client {
	k := &client{number: number, db: number % 2, random: rand.New(rand.NewPCG(c.Seed, uint64(number))), refused: map[string]int{}} //nolint:gosec // needs no secrets
	for i := range c.Keys / c.Clients {
		of := kind(i % int(kinds))
		key := fmt.Sprintf("c%d:%s%d", number, strings.Repeat("y", i%7*i%41), i)
		if of == override {
			key = k.items[i-1].key // the named one's
		}
		k.items = append(k.items, &item{kind: of, key: key})
	}
	return k
}

// dial returns a connection that does not reconnect.
func dial(ctx context.Context, addr string, db int) (rdb *redis.Conn, hangUp func(), err error) {
	nc, err := (&net.Dialer{Timeout: ioTimeout}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, err
	}
	c := redis.NewClient(&redis.Options{
		Dialer: func(context.Context, string, string) (net.Conn, error) { return nc, nil },
		DB:     db, PoolSize: 1, MaxRetries: -1, Protocol: 2, DisableIdentity: true,
		ReadTimeout: ioTimeout, WriteTimeout: ioTimeout, PoolTimeout: ioTimeout,
	})
	rdb = c.Conn()
	return rdb, func() { _ = errors.Join(nc.Close(), c.Close()) }, nil // Conn.Close must not run beside a command
}

func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// waitAtMost bounds a WAIT, in milliseconds.
const waitAtMost = 200

// call calls until the connection ends or the client pauses. A lost connection is no error.
func (c *client) call(ctx context.Context, addr string) error {
	rdb, hangUp, err := dial(ctx, addr, c.db)
	if err != nil {
		return nil // whoever runs the load knows why
	}
	defer hangUp()
	context.AfterFunc(ctx, hangUp)
	for !c.pausing.Load() && ctx.Err() == nil {
		var err error
		switch n := c.random.IntN(100); {
		case n < 15:
			err = c.wait(ctx, rdb)
		case n < 25:
			err = c.send(ctx, rdb.TxPipeline(), 1+c.random.IntN(5), true)
		case n < 50:
			err = c.send(ctx, rdb.Pipeline(), 1, false)
		default:
			err = c.send(ctx, rdb.Pipeline(), 1+c.random.IntN(40), false)
		}
		if errors.Is(err, errLost) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("client %d: %w", c.number, err)
		}
	}
	return nil
}

var errLost = errors.New("the connection is lost")

// wait has a replica confirm all that was answered.
func (c *client) wait(ctx context.Context, rdb *redis.Conn) error {
	began := time.Now()
	replicas, err := rdb.Do(ctx, "WAIT", 1, waitAtMost).Int64()
	switch {
	case err != nil && isReply(err):
		if strings.Contains(err.Error(), "replica") { // which has no WAIT
			return errReplica
		}
		return fmt.Errorf("WAIT: %w", err)
	case err != nil:
		return errLost
	case replicas >= 1:
		c.confirmed = len(c.steps)
		c.waits = append(c.waits, time.Since(began))
	}
	return nil
}

type sent struct {
	reply *redis.Cmd
	item  int
	step  int
	want  int64 // units that the reply tells; negative if it does not
}

// send makes calls on different items.
func (c *client) send(ctx context.Context, p redis.Pipeliner, calls int, transaction bool) error {
	first := c.random.IntN(len(c.items))
	var all []sent
	for i := range min(calls, len(c.items)) {
		at := (first + i*7) % len(c.items) // 7 and the number of items have no common divisor
		if c.items[at].kind == override && (transaction || c.random.IntN(20) > 0) {
			continue // it waits for the disk
		}
		all = append(all, c.put(ctx, p, at))
	}
	if len(all) == 0 {
		return nil
	}
	_, failed := p.Exec(ctx)
	return c.read(all, failed)
}

func (c *client) read(all []sent, failed error) error {
	isReplica := false
	for _, s := range all {
		err := s.reply.Err()
		if err == nil && s.reply.Val() == nil {
			err = failed
		}
		switch {
		case err == nil:
			if err := c.take(s); err != nil {
				return err
			}
		case !isReply(err):
			return errLost // this step and all later ones are uncertain
		default:
			isReplica = isReplica || strings.Contains(err.Error(), "READONLY")
			if err := c.refuse(s, err); err != nil {
				return err
			}
		}
	}
	if isReplica {
		return errReplica
	}
	return nil
}

// take notes an answer.
func (c *client) take(s sent) error {
	c.steps[s.step].answered = true
	c.answered.Add(1)
	reply, isList := s.reply.Val().([]any)
	if !isList || s.want < 0 {
		return nil
	}
	if len(reply) < 5 || reply[0] != int64(0) {
		return fmt.Errorf("%v: %v, want it allowed", s.reply.Args(), reply)
	}
	limit, _ := reply[1].(int64)
	left, _ := reply[2].(int64)
	units := limit - left
	if c.items[s.item].kind == bucket {
		units = left
	}
	if units != s.want {
		return fmt.Errorf("%v: %v, want %d units", s.reply.Args(), reply, s.want)
	}
	if c.items[s.item].kind == reserved && len(reply) == 6 {
		id, _ := reply[5].(string)
		c.items[s.item].now.open, c.steps[s.step].state.open = id, id
	}
	return nil
}

// errReplica ends a client: its library takes the connection for a bad one.
var errReplica = fmt.Errorf("%w: the server follows another one", errLost)

// refuse takes a step back.
func (c *client) refuse(s sent, err error) error {
	code, ok := isRefusal(err)
	if !ok && code != "EXECABORT" {
		return fmt.Errorf("%v: %w", s.reply.Args(), err)
	}
	c.refused[code]++
	c.steps[s.step].void = true
	it := c.items[s.item]
	it.now = it.base
	for _, before := range c.steps {
		if before.item == s.item && !before.void {
			it.now = before.state
		}
	}
	return nil
}

// put makes a call on an item.
func (c *client) put(ctx context.Context, p redis.Pipeliner, at int) sent {
	it := c.items[at]
	by, to := 1+c.random.Int64N(3), state{}
	var args []any
	switch {
	case it.now.units+by > most || c.random.IntN(40) == 0:
		args = it.kind.delete(it.key)
	case it.now.open != "":
		used := c.random.Int64N(it.now.held)
		args = []any{"CL.COMMIT", it.key, it.now.open, used}
		to.units = it.now.units - (it.now.held - used)
	default:
		if it.kind != quota && c.random.IntN(refundsOne) == 0 && it.now.units > 0 && it.kind != override {
			by = -1
		}
		args, to.units = it.kind.change(it.key, it.now.units, by)
		if it.kind == reserved && by > 0 {
			to.held = by
		}
	}
	want := to.units
	if it.kind == override {
		want = -1
	}
	it.now = to
	c.steps = append(c.steps, step{item: at, state: to})
	return sent{p.Do(ctx, args...), at, len(c.steps) - 1, want}
}
