package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/test/redistest"
	"cellserver/lab/soak/internal/target"
	"cellserver/lab/soak/internal/values"
)

type valuesOptions struct {
	calls   int
	clients int
	time    time.Duration
	binary  string
	control bool
}

func runValues(ctx context.Context, args []string, stdout io.Writer) error {
	var o valuesOptions
	fs := newFlags("values",
		"Makes the same calls of values at a server and a redis-server, and floods a server with values beside honest funnels.", stdout)
	fs.IntVar(&o.calls, "calls", 3_000_000, "how many calls to compare")
	fs.IntVar(&o.clients, "clients", 8, "how many clients make them")
	fs.DurationVar(&o.time, "time", 30*time.Second, "how long to flood")
	fs.StringVar(&o.binary, "binary", "", "`file` of a server, instead of one built now")
	fs.BoolVar(&o.control, "control", false, "compare two redis-servers, and flood none")
	if err := parse(fs, args); err != nil {
		return err
	}
	dir, err := workIn(ctx, &o.binary, false)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := o.beside(ctx, dir, stdout); err != nil || o.control {
		return err
	}
	return o.flood(ctx, dir, stdout)
}

// beside compares a server's replies with those of a redis-server.
func (o *valuesOptions) beside(ctx context.Context, dir string, out io.Writer) error {
	var addrs [2]string
	for i := range addrs {
		if i == 0 && !o.control {
			server, err := target.Start(ctx, target.Spec{Binary: o.binary, Dir: dir, Plain: true})
			if err != nil {
				return err
			}
			defer server.Kill()
			addrs[i] = server.TCP
			continue
		}
		server, err := redistest.Launch(ctx, dir)
		if err != nil {
			return err
		}
		defer server.Close()
		addrs[i] = server.Addr
	}
	began := time.Now()
	var count values.Count
	errs := make([]error, o.clients)
	var calling sync.WaitGroup
	for i := range o.clients {
		calling.Go(func() {
			errs[i] = values.Compare(ctx, addrs, newRandom(i), i, o.calls/o.clients,
				&count)
		})
	}
	calling.Wait()
	_, _ = fmt.Fprintf(out,
		"%d calls compared in %s, of which %d in transactions, %d of keys that expired meanwhile, and %d by tolerance, as a key was about to\n",
		count.Calls.Load(), time.Since(began).Round(time.Second), count.InExec.Load(),
		count.Expired.Load(), count.Tolerated.Load())
	if err := errors.Join(errs...); err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	if count.Expired.Load() == 0 || count.Tolerated.Load() > count.Calls.Load()/10 {
		return errors.New("the calls are not what they should be")
	}
	return nil
}

// awaitFlood waits for a while, and on a busy machine up to twenty times as long for that many values, most
// of which are then evicted.
func awaitFlood(ctx context.Context, atLeast time.Duration, values *atomic.Int64, want int64) {
	for began := time.Now(); ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if waited := time.Since(began); waited > 20*atLeast || waited > atLeast && values.Load() >= want {
			return
		}
	}
}

// flood floods a server of little memory with values, beside honest funnels and counters.
func (o *valuesOptions) flood(ctx context.Context, dir string, out io.Writer) error {
	server, err := target.Start(ctx, target.Spec{Binary: o.binary, Dir: dir, Plain: true,
		Args: []string{"--maxmemory", "64mb", "--maxmemory-values", "8mb", "--maxmemory-policy",
			"volatile-ttl"}})
	if err != nil {
		return err
	}
	defer server.Kill()
	kept, err := values.FillForever(ctx, server.TCP)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%d values without a time to live fill the server; more were refused\n", kept)
	flooding, end := context.WithCancel(ctx)
	defer end()
	var f values.Flood
	var running sync.WaitGroup
	for i := range 3 {
		running.Go(func() { f.Run(flooding, server.TCP, newRandom(i), i) })
		running.Go(func() { f.Throttle(flooding, server.TCP, newRandom(10+i), i) })
		running.Go(func() { f.Increase(flooding, server.TCP, i) })
	}
	awaitFlood(ctx, o.time, &f.Values, 3*int64(kept))
	end()
	running.Wait()
	rank, err := f.Rank(ctx, server.TCP)
	_, _ = fmt.Fprintf(out,
		"%d values flooded, %d calls of honest funnels and %d of counters; of 100 random values, ordered by expiry, those that are left have the mean place %.0f\n",
		f.Values.Load(), f.Throttled.Load(), f.Increased.Load(), rank)
	found := append(f.Faults(), server.Trouble()...)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case rank < 55:
		found = append(found, "values were evicted that would not have expired soonest")
	}
	if len(found) > 0 {
		return errors.New(strings.Join(found, "\n"))
	}
	return nil
}
