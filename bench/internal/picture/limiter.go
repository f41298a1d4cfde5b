package picture

import (
	"fmt"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/window"
)

// subject is a limiter with a picture.
type subject struct {
	file string
	// request decides a request made now. An allowed one may have to wait.
	request func(now time.Duration) (allowed bool, wait time.Duration, err error)
	// level returns the line's value: the units left or used.
	level func(now time.Duration) (int64, error)
}

// epoch is the trace's time 0, late enough that no limiter takes it for the beginning of time.
const epoch = int64(1_700_000_000_000_000_000)

func ns(at time.Duration) int64 { return epoch + int64(at) }

// ruled is a limiter of requests with a rule.
type ruled struct {
	rule  limiter.Rule
	state limiter.State
}

func (r *ruled) decide(now time.Duration, quantity int64) (funnel.Result, error) {
	result, _, err := r.rule.Decide(&r.state, ns(now), quantity)
	return result, err
}

func (r *ruled) request(now time.Duration) (allowed bool, wait time.Duration, err error) {
	result, err := r.decide(now, 1)
	return !result.Limited, 0, err
}

func (r *ruled) left(now time.Duration) (int64, error) {
	result, err := r.decide(now, 0)
	return result.Remaining, err
}

func (r *ruled) in(now time.Duration) (int64, error) {
	result, err := r.decide(now, 0)
	return result.Limit - result.Remaining, err
}

// subjects returns the limiters before their first request.
func subjects() ([]subject, error) {
	seconds := int64(period.Seconds())
	wide, err := funnel.NewLimit(funnel.Capacity, units, units, seconds)
	if err != nil {
		return nil, fmt.Errorf("picture: funnel: %w", err)
	}
	narrow, err := funnel.NewLimit(funnel.Capacity, 1, units, seconds)
	if err != nil {
		return nil, fmt.Errorf("picture: funnel: %w", err)
	}
	windows, err := window.NewLimit(funnel.WholeSeconds, units, seconds)
	if err != nil {
		return nil, fmt.Errorf("picture: window: %w", err)
	}
	exact, err := window.NewExactLimit(funnel.WholeSeconds, units, seconds)
	if err != nil {
		return nil, fmt.Errorf("picture: window: %w", err)
	}
	left := func(file string, rule limiter.Rule) subject {
		r := &ruled{rule: rule}
		return subject{file, r.request, r.left}
	}
	in := func(file string, rule limiter.Rule) subject {
		r := &ruled{rule: rule}
		return subject{file, r.request, r.in}
	}
	return []subject{
		in("funnel", limiter.OfFunnel(wide)),
		in("even", limiter.OfFunnel(narrow)),
		left("tokenbucket", limiter.OfFunnel(wide)),
		left("fixedwindow", limiter.Rule{Kind: limiter.FixedWindow, Unit: funnel.WholeSeconds, Packed: windows.Packed()}),
		left("slidingwindow", limiter.Rule{Kind: limiter.SlidingWindow, Unit: funnel.WholeSeconds, Packed: exact.Packed()}),
		left("approxwindow", limiter.Rule{Kind: limiter.ApproxWindow, Unit: funnel.WholeSeconds, Packed: windows.Packed()}),
		filledBucket(),
		waiting(narrow),
		concurrent(),
	}, nil
}

// filledBucket is a bucket that a job fills once a period with the units of a period.
func filledBucket() subject {
	r := &ruled{rule: limiter.Rule{Kind: limiter.Bucket, Packed: limiter.Packed{units}}}
	next := time.Duration(0)
	fill := func(now time.Duration) error {
		for ; next <= now; next += period {
			add := limiter.Operation{Verb: limiter.Add, Quantity: units, Max: units}
			if _, err := add.Do(&r.state, ns(next)); err != nil {
				return err
			}
		}
		return nil
	}
	return subject{
		"bucket",
		func(now time.Duration) (bool, time.Duration, error) {
			if err := fill(now); err != nil {
				return false, 0, err
			}
			return r.request(now)
		},
		func(now time.Duration) (int64, error) {
			if err := fill(now); err != nil {
				return 0, err
			}
			return r.left(now)
		},
	}
}

// waiting lets requests wait for their turn, for up to half a period. The line shows the number of waiting
// ones.
func waiting(limit funnel.Limit) subject {
	var state limiter.State
	var turns []time.Duration
	return subject{
		"waiting",
		func(now time.Duration) (bool, time.Duration, error) {
			o := limiter.Operation{Verb: limiter.Wait, Funnel: limit, Quantity: 1, TTLNs: int64(period / 2)}
			if _, err := o.Do(&state, ns(now)); err != nil || o.Result.Limited {
				return false, 0, err
			}
			wait := time.Duration(o.WaitNs)
			turns = append(turns, now+wait)
			return true, wait, nil
		},
		func(now time.Duration) (n int64, _ error) {
			for _, turn := range turns {
				if turn > now {
					n++
				}
			}
			return n, nil
		},
	}
}

// concurrent bounds the requests at work at once, each for half a period. The line shows their number.
func concurrent() subject {
	const places = units / 2
	var state limiter.State
	id := uint64(0)
	var ends []time.Duration
	leave := func(now time.Duration) error {
		for len(ends) > 0 && ends[0] <= now {
			release := limiter.Operation{Verb: limiter.Release, ID: id - uint64(len(ends)) + 1}
			if _, err := release.Do(&state, ns(ends[0])); err != nil {
				return err
			}
			ends = ends[1:]
		}
		return nil
	}
	return subject{
		"concurrency",
		func(now time.Duration) (bool, time.Duration, error) {
			if err := leave(now); err != nil {
				return false, 0, err
			}
			enter := limiter.Operation{Verb: limiter.Acquire, ID: id + 1, Max: places, TTLNs: int64(traceLength)}
			if _, err := enter.Do(&state, ns(now)); err != nil || enter.Result.Limited {
				return false, 0, err
			}
			id++
			ends = append(ends, now+period/2)
			return true, 0, nil
		},
		func(now time.Duration) (int64, error) {
			if err := leave(now); err != nil {
				return 0, err
			}
			holders := limiter.Operation{Verb: limiter.Holders}
			_, err := holders.Do(&state, ns(now))
			return holders.Count, err
		},
	}
}
