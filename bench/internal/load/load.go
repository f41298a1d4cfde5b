// Package load puts load on a server of RESP or HTTP/1.1, or by a client library, and measures when replies
// arrive: in a closed loop, in which a connection sends its next batch once it has all replies to the
// previous one, or in an open loop, in which batches are due at fixed times even if the server does not keep
// up. It runs on Linux only.
//
// A Generator belongs to one goroutine. Within a run, each of its threads has its own connections and shares
// nothing; a library is called by a goroutine for each request at once.
package load

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// Config selects the server, the command and the connections.
type Config struct {
	Addr     netip.AddrPort
	Command  Command
	Keys     Keys
	Conns    int
	Pipeline int // requests that a connection sends at once
	Threads  int // 0 for one
	// Patience bounds the time without a reply before the run fails; 0 is ten seconds.
	Patience time.Duration
}

// Plan is the length of a run, in requests or time. With a rate the loop is open.
type Plan struct {
	Requests int           // rounded up to whole batches of every connection
	Duration time.Duration // of sending; outstanding replies are awaited
	Rate     float64       // requests per second over all connections; 0 for a closed loop
}

// Result is the measurement of a run.
type Result struct {
	Requests int
	Limited  int // see Command.LimitedBy
	Elapsed  time.Duration
	OwnCPU   time.Duration // of this whole process
	// Latency in nanoseconds: in the closed loop from when a batch was sent, in the open loop from when it
	// was due.
	Latency *hdrhistogram.Histogram
	// Lag in nanoseconds is how late the open loop sent its batches. If it is not small compared with the
	// latency, the generator had too little CPU time, and the latency is not the server's alone.
	Lag *hdrhistogram.Histogram
}

// Rate returns the replies per second.
func (r *Result) Rate() float64 { return float64(r.Requests) / r.Elapsed.Seconds() }

// Generator holds connections to a server.
type Generator struct {
	config  Config
	workers []*worker
	callers []Call // in place of workers
	hangUps []func()
}

const defaultPatience = 10 * time.Second

// Open connects. It raises the limit of open files if necessary and permitted.
func Open(config Config) (*Generator, error) {
	config.Threads = max(config.Threads, 1)
	if config.Patience == 0 {
		config.Patience = defaultPatience
	}
	if err := config.check(); err != nil {
		return nil, err
	}
	if err := raiseFileLimit(config.Conns); err != nil {
		return nil, err
	}
	g := &Generator{config: config}
	if config.Command.dial != nil {
		return g, g.dial()
	}
	for i := range config.Threads {
		w, err := newWorker(&config, i)
		if err != nil {
			g.Close()
			return nil, err
		}
		g.workers = append(g.workers, w)
	}
	return g, nil
}

func (c *Config) check() error {
	switch {
	case c.Conns < 1 || c.Pipeline < 1:
		return fmt.Errorf("load: connections and pipelined requests must be 1 or more, got %d and %d", c.Conns, c.Pipeline)
	case c.Threads > c.Conns:
		return fmt.Errorf("load: %d threads require as many connections, got %d", c.Threads, c.Conns)
	case len(c.Command.wire) == 0 && c.Command.dial == nil:
		return errors.New("load: no command")
	}
	return c.Keys.check()
}

// Close closes the connections.
func (g *Generator) Close() {
	for _, w := range g.workers {
		w.close()
	}
	for _, hangUp := range g.hangUps {
		hangUp()
	}
}

// Run executes the plan and waits for all replies. It fails at an error reply. After an error the connections
// cannot be used again.
func (g *Generator) Run(ctx context.Context, plan Plan) (*Result, error) {
	if (plan.Requests > 0) == (plan.Duration > 0) || plan.Rate < 0 {
		return nil, errors.New("load: a run has either a number of requests or a duration")
	}
	if g.callers != nil {
		return RunCallers(ctx, g.callers, g.config.Keys, plan)
	}
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()

	cpu, begin := ownCPU(), time.Now()
	outcomes := make([]outcome, len(g.workers))
	var wait sync.WaitGroup
	for i, w := range g.workers {
		wait.Go(func() {
			if outcomes[i] = w.run(plan, begin, &stop); outcomes[i].err != nil {
				stop.Store(true)
			}
		})
	}
	wait.Wait()
	r := &Result{Latency: newHistogram(), Lag: newHistogram(), OwnCPU: ownCPU() - cpu}
	var err error
	for _, o := range outcomes {
		if o.err != nil && (err == nil || errors.Is(err, errStopped)) {
			err = o.err
		}
		r.Requests += o.counted.replies
		r.Limited += o.counted.limited
		r.Elapsed = max(r.Elapsed, o.end.Sub(begin))
		r.Latency.Merge(o.latency)
		r.Lag.Merge(o.lag)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("load: interrupted: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("load: %s: %w", g.config.Addr, err)
	}
	return r, nil
}

func ownCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// newHistogram counts durations of up to a minute in nanoseconds, with three digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Minute), 3)
}

// spareFiles are descriptors for everything but connections.
const spareFiles = 64

func raiseFileLimit(conns int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("load: limit of open files: %w", err)
	}
	need := uint64(conns) + spareFiles
	if limit.Cur >= need {
		return nil
	}
	limit.Cur, limit.Max = need, max(limit.Max, need) // only root may raise Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("load: %d connections require %d open files: %w; raise the limit with ulimit -Hn", conns, need, err)
	}
	return nil
}
