// Package killtest loads a durable server and reports what it lost after a kill. A Load is for one goroutine.
package killtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

type Config struct {
	Clients int // client n uses database n
	Keys    int // per client
	// EachReply treats each reply as durable, as with --fsync-interval 0. Otherwise WAITAOF confirms.
	EachReply bool
	Seed      uint64
}

// Load knows the allowed states of its clients' keys.
type Load struct {
	config  Config
	clients []*client
}

// New returns a load for a server without keys.
func New(c Config) *Load {
	l := &Load{config: c}
	for i := range c.Clients {
		l.clients = append(l.clients, newClient(i, c))
	}
	return l
}

// Found compares a restarted server with its past.
type Found struct {
	Keys      int // keys compared
	Confirmed int // durable calls
	Unsure    int // later calls, kept or lost
	Survived  int // keys that show a later call
	// Wrong has a line for each key that lost a durable call or has an impossible state.
	Wrong []string
}

// Check compares a server's keys with their allowed states, and goes on from there.
func (l *Load) Check(ctx context.Context, addr string) (sum Found, err error) {
	found, errs := make([]Found, len(l.clients)), make([]error, len(l.clients))
	var checks sync.WaitGroup
	for i, c := range l.clients {
		checks.Go(func() { found[i], errs[i] = c.check(ctx, addr) })
	}
	checks.Wait()
	for i, f := range found {
		if errs[i] != nil {
			return sum, errs[i]
		}
		sum.Add(f)
	}
	return sum, nil
}

func (f *Found) Add(other Found) {
	f.Keys, f.Confirmed, f.Unsure, f.Survived = f.Keys+other.Keys, f.Confirmed+other.Confirmed, f.Unsure+other.Unsure, f.Survived+other.Survived
	f.Wrong = append(f.Wrong, other.Wrong...)
}

// Run is a Load under way.
type Run struct {
	load   *Load
	ending atomic.Bool // errors from now on are expected
	all    sync.WaitGroup
	stop   context.CancelFunc
	mu     sync.Mutex // guards amiss
	amiss  []string
}

// Confirmed returns the number of durable calls.
func (l *Load) Confirmed() (sum int64) {
	for _, c := range l.clients {
		sum += c.confirmed.Load()
	}
	return sum
}

// Begin starts all clients.
func (l *Load) Begin(ctx context.Context, addr string) *Run {
	ctx, stop := context.WithCancel(ctx)
	r := &Run{load: l, stop: stop}
	for _, c := range l.clients {
		r.all.Go(func() { r.note(c.call(ctx, addr)) })
	}
	if !l.config.EachReply {
		r.all.Go(func() { r.note(l.confirm(ctx, addr)) })
	}
	return r
}

func (r *Run) note(err error) {
	if err == nil || r.ending.Load() && !isRefusal(err) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.amiss = append(r.amiss, err.Error())
}

// End kills the server and returns the clients' earlier complaints.
func (r *Run) End(kill func()) (amiss []string) {
	r.ending.Store(true)
	kill()
	r.wait()
	return r.amiss
}

// Pause ends the clients after their current call.
func (r *Run) Pause() (amiss []string) {
	for _, c := range r.load.clients {
		c.pausing.Store(true)
	}
	r.stop()
	r.wait()
	return r.amiss
}

func (r *Run) wait() {
	r.all.Wait()
	r.stop()
	for _, c := range r.load.clients {
		c.pausing.Store(false)
	}
}

// ConfirmReplied notes that all that was answered was to be kept: the server was asked to end, and did.
func (l *Load) ConfirmReplied() {
	for _, c := range l.clients {
		c.confirmed.Store(c.replied.Load())
	}
}

// pause is between two questions what is kept: each has the server sync at once, which it is to do by itself,
// too.
const pause = 600 * time.Millisecond

// waitAtMost bounds WAITAOF.
const waitAtMost = 30 * time.Second

// confirm learns by WAITAOF what is kept.
func (l *Load) confirm(ctx context.Context, addr string) error {
	rdb, hangUp, err := dial(ctx, addr, 0)
	if err != nil {
		return err
	}
	defer hangUp()
	for ctx.Err() == nil {
		replied := make([]int64, len(l.clients))
		for i, c := range l.clients {
			replied[i] = c.replied.Load()
		}
		err = waitAOF(ctx, rdb)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for i, c := range l.clients {
			c.confirmed.Store(max(replied[i], c.confirmed.Load()))
		}
		time.Sleep(pause)
	}
	return nil
}

func waitAOF(ctx context.Context, rdb *redis.Conn) error {
	synced, err := rdb.Do(ctx, "WAITAOF", 1, 0, waitAtMost.Milliseconds()).Int64Slice()
	if err != nil {
		return fmt.Errorf("WAITAOF: %w", unlessEnding(err))
	}
	if !slices.Equal(synced, []int64{1, 0}) {
		return fmt.Errorf("%w: WAITAOF: %d", errUnexpected, synced)
	}
	return nil
}
