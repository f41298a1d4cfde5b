package load

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Call requests a key once, and returns whether it was limited.
type Call func(ctx context.Context, key uint64) (limited bool, err error)

// desks are how many counts the callers share: a histogram for each of a thousand would take most of the memory.
const desks = 8

// desk counts for some of the callers.
type desk struct {
	mu           sync.Mutex // guards all below
	counted      counted
	latency, lag *hdrhistogram.Histogram
}

// RunCallers is Generator.Run for what is called as a library, by one goroutine each. A caller does not call again before it
// has its reply, so in an open loop it may be late; its latency is from when the call was due.
func RunCallers(ctx context.Context, callers int, keys Keys, plan Plan, call Call) (*Result, error) {
	if err := keys.check(); err != nil {
		return nil, err
	}
	if plan.Duration <= 0 {
		return nil, errors.New("load: callers call for a duration")
	}
	var all [desks]*desk
	for i := range all {
		all[i] = &desk{latency: newHistogram(), lag: newHistogram()}
	}
	drawn := &draws{keys: keys.sampler(0, 1)}
	cpu, began := ownCPU(), time.Now()
	failed := make([]error, callers)
	var stop atomic.Bool // at the first error
	var running sync.WaitGroup
	for i := range callers {
		c := caller{desk: all[i%desks], keys: drawn, call: call, plan: plan, began: began, due: began, stop: &stop}
		if plan.Rate > 0 {
			c.pause = time.Duration(float64(callers) / plan.Rate * float64(time.Second))
			c.due = began.Add(c.pause * time.Duration(i) / time.Duration(callers))
		}
		running.Go(func() { failed[i] = c.run(ctx) })
	}
	running.Wait()
	r := &Result{Elapsed: time.Since(began), OwnCPU: ownCPU() - cpu, Latency: newHistogram(), Lag: newHistogram()}
	for _, d := range all {
		r.Requests, r.Limited = r.Requests+d.counted.replies, r.Limited+d.counted.limited
		r.Latency.Merge(d.latency)
		r.Lag.Merge(d.lag)
	}
	return r, errors.Join(failed...)
}

// caller is one goroutine.
type caller struct {
	desk  *desk
	keys  *draws
	call  Call
	plan  Plan
	began time.Time
	due   time.Time     // the next call, in an open loop
	pause time.Duration // between two calls of an open loop; 0 in a closed one
	stop  *atomic.Bool
}

func (c *caller) run(ctx context.Context) error {
	for !c.stop.Load() && ctx.Err() == nil {
		if c.pause > 0 {
			time.Sleep(time.Until(c.due))
		}
		sent := time.Now()
		if sent.Sub(c.began) >= c.plan.Duration {
			return nil
		}
		since := sent
		if c.pause > 0 {
			since = c.due
			c.due = c.due.Add(c.pause)
		}
		limited, err := c.call(ctx, c.keys.next())
		if err != nil {
			c.stop.Store(true)
			return err
		}
		c.desk.count(limited, time.Since(since), sent.Sub(since))
	}
	return ctx.Err()
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
