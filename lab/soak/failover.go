package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"cellserver/lab/soak/internal/charges"
)

// Bounds of the load around a failover.
const (
	failoverClients = 8
	failoverKeys    = 1000
	leastBefore     = 300 * time.Millisecond // of a fault
	mostBefore      = 900 * time.Millisecond
	afterFailover   = 200 * time.Millisecond
	maxLag          = 300 * time.Millisecond // --min-replicas-max-lag
)

type failoverOptions struct {
	rounds    int
	only      []string
	binary    string
	withRedis bool
	seed      uint64
}

func runFailover(ctx context.Context, args []string, stdout io.Writer) error {
	var o failoverOptions
	fs := newFlags("failover", "Lets a replica take over from its leader under load, by all faults in turn, and looks for what is lost or doubled.", stdout)
	fs.IntVar(&o.rounds, "rounds", 100, "how often")
	fs.StringArrayVar(&o.only, "only", nil, "`name` of a fault; all without it, several if repeated")
	fs.StringVar(&o.binary, "binary", "", "`file` of a server, instead of one built without the race detector")
	fs.BoolVar(&o.withRedis, "redis", true, "have two redis-servers suffer the same faults, where they can")
	addSeed(fs, &o.seed)
	if err := parse(fs, args); err != nil {
		return err
	}
	faults, err := chosenFaults(o.only)
	if err != nil {
		return err
	}
	logging.Disable() // go-redis's, of the failures that are waited for
	dir, err := workIn(ctx, &o.binary, false)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	f := &failover{out: stdout, sums: map[string]*failoverSum{}, random: rand.New(rand.NewPCG(o.seed, 0))}
	defer f.close()
	if err := f.open(ctx, &o, dir); err != nil {
		return err
	}
	for i := range o.rounds {
		err := f.round(ctx, &faults[i%len(faults)])
		if len(f.wrong) > 0 {
			err = errors.Join(err, errors.New(strings.Join(f.wrong, "\n")))
		}
		if err != nil {
			f.report(faults)
			f.tails()
			return fmt.Errorf("round %d, %s, seed %d: %w", i+1, faults[i%len(faults)].name, o.seed, err)
		}
	}
	f.report(faults)
	return nil
}

// failover is a leader with its replica.
type failover struct {
	out             io.Writer
	random          *rand.Rand // the moments of faults
	load            *charges.Load
	leader, replica *member
	third           *member // runs in some rounds
	members         []*member
	redis           *redisPair

	sums  map[string]*failoverSum
	wrong []string
}

// failoverSum is the outcome of all rounds with a fault.
type failoverSum struct {
	rounds           int
	found            charges.Found
	without, inRedis []time.Duration
	strayed, refused int // calls on the old leader after the promotion
	late             int // planned changes that took too long, and are as a crash
	partial, full    int // syncs of those who followed the new leader
}

func (f *failover) open(ctx context.Context, o *failoverOptions, dir string) (err error) {
	args := []string{"--min-replicas-max-lag", maxLag.String()}
	for _, m := range []struct {
		to   **member
		name string
	}{{&f.leader, "first"}, {&f.replica, "second"}, {&f.third, "third"}} {
		if *m.to, err = newMember(m.name, o.binary, dir, true, args...); err != nil {
			return err
		}
		f.members = append(f.members, *m.to)
	}
	if o.withRedis {
		if f.redis, err = openRedisPair(ctx, dir); err != nil {
			return err
		}
	}
	if err := errors.Join(f.leader.start(ctx), f.replica.start(ctx)); err != nil {
		return err
	}
	if err := f.replica.follow(ctx, f.leader); err != nil {
		return err
	}
	f.load = charges.New(charges.Config{Clients: failoverClients, Keys: failoverKeys, Seed: o.seed})
	return errors.Join(charges.Prepare(ctx, f.leader.server.TCP), f.replica.inStep(ctx))
}

func (f *failover) close() {
	for _, m := range f.members {
		m.close()
	}
	if f.redis != nil {
		f.redis.close()
	}
}

func (f *failover) tails() {
	for _, m := range f.members {
		m.tail(f.out)
	}
}

// round is one failover.
type round struct {
	*failover
	sum     *failoverSum
	need    charges.Need
	old, to *member   // to takes over
	at      time.Time // of the fault
	watch   *watch
	before  map[*member]map[string]string // INFO replication
}

// round has the replica take over under load, checks it, and has the old leader follow.
func (f *failover) round(ctx context.Context, fault *fault) error {
	if f.sums[fault.name] == nil {
		f.sums[fault.name] = &failoverSum{}
	}
	r := &round{failover: f, sum: f.sums[fault.name], need: fault.need, old: f.leader, to: f.replica, before: map[*member]map[string]string{}}
	r.sum.rounds++
	for _, m := range f.members {
		if m.ask != nil {
			r.before[m], _ = m.info(ctx) // it is missed below
		}
	}
	if fault.before != nil {
		if err := fault.before(ctx, r); err != nil {
			return err
		}
	}
	if err := r.takeOver(ctx, fault); err != nil {
		return err
	}
	if err := r.check(ctx, r.to, r.need, r.sum); err != nil {
		return err
	}
	if fault.after != nil {
		if err := fault.after(ctx, r); err != nil {
			return err
		}
	}
	if err := r.goOn(ctx); err != nil {
		return err
	}
	for _, m := range f.members {
		f.wrong = append(f.wrong, m.trouble()...)
	}
	if fault.inRedis == nil || f.redis == nil {
		return nil
	}
	without, err := f.redis.round(ctx, fault.inRedis)
	r.sum.inRedis = append(r.sum.inRedis, without)
	return err
}

// takeOver brings the fault about under load.
func (r *round) takeOver(ctx context.Context, fault *fault) error {
	w := startWatch(ctx, watchThrottle, watchAllowed, r.old.server.TCP, r.to.server.TCP)
	defer w.end()
	r.watch = w
	run := r.load.Begin(ctx, r.old.server.TCP)
	err := sleepBetween(ctx, leastBefore, mostBefore, r.random)
	if err == nil {
		err = fault.happen(ctx, r)
	}
	if err == nil && !fault.unwatched {
		without, ok := w.without(ctx, r.at, r.old.server.TCP, r.to.server.TCP)
		if !ok {
			err = fmt.Errorf("%s allows nothing", r.to.name)
		}
		r.sum.without = append(r.sum.without, without)
	}
	r.wrong = append(r.wrong, run.End()...)
	return err
}

// check compares a server's states with those allowed.
func (r *round) check(ctx context.Context, m *member, need charges.Need, sum *failoverSum) error {
	found, err := r.load.Check(ctx, m.server.TCP, need)
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	r.wrong = append(r.wrong, found.Wrong[:min(len(found.Wrong), mostReported)]...)
	sum.found.Add(found)
	return nil
}

// comeBack has the old leader follow the new one, if it does not by itself.
func (r *round) comeBack(ctx context.Context) error {
	if r.old.ask == nil {
		if err := r.old.start(ctx); err != nil {
			return err
		}
	}
	if err := r.old.follow(ctx, r.to); err != nil {
		return err
	}
	return r.old.inStep(ctx)
}

// goOn has the old leader come back, with calls on the new one meanwhile in every second round, and compares
// both servers' states before and after calls.
func (r *round) goOn(ctx context.Context) error {
	if r.sum.rounds%2 == 1 {
		if err := errors.Join(r.comeBack(ctx), r.compare(ctx)); err != nil {
			return err
		}
	}
	run := r.load.Begin(ctx, r.to.server.TCP)
	err := sleep(ctx, afterFailover)
	if r.sum.rounds%2 == 0 {
		err = errors.Join(err, r.comeBack(ctx), sleep(ctx, afterFailover))
	}
	r.wrong = append(r.wrong, run.Pause()...)
	if err != nil {
		return err
	}
	if err := r.check(ctx, r.to, charges.Answered, &failoverSum{}); err != nil {
		return err
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	fields, err := r.to.info(ctx)
	if err != nil {
		return err
	}
	r.sum.partial += number(fields["cell_partial_syncs"]) - number(r.before[r.to]["cell_partial_syncs"])
	r.sum.full += number(fields["cell_full_syncs"]) - number(r.before[r.to]["cell_full_syncs"])
	r.leader, r.replica = r.to, r.old
	return nil
}

// compare compares the states of both servers, without calls under way.
func (r *round) compare(ctx context.Context) error {
	if err := caughtUp(ctx, r.to, 1); err != nil {
		return err
	}
	lines, err := r.load.Differ(ctx, r.to.server.TCP, r.old.server.TCP)
	for _, line := range lines {
		r.wrong = append(r.wrong, "leader and replica differ: "+line)
	}
	return err
}

func number(text string) (n int) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

func (f *failover) report(faults []fault) {
	for _, fault := range faults {
		s := f.sums[fault.name]
		if s == nil {
			continue
		}
		slices.Sort(s.without)
		slices.Sort(s.inRedis)
		slices.Sort(s.found.Waits)
		_, _ = fmt.Fprintf(f.out, "%s: %d rounds; %d keys compared, %d wrong; %d calls had to be kept; of %d later ones %d are forgiven, %d had no answer",
			fault.name, s.rounds, s.found.Items, len(s.found.Wrong), s.found.Confirmed, s.found.Answered, s.found.Forgiven, s.found.Uncertain)
		if len(s.without) > 0 {
			_, _ = fmt.Fprintf(f.out, "; without a leader p50 %s, longest %s", short(at(s.without, 0.5)), short(at(s.without, 1)))
		}
		if len(s.inRedis) > 0 {
			_, _ = fmt.Fprintf(f.out, " (two redis-servers: %s, %s)", short(at(s.inRedis, 0.5)), short(at(s.inRedis, 1)))
		}
		_, _ = fmt.Fprintf(f.out, "; %d WAITs p50 %s, p99 %s; then on the old leader %d calls allowed, %d refused; %d partial syncs, %d full ones",
			len(s.found.Waits), short(at(s.found.Waits, 0.5)), short(at(s.found.Waits, 0.99)), s.strayed, s.refused, s.partial, s.full)
		if s.late > 0 {
			_, _ = fmt.Fprintf(f.out, "; %d took too long and were as a crash", s.late)
		}
		_, _ = fmt.Fprintln(f.out)
	}
}

func short(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
