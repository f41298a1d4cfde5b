// Package charges charges keys of all kinds on a leader, and tells which states each may have on the server
// that takes over. A Load is for one goroutine.
package charges

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config configures a Load.
type Config struct {
	Clients int
	Keys    int // of all clients together
	Seed    uint64
}

// Load knows the allowed states of its clients' keys.
type Load struct{ clients []*client }

// New returns a Load for a server without keys.
func New(c Config) *Load {
	l := &Load{}
	for i := range c.Clients {
		l.clients = append(l.clients, newClient(i, c))
	}
	return l
}

// Prepare defines what the load's calls need.
func Prepare(ctx context.Context, addr string) error {
	rdb, hangUp, err := dial(ctx, addr, 0)
	if err != nil {
		return err
	}
	defer hangUp()
	return rdb.Do(ctx, define()...).Err()
}

// Run is a Load under way.
type Run struct {
	load *Load
	all  sync.WaitGroup
	stop context.CancelFunc
	mu   sync.Mutex // guards amiss
	what []string
}

// Begin starts all clients. Each ends by itself when its connection does.
func (l *Load) Begin(ctx context.Context, addr string) *Run {
	ctx, stop := context.WithCancel(ctx)
	r := &Run{load: l, stop: stop}
	for _, c := range l.clients {
		r.all.Go(func() {
			if err := c.call(ctx, addr); err != nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.what = append(r.what, err.Error())
			}
		})
	}
	return r
}

// Pause ends the clients after their calls, and returns what was amiss.
func (r *Run) Pause() (amiss []string) {
	for _, c := range r.load.clients {
		c.pausing.Store(true)
	}
	r.all.Wait()
	return r.end()
}

// End closes the clients' connections, and returns what was amiss.
func (r *Run) End() (amiss []string) {
	r.stop()
	r.all.Wait()
	return r.end()
}

func (r *Run) end() []string {
	r.stop()
	for _, c := range r.load.clients {
		c.pausing.Store(false)
	}
	return r.what
}

// Answered returns the number of calls that were answered so far.
func (l *Load) Answered() (sum int64) {
	for _, c := range l.clients {
		sum += c.answered.Load()
	}
	return sum
}

// Need is what the server that takes over must have.
type Need uint8

// Needs:
const (
	Waited   Need = iota // what WAIT has confirmed
	Answered             // whatever was answered
)

// Found compares a server with the calls before.
type Found struct {
	Items     int
	Confirmed int // calls that had to be there
	Answered  int // later calls that were answered and may be forgiven
	Forgiven  int // of these, those that are not there
	Uncertain int // calls without an answer
	Refused   map[string]int
	Waits     []time.Duration // of WAIT
	Wrong     []string        // a line for each item with a state that it must not have
}

// Add adds another comparison.
func (f *Found) Add(other *Found) {
	f.Items, f.Confirmed, f.Answered = f.Items+other.Items, f.Confirmed+other.Confirmed, f.Answered+other.Answered
	f.Forgiven, f.Uncertain = f.Forgiven+other.Forgiven, f.Uncertain+other.Uncertain
	if f.Refused == nil {
		f.Refused = map[string]int{}
	}
	for code, n := range other.Refused {
		f.Refused[code] += n
	}
	f.Waits, f.Wrong = append(f.Waits, other.Waits...), append(f.Wrong, other.Wrong...)
}

// Check compares a server's states with those allowed, and goes on from there.
func (l *Load) Check(ctx context.Context, addr string, need Need) (*Found, error) {
	sum := &Found{}
	for _, c := range l.clients {
		found, err := c.check(ctx, addr, need)
		if err != nil {
			return sum, fmt.Errorf("client %d: %w", c.number, err)
		}
		sum.Add(found)
	}
	return sum, nil
}

// looks are sent together.
const looks = 500

func (c *client) check(ctx context.Context, addr string, need Need) (*Found, error) {
	calls := make([][]any, len(c.items))
	for i, it := range c.items {
		calls[i] = it.kind.look(it.key)
	}
	replies, err := all(ctx, addr, c.db, calls)
	if err != nil {
		return nil, err
	}
	got := make([]int64, len(c.items))
	for i, it := range c.items {
		if got[i], err = it.kind.units(replies[i]); err != nil {
			return nil, fmt.Errorf("%v: %w", calls[i], err)
		}
	}
	return c.compare(got, need), nil
}

// all makes calls and returns their replies.
func all(ctx context.Context, addr string, db int, calls [][]any) (replies []any, err error) {
	rdb, hangUp, err := dial(ctx, addr, db)
	if err != nil {
		return nil, err
	}
	defer hangUp()
	for some := range slices.Chunk(calls, looks) {
		p, sent := rdb.Pipeline(), make([]*redis.Cmd, len(some))
		for i, args := range some {
			sent[i] = p.Do(ctx, args...)
		}
		_, failed := p.Exec(ctx)
		for _, s := range sent {
			if err := s.Err(); err != nil && err != redis.Nil { //nolint:errorlint // it is never wrapped
				return nil, fmt.Errorf("%v: %w", s.Args(), err)
			}
			replies = append(replies, s.Val())
		}
		if failed != nil && !isReply(failed) {
			return nil, failed
		}
	}
	return replies, nil
}
