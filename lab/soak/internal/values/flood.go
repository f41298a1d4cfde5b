package values

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	pipeline    = 100
	valueBytes  = 100
	limitedKeys = 3000 // of a client
	capacity    = 10
	counterKeys = 100 // of a client
	refusedFull = "-OOM command not allowed when used memory > 'maxmemory'."
)

// Flood fills a server with values, beside clients whose keys it must not cost anything. Its clients run at
// once.
type Flood struct {
	Values, Throttled, Increased atomic.Int64

	mu      sync.Mutex // guards faults and flooded
	faults  []string
	flooded []expiring // the last values
}

type expiring struct {
	name      string
	expiresMs int64
}

// Faults returns what clients must not see.
func (f *Flood) Faults() []string { return f.faults }

func (f *Flood) fault(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.faults) < 20 {
		f.faults = append(f.faults, fmt.Sprintf(format, args...))
	}
}

// FillForever sets values without a time to live until the server refuses them, checks that it keeps them
// and takes back those that are deleted, and returns how many there were.
func FillForever(ctx context.Context, addr string) (int, error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return 0, err
	}
	defer c.nc.Close()
	var kept []string
	value := strings.Repeat("v", valueBytes)
	for refused := 0; refused < 10*pipeline; {
		calls := make([][]string, pipeline)
		for i := range calls {
			calls[i] = []string{"SET", fmt.Sprintf("forever:%d:%d", len(kept)+refused, i), value}
		}
		replies, err := c.do(calls...)
		if err != nil {
			return 0, err
		}
		for i, r := range replies {
			switch r.line {
			case "+OK":
				kept = append(kept, calls[i][1])
			case refusedFull:
				refused++
			default:
				return 0, fmt.Errorf("%q: %s", calls[i][:2], r)
			}
		}
	}
	return len(kept), c.takeBack(kept)
}

// takeBack finds all values and deletes them.
func (c *conn) takeBack(kept []string) error {
	for _, name := range []string{"STRLEN", "DEL"} {
		want := map[string]string{"STRLEN": ":" + strconv.Itoa(valueBytes), "DEL": ":1"}[name]
		for at := 0; at < len(kept); at += pipeline {
			var calls [][]string
			for _, key := range kept[at:min(at+pipeline, len(kept))] {
				calls = append(calls, []string{name, key})
			}
			replies, err := c.do(calls...)
			if err != nil {
				return err
			}
			for i, r := range replies {
				if r.line != want {
					return fmt.Errorf("%q: %s, want %s: a value without a time to live is lost",
						calls[i], r, want)
				}
			}
		}
	}
	return nil
}

// Run sets values that expire in an hour or earlier until ctx is done. All must be taken.
func (f *Flood) Run(ctx context.Context, addr string, random *rand.Rand, client int) {
	value := strings.Repeat("v", valueBytes)
	f.serve(ctx, addr, func(c *conn, round int) error {
		calls := make([][]string, pipeline)
		set := make([]expiring, pipeline)
		for i := range calls {
			set[i] = expiring{fmt.Sprintf("flood:%d:%d:%d", client, round, i),
				600_000 + random.Int64N(3_000_000)}
			calls[i] = []string{"SET", set[i].name, value, "PX", strconv.FormatInt(set[i].expiresMs, 10)}
		}
		replies, err := c.do(calls...)
		if err != nil {
			return err
		}
		for i, r := range replies {
			if r.line != "+OK" {
				f.fault("%q: %s", calls[i][:2], r)
			}
		}
		f.Values.Add(pipeline)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.flooded = append(f.flooded, set...)
		if most := 400_000; len(f.flooded) > most {
			f.flooded = append([]expiring(nil), f.flooded[len(f.flooded)-most/2:]...)
		}
		return nil
	})
}

// serve calls in rounds until ctx is done.
func (f *Flood) serve(ctx context.Context, addr string, round func(c *conn, round int) error) {
	c, err := dial(ctx, addr)
	if err != nil {
		f.fault("dial: %v", err)
		return
	}
	defer c.nc.Close()
	for n := 0; ctx.Err() == nil; n++ {
		if err := round(c, n); err != nil {
			f.fault("%v", err)
			return
		}
	}
}

// Throttle calls with funnels of its own, which leak nothing meanwhile: each call's result is known.
func (f *Flood) Throttle(ctx context.Context, addr string, random *rand.Rand, client int) {
	left := make([]int, limitedKeys)
	for i := range left {
		left[i] = capacity
	}
	f.serve(ctx, addr, func(c *conn, _ int) error {
		keys, calls := make([]int, pipeline), make([][]string, pipeline)
		wants := make([]string, pipeline)
		for i := range calls {
			k, quantity := random.IntN(limitedKeys), 1+random.IntN(3)
			limited := 1
			if quantity <= left[k] {
				limited, left[k] = 0, left[k]-quantity
			}
			keys[i], wants[i] = k, fmt.Sprintf(":%d %d", limited, left[k])
			calls[i] = []string{"CL.THROTTLE", fmt.Sprintf("honest:%d:%d", client, k),
				strconv.Itoa(capacity - 1), "1", "1000000", strconv.Itoa(quantity)}
		}
		replies, err := c.do(calls...)
		if err != nil {
			return err
		}
		for i, r := range replies {
			if len(r.elems) != 5 || r.elems[0].line+" "+r.elems[2].line[1:] != wants[i] {
				f.fault("%q: %s, want the first and the third %q", calls[i], r, wants[i])
			}
		}
		f.Throttled.Add(pipeline)
		return nil
	})
}

// Increase increases counters of its own that expire later than all that is flooded.
func (f *Flood) Increase(ctx context.Context, addr string, client int) {
	f.serve(ctx, addr, func(c *conn, round int) error {
		calls := make([][]string, 0, 2*counterKeys)
		for i := range counterKeys {
			name := fmt.Sprintf("counter:%d:%d", client, i)
			calls = append(calls, []string{"INCR", name}, []string{"EXPIRE", name, "1000000", "NX"})
		}
		replies, err := c.do(calls...)
		if err != nil {
			return err
		}
		for i, r := range replies {
			want := ":" + strconv.Itoa(round+1)
			if i%2 == 1 {
				want = map[bool]string{true: ":1", false: ":0"}[round == 0]
			}
			if r.line != want {
				f.fault("%q: %s, want %s", calls[i], r, want)
			}
		}
		f.Increased.Add(counterKeys)
		return nil
	})
}

// Rank returns the mean place of the flooded values that are left, of 100 random ones by expiry: about 50 if
// the evicted were random, more if they would have expired sooner.
func (f *Flood) Rank(ctx context.Context, addr string) (float64, error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return 0, err
	}
	defer c.nc.Close()
	var places, left float64
	for at := 0; at+pipeline <= len(f.flooded); at += pipeline {
		var calls [][]string
		for _, v := range f.flooded[at : at+pipeline] {
			calls = append(calls, []string{"EXISTS", v.name})
		}
		replies, err := c.do(calls...)
		if err != nil {
			return 0, err
		}
		for i, r := range replies {
			if r.line == ":1" {
				places += float64(f.flooded[at+i].expiresMs-600_000) / 30_000
				left++
			}
		}
	}
	if left == 0 {
		return 0, errors.New("no value that was flooded is left")
	}
	return places / left, nil
}
