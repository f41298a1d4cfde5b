package load

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// Call requests a key once, and returns whether it was limited.
type Call func(ctx context.Context, key uint64) (limited bool, err error)

// Dial connects a client library to a server, with a time-out for its calls. newCaller returns the call of
// one goroutine.
type Dial func(addr netip.AddrPort, timeout time.Duration) (newCaller func() Call, hangUp func(), err error)

// LibraryCommand returns the command of a library, with a text that has KeyMark for the key.
func LibraryCommand(dial Dial, text string) Command { return Command{dial: dial, text: text} }

// dial makes each connection, with a caller for each request that it has at once.
func (g *Generator) dial() error {
	for range g.config.Conns {
		newCaller, hangUp, err := g.config.Command.dial(g.config.Addr, g.config.Patience)
		if err != nil {
			g.Close()
			return fmt.Errorf("load: cannot connect to %s: %w; is a server there?", g.config.Addr, err)
		}
		g.hangUps = append(g.hangUps, hangUp)
		for range g.config.Pipeline {
			g.callers = append(g.callers, newCaller())
		}
	}
	return nil
}

// desks is the number of shared counts: a histogram for each of a thousand callers would take most of the
// memory.
const desks = 8

// desk counts for some callers.
type desk struct {
	mu           sync.Mutex // guards all below
	counted      counted
	latency, lag *hdrhistogram.Histogram
}

// RunCallers is Generator.Run for a library called by goroutines, each of which waits for its reply. In an
// open loop, any of them makes the next due call, and its latency counts from then.
func RunCallers(ctx context.Context, callers []Call, keys Keys, plan Plan) (*Result, error) {
	if err := keys.check(); err != nil {
		return nil, err
	}
	var all [desks]*desk
	for i := range all {
		all[i] = &desk{latency: newHistogram(), lag: newHistogram()}
	}
	drawn := &draws{keys: keys.sampler(0, 1)}
	cpu, began := ownCPU(), time.Now()
	failed := make([]error, len(callers))
	var stop atomic.Bool // at the first error
	var left atomic.Int64
	calls, end := ceilDiv(plan.Requests, len(callers))*len(callers), began.Add(math.MaxInt64)
	left.Store(int64(calls))
	if calls == 0 {
		calls, end = int(plan.Rate*plan.Duration.Seconds()), began.Add(plan.Duration)
		left.Store(math.MaxInt64)
	}
	var due chan time.Time
	if plan.Rate > 0 {
		due = make(chan time.Time, calls+1) // never blocks
		go fallDue(ctx, due, began, plan.Rate, &stop)
	}
	var running sync.WaitGroup
	for i, call := range callers {
		c := caller{desk: all[i%desks], keys: drawn, call: call, end: end, left: &left, stop: &stop}
		running.Go(func() {
			if due != nil {
				failed[i] = c.answer(ctx, due)
			} else {
				failed[i] = c.repeat(ctx)
			}
		})
	}
	running.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	r := &Result{Elapsed: time.Since(began), OwnCPU: ownCPU() - cpu, Latency: newHistogram(), Lag: newHistogram()}
	for _, d := range all {
		r.Requests, r.Limited = r.Requests+d.counted.replies, r.Limited+d.counted.limited
		r.Latency.Merge(d.latency)
		r.Lag.Merge(d.lag)
	}
	return r, nil
}

// fallDue sends the due times of an open loop's calls. It sleeps in a thread of its own, as idle runtime
// timers are up to a millisecond late.
func fallDue(ctx context.Context, due chan<- time.Time, began time.Time, rate float64, stop *atomic.Bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(due)
	pause := float64(time.Second) / rate
	for i := range cap(due) - 1 {
		at := began.Add(time.Duration(float64(i) * pause))
		if d := time.Until(at); d > 0 {
			t := unix.NsecToTimespec(int64(d))
			_ = unix.Nanosleep(&t, nil) // a call sent early by a signal is harmless
		}
		if stop.Load() || ctx.Err() != nil {
			return
		}
		due <- at
	}
}

// caller is a goroutine.
type caller struct {
	desk *desk
	keys *draws
	call Call
	end  time.Time
	left *atomic.Int64 // calls of all callers
	stop *atomic.Bool
}

// repeat is a closed loop.
func (c *caller) repeat(ctx context.Context) error {
	for c.left.Add(-1) >= 0 {
		if err := c.once(ctx, time.Now()); err != nil {
			return err
		}
		if c.stop.Load() || !time.Now().Before(c.end) {
			return nil
		}
	}
	return nil
}

// answer takes part in an open loop.
func (c *caller) answer(ctx context.Context, due <-chan time.Time) error {
	for at := range due {
		if err := c.once(ctx, at); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (c *caller) once(ctx context.Context, since time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	sent := time.Now()
	limited, err := c.call(ctx, c.keys.next())
	if err != nil {
		c.stop.Store(true)
		return err
	}
	c.desk.count(limited, time.Since(since), sent.Sub(since))
	return nil
}

// draws is a sampler for all callers.
type draws struct {
	mu   sync.Mutex // guards keys
	keys sampler
}

func (d *draws) next() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keys.next()
}

func (d *desk) count(limited bool, latency, lag time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counted.replies++
	if limited {
		d.counted.limited++
	}
	_ = d.latency.RecordValue(max(int64(latency), 1)) // longer than a minute is an error elsewhere
	_ = d.lag.RecordValue(max(int64(lag), 1))
}
