package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/patience"
)

// runChanges changes the leader as planned over links of each round trip.
func runChanges(ctx context.Context, args []string, stdout io.Writer) error {
	var from, to, step int
	var binary string
	fs := newFlags("changes", "Changes the leader as planned, under load, over links of each round trip.", stdout)
	fs.IntVar(&from, "from", 0, "`milliseconds` of the first round trip; 0 for 1")
	fs.IntVar(&to, "to", 1000, "`milliseconds` of the last one")
	fs.IntVar(&step, "step", 50, "`milliseconds` between them")
	fs.StringVar(&binary, "binary", "", "`file` of a server, instead of one built without the race detector")
	if err := parse(fs, args); err != nil {
		return err
	}
	if from < 0 || step < 1 {
		return errors.New("--from must be at least 0, and --step at least 1")
	}
	dir, err := workIn(ctx, &binary, false)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c := &changes{out: stdout}
	for _, m := range []struct {
		to   **member
		name string
	}{{&c.leader, "first"}, {&c.replica, "second"}} {
		if *m.to, err = newMember(m.name, binary, dir, false); err != nil {
			return err
		}
		defer (*m.to).close()
	}
	if err := errors.Join(c.leader.start(ctx), c.replica.start(ctx), c.replica.follow(ctx, c.leader), c.replica.inStep(ctx)); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(stdout, "%10s %-8s %9s %6s %9s %10s\n", "round trip", "outcome", "allowed", "lost", "held", "one leader")
	for ms := from; ms <= to; ms += step {
		if err := c.change(ctx, time.Duration(max(1, ms))*time.Millisecond); err != nil {
			c.leader.tail(stdout)
			c.replica.tail(stdout)
			return fmt.Errorf("round trip of %d ms: %w", max(1, ms), err)
		}
	}
	return nil
}

// changes is a pair, whose roles change.
type changes struct {
	out             io.Writer
	leader, replica *member
}

// change has the replica lead while clients charge one key.
func (c *changes) change(ctx context.Context, roundTrip time.Duration) error {
	for _, m := range []*member{c.leader, c.replica} {
		m.link.Heal()
		m.link.Slow(roundTrip/2, 0)
	}
	if err := c.measured(ctx, roundTrip); err != nil {
		return err
	}
	before, err := c.replica.info(ctx)
	if err != nil {
		return err
	}
	charged, err := counted(ctx, c.leader)
	if err != nil {
		return err
	}
	sum, outcome, refusal, err := c.underLoad(ctx, before)
	if err != nil {
		return err
	}
	if outcome == "clean" || outcome == "timeout" {
		c.leader, c.replica = c.replica, c.leader
	}
	if err := errors.Join(c.leader.awaitInfo(ctx, "role", "master"), c.replica.awaitInfo(ctx, "role", "slave"), c.replica.inStep(ctx)); err != nil {
		return err
	}
	now, err := counted(ctx, c.leader)
	if err != nil {
		return err
	}
	lost := max(0, sum.allowed-(now-charged))
	_, _ = fmt.Fprintf(c.out, "%10s %-8s %9d %6d %9s %10s\n", roundTrip, outcome, sum.allowed, lost, sum.held.Round(time.Millisecond), "yes")
	switch {
	case lost > 0 && outcome != "timeout":
		return fmt.Errorf("%d confirmed units are lost", lost)
	case now-charged > sum.allowed+sum.unknown:
		return errors.New("units are charged twice")
	case outcome == "refused":
		_, _ = fmt.Fprintln(c.out, "          ", refusal)
	}
	return nil
}

// underLoad has the replica lead beside clients, and returns what they have charged.
func (c *changes) underLoad(ctx context.Context, before map[string]string) (sum counting, outcome string, refusal, err error) {
	const clients = 4
	var all sync.WaitGroup
	sums := make([]counting, clients)
	stop, end := context.WithCancel(ctx)
	defer end()
	for i := range sums {
		all.Go(func() { sums[i].run(stop, c.leader.server.TCP) })
	}
	if err := sleep(ctx, leastBefore); err != nil {
		return sum, "", nil, err
	}
	refusal = c.replica.lead(ctx)
	if outcome, err = c.outcome(ctx, before, refusal); err != nil {
		return sum, "", nil, err
	}
	if outcome != "clean" {
		end() // the leader goes on
	}
	all.Wait()
	for _, s := range sums {
		sum.allowed, sum.unknown, sum.held = sum.allowed+s.allowed, sum.unknown+s.unknown, max(sum.held, s.held)
	}
	return sum, outcome, refusal, nil
}

// measured waits until the replica knows the round trip.
func (c *changes) measured(ctx context.Context, roundTrip time.Duration) (err error) {
	least, fields := int(roundTrip.Microseconds()), map[string]string{}
	met := patience.Until(func() bool {
		if fields, err = c.replica.info(ctx); err != nil {
			return true
		}
		us, _ := strconv.Atoi(fields["cell_round_trip_usec"])
		return us >= least && fields["master_link_status"] == "up"
	})
	if err == nil && !met {
		err = fmt.Errorf("%s does not measure it: %v", c.replica.name, fields)
	}
	return err
}

// outcome waits for the end of the change.
func (c *changes) outcome(ctx context.Context, before map[string]string, refusal error) (outcome string, err error) {
	if refusal != nil {
		return "refused", nil
	}
	names := map[string]string{"cell_handovers": "clean", "cell_handover_timeouts": "timeout", "cell_handover_failures": "failed"}
	met := patience.Until(func() bool {
		var now map[string]string
		if now, err = c.replica.info(ctx); err != nil {
			return true
		}
		for field, name := range names {
			if now[field] != before[field] {
				outcome = name
			}
		}
		return outcome != ""
	})
	if err == nil && !met {
		err = errors.New("the change does not end")
	}
	return outcome, err
}

// counting is a client that charges one unit after the other.
type counting struct {
	allowed, unknown int64
	held             time.Duration // the longest wait for a reply
}

func chargeCounted(ctx context.Context, client *redis.Client, units int) (remaining, limit int64, err error) {
	reply, err := client.Do(ctx, "CL.THROTTLE", "counted", 9_999_999, 1, 400, units).Int64Slice()
	if err != nil || len(reply) != 5 {
		return 0, 0, fmt.Errorf("CL.THROTTLE: %v, %w", reply, err)
	}
	return reply[2], reply[1], nil
}

// run charges until the server refuses, closes the connection, or ctx ends.
func (c *counting) run(ctx context.Context, addr string) {
	client := redis.NewClient(&redis.Options{
		Addr: addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, PoolSize: 1,
		DialTimeout: answerWithin, ReadTimeout: answerWithin, WriteTimeout: answerWithin,
	})
	defer client.Close() //nolint:errcheck // nothing was written
	for ctx.Err() == nil {
		began := time.Now()
		_, _, err := chargeCounted(context.WithoutCancel(ctx), client, 1)
		switch c.held = max(c.held, time.Since(began)); {
		case err == nil:
			c.allowed++
		case strings.Contains(err.Error(), "READONLY"):
			return
		default:
			c.unknown++
			return
		}
	}
}

// counted returns the units that are charged on a server.
func counted(ctx context.Context, m *member) (int64, error) {
	remaining, limit, err := chargeCounted(ctx, m.ask, 0)
	return limit - remaining, err
}
