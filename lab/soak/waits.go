package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Bounds of the load before a kill.
const (
	waitClients = 8
	leastCalls  = 20 * time.Millisecond
	mostCalls   = 150 * time.Millisecond
	waitMaxUnit = 1_000_000_000

	waitPeriodSec = 1_000_000
)

type waitOptions struct {
	kills  int
	binary string
	seed   uint64
}

func runWaits(ctx context.Context, args []string, stdout io.Writer) error {
	var o waitOptions
	fs := newFlags("waits", "Kills a leader at random moments, and looks for units on its replica that WAIT has confirmed.", stdout)
	fs.IntVar(&o.kills, "kills", 1000, "how often to kill it")
	fs.StringVar(&o.binary, "binary", "", "`file` of a server, instead of one built without the race detector")
	addSeed(fs, &o.seed)
	if err := parse(fs, args); err != nil {
		return err
	}
	logging.Disable() // go-redis's, of the failures that are waited for
	dir, err := workIn(ctx, &o.binary, false)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	w := &waits{binary: o.binary, dir: dir, clients: make([]waiter, waitClients), random: rand.New(rand.NewPCG(o.seed, 0))}
	defer w.close()
	if err := w.open(ctx); err != nil {
		return err
	}
	for i := range o.kills {
		if err := w.once(ctx); err != nil {
			w.report(stdout, i)
			return fmt.Errorf("kill %d, seed %d: %w", i+1, o.seed, err)
		}
	}
	w.report(stdout, o.kills)
	return nil
}

// waits is a leader and its replica, without disks.
type waits struct {
	binary, dir     string
	started         int
	leader, replica *member
	clients         []waiter
	random          *rand.Rand // the moments of kills

	confirmed, lost, uncertain int64
	took                       []time.Duration // of charge and WAIT
	without                    []time.Duration // of a leader
}

// waiter is a client's account of its key.
type waiter struct {
	base      int64 // units at the beginning
	confirmed int64 // by WAIT, since then
	sent      int64
	took      []time.Duration
	err       error
}

func (w *waits) open(ctx context.Context) (err error) {
	if w.leader, err = w.start(ctx); err != nil {
		return err
	}
	return w.addReplica(ctx)
}

func (w *waits) close() {
	for _, m := range []*member{w.leader, w.replica} {
		if m != nil {
			m.close()
		}
	}
}

func (w *waits) start(ctx context.Context, args ...string) (*member, error) {
	w.started++
	m, err := newMember("server"+strconv.Itoa(w.started), w.binary, w.dir, false)
	if err != nil {
		return nil, err
	}
	return m, m.start(ctx, args...)
}

// addReplica starts a new server, which follows from its start.
func (w *waits) addReplica(ctx context.Context) (err error) {
	if w.replica, err = w.start(ctx, "--replica-of", w.leader.link.Addr); err != nil {
		return err
	}
	return w.replica.inStep(ctx)
}

// once kills the leader under load, and compares the replica.
func (w *waits) once(ctx context.Context) error {
	calling, end := context.WithCancel(ctx)
	addr := w.leader.server.TCP
	var calls sync.WaitGroup
	for i := range w.clients {
		calls.Go(func() { w.clients[i].call(calling, addr, waitKey(i)) })
	}
	err := sleepBetween(ctx, leastCalls, mostCalls, w.random)
	at := time.Now()
	w.leader.kill()
	dead := w.leader
	defer dead.close()
	w.leader, w.replica = w.replica, nil
	err = errors.Join(err, w.leader.lead(ctx), w.leader.awaitInfo(ctx, "role", "master"))
	w.without = append(w.without, time.Since(at))
	end()
	calls.Wait()
	return errors.Join(err, w.check(ctx), w.addReplica(ctx))
}

func waitKey(i int) string { return fmt.Sprintf("k%d", i) }

// call charges and waits until the connection ends.
func (c *waiter) call(ctx context.Context, addr, key string) {
	rdb := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, PoolSize: 1, ContextTimeoutEnabled: true})
	conn := rdb.Conn() // WAIT is about the changes of its connection
	defer func() { _ = errors.Join(conn.Close(), rdb.Close()) }()
	for ctx.Err() == nil {
		began := time.Now()
		c.sent++
		p := conn.Pipeline()
		charge := p.Do(ctx, "CL.FIXEDWINDOW", key, waitMaxUnit, waitPeriodSec)
		waited := p.Do(ctx, "WAIT", 1, 0)
		if _, err := p.Exec(ctx); err != nil {
			if isRedisReply(err) {
				c.err = err
			}
			return // the connection has ended
		}
		reply, _ := charge.Slice()
		if n, _ := waited.Int(); n < 1 || len(reply) != 5 || reply[0] != int64(0) {
			c.err = fmt.Errorf("%v, %v", charge, waited)
			return
		}
		c.confirmed++
		c.took = append(c.took, time.Since(began))
	}
}

func isRedisReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// check compares each key with its client's account.
func (w *waits) check(ctx context.Context) error {
	var wrong []error
	for i := range w.clients {
		c := &w.clients[i]
		reply, err := w.leader.ask.Do(ctx, "CL.FIXEDWINDOW", waitKey(i), waitMaxUnit, waitPeriodSec, 0).Slice()
		if err != nil || len(reply) != 5 {
			return errors.Join(err, fmt.Errorf("a look at %s: %v", waitKey(i), reply))
		}
		left, _ := reply[2].(int64)
		units := waitMaxUnit - left
		if least, most := c.base+c.confirmed, c.base+c.sent; units < least || units > most {
			wrong = append(wrong, fmt.Errorf("%s has %d units: WAIT has confirmed %d, and %d were sent", waitKey(i), units, least, most))
		}
		if c.err != nil {
			wrong = append(wrong, fmt.Errorf("a call on %s: %w", waitKey(i), c.err))
		}
		w.confirmed, w.uncertain = w.confirmed+c.confirmed, w.uncertain+c.sent-c.confirmed
		w.lost += c.base + c.sent - units
		w.took = append(w.took, c.took...)
		*c = waiter{base: units}
	}
	return errors.Join(wrong...)
}

func (w *waits) report(out io.Writer, kills int) {
	slices.Sort(w.took)
	slices.Sort(w.without)
	_, _ = fmt.Fprintf(out, "%d kills of a leader: %d charges confirmed by WAIT 1 0, all there; %d more were sent, of which %d are lost; charge and WAIT took p50 %s, p99 %s; promoted after p50 %s, longest %s\n",
		kills, w.confirmed, w.uncertain, w.lost, short(at(w.took, 0.5)), short(at(w.took, 0.99)), short(at(w.without, 0.5)), short(at(w.without, 1)))
}
