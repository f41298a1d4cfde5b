package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"cellserver/internal/test/patience"
	"cellserver/lab/soak/internal/attack"
	"cellserver/lab/soak/internal/probe"
)

// Bounds of a slow replica and of a full sync.
const (
	slowBacklog   = 1 << 20 // --repl-backlog
	slowPerSecond = 50 << 10
	slowKeys      = 100_000
	loadClients   = 4
	loadTogether  = 32
	// forReplicas is what a leader may hold for a replica beside --repl-backlog: rounds, frames, and chunks
	// under way. A bound on memory is tried at twice what is promised.
	forReplicas = 32 << 20
	// mostOfKept is the most memory of a full sync by the leader's before it.
	mostOfKept = 2
)

type replicaOptions struct {
	keys, repeats int
	seconds       float64
	binary        string
}

func runReplica(ctx context.Context, args []string, stdout io.Writer) error {
	var o replicaOptions
	fs := newFlags("replica", "Measures what a leader's other clients notice of a slow replica, and of a full sync; fails if either takes too much memory.", stdout)
	fs.IntVar(&o.keys, "keys", 1_000_000, "number of keys of the full sync")
	fs.IntVar(&o.repeats, "repeats", 3, "how often to measure each")
	fs.Float64Var(&o.seconds, "seconds", 5, "how long to measure")
	fs.StringVar(&o.binary, "binary", "", "`file` of a server, instead of one built without the race detector")
	if err := parse(fs, args); err != nil {
		return err
	}
	dir, err := workIn(ctx, &o.binary, false)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// As in measure: threads leave the probe's scheduling to the kernel.
	runtime.GOMAXPROCS(8)
	if err := o.slowReplica(ctx, dir, stdout); err != nil {
		return err
	}
	return o.fullSync(ctx, dir, stdout)
}

// others are the waits of a leader's other clients, without and with a replica.
type others struct{ without, with []time.Duration }

func (w *others) String() string {
	slices.Sort(w.without)
	slices.Sort(w.with)
	const quantile = 0.999
	a, b := at(w.without, quantile), at(w.with, quantile)
	return fmt.Sprintf("others' calls p50 %s, p99.9 %s (n %d), without it p50 %s, p99.9 %s (n %d): p99.9 by %.2f",
		micro(at(w.with, 0.5)), micro(b), len(w.with), micro(at(w.without, 0.5)), micro(a), len(w.without), float64(b)/float64(max(a, 1)))
}

func micro(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// call calls for a while as another client, once a millisecond.
func call(addr string, during time.Duration) ([]time.Duration, error) {
	var one attack.Batch
	one.Add("CL.THROTTLE", "other", "15", "30", "60", "1")
	r, err := probe.Call{Request: one.Bytes, Reply: 6, Every: time.Millisecond, For: during, Patience: during + answerWithin}.Run(addr)
	return r.Waits, err
}

// pairOf starts a leader and a server that will follow it, without disks.
func pairOf(ctx context.Context, dir, binary, name string, args ...string) (leader, replica *member, err error) {
	if leader, err = newMember(name+"-leader", binary, dir, false, args...); err != nil {
		return nil, nil, err
	}
	if err = leader.start(ctx); err == nil {
		replica, err = newMember(name+"-replica", binary, dir, false)
	}
	if err == nil {
		err = replica.start(ctx)
	}
	if err != nil {
		leader.close()
	}
	return leader, replica, err
}

// slowReplica measures with a leader under full load, before and while it has a replica that cannot follow.
func (o *replicaOptions) slowReplica(ctx context.Context, dir string, out io.Writer) error {
	var waits, inStep others
	var grown int64
	evicted, warned, syncs := 0, 0, 0
	for i := range o.repeats {
		leader, replica, err := pairOf(ctx, dir, o.binary, "slow"+strconv.Itoa(i), "--repl-backlog", strconv.Itoa(slowBacklog))
		if err != nil {
			return err
		}
		more, err := o.oneSlow(ctx, leader, replica, &waits, &inStep)
		fields, asked := leader.info(ctx)
		evicted += number(fields["cell_evicted_replicas"])
		syncs += number(fields["cell_full_syncs"])
		warned += leader.logged("a replica is slow") + leader.logged("further behind than --repl-backlog")
		grown = max(grown, more)
		leader.close()
		replica.close()
		if err = errors.Join(err, asked); err != nil {
			return err
		}
	}
	inStep.without = waits.without
	_, _ = fmt.Fprintf(out, "a replica in step, a leader under full load: %s\n", &inStep)
	_, _ = fmt.Fprintf(out, "a replica at %d KB/s, --repl-backlog %d KB, a leader under full load: %s; the leader took at most %d MB more than before; %d evictions, %d warnings, %d full syncs begun\n",
		slowPerSecond>>10, slowBacklog>>10, &waits, grown>>20, evicted, warned, syncs)
	if most := int64(2 * (slowBacklog + forReplicas)); grown > most {
		return fmt.Errorf("a slow replica costs its leader %d MB, at most %d may be", grown>>20, most>>20)
	}
	if evicted == 0 || warned == 0 {
		return errors.New("a slow replica was neither evicted nor warned of")
	}
	return nil
}

// oneSlow returns how much more memory the leader took at its peak.
func (o *replicaOptions) oneSlow(ctx context.Context, leader, replica *member, waits, inStep *others) (grown int64, err error) {
	loading, end := context.WithCancel(ctx)
	var load sync.WaitGroup
	for i := range loadClients {
		load.Go(func() { fullLoad(loading, leader, i) })
	}
	defer load.Wait()
	defer end()
	window := time.Duration(o.seconds * float64(time.Second))
	if err := sleep(ctx, window/2); err != nil {
		return 0, err
	}
	some, err := call(leader.server.TCP, window)
	if err != nil {
		return 0, err
	}
	waits.without = append(waits.without, some...)
	before := leader.peak()
	if err := errors.Join(replica.follow(ctx, leader), replica.inStep(ctx)); err != nil {
		return 0, err
	}
	if some, err = call(leader.server.TCP, window); err != nil {
		return 0, err
	}
	inStep.with = append(inStep.with, some...)
	leader.link.Slow(0, slowPerSecond)
	some, err = call(leader.server.TCP, window)
	waits.with = append(waits.with, some...)
	if err != nil {
		return 0, err
	}
	patience.Until(func() bool { // on a slow machine that takes longer
		fields, asked := leader.info(ctx)
		err = asked
		return err != nil || number(fields["cell_evicted_replicas"]) > 0
	})
	return leader.peak() - before, err
}

// fullLoad calls on many keys by pipelines, until ctx ends.
func fullLoad(ctx context.Context, leader *member, seed int) {
	c, err := leader.server.Dial(ctx, "tcp")
	if err != nil {
		return
	}
	defer c.Close()
	random := newRandom(seed)
	for ctx.Err() == nil {
		var b attack.Batch
		for range loadTogether {
			b.Add("CL.THROTTLE", "load"+strconv.Itoa(random.IntN(slowKeys)), "1000000", "1", "60")
		}
		if _, err := c.Write(b.Bytes); err != nil {
			return
		}
		for range b.Replies {
			if _, err := c.Reply(); err != nil {
				return
			}
		}
	}
}

// fullSync measures a full sync of many keys.
func (o *replicaOptions) fullSync(ctx context.Context, dir string, out io.Writer) error {
	var waits others
	var took []time.Duration
	var leaderBefore, leaderPeak, replicaPeak int64
	for i := range o.repeats {
		leader, replica, err := pairOf(ctx, dir, o.binary, "full"+strconv.Itoa(i), "--maxmemory", "0")
		if err != nil {
			return err
		}
		t, before, err := o.oneSync(ctx, leader, replica, &waits)
		took, leaderBefore = append(took, t), max(leaderBefore, before)
		leaderPeak, replicaPeak = max(leaderPeak, leader.peak()), max(replicaPeak, replica.peak())
		leader.close()
		replica.close()
		if err != nil {
			return err
		}
	}
	slices.Sort(took)
	_, _ = fmt.Fprintf(out, "a full sync of %d keys: p50 %s, longest %s (n %d); peaks of resident memory: the leader %d MB, %d MB before it, the replica %d MB; %s\n",
		o.keys, short(at(took, 0.5)), short(at(took, 1)), len(took), leaderPeak>>20, leaderBefore>>20, replicaPeak>>20, &waits)
	// What is collected later is as much as what is kept, unless --maxmemory bounds it.
	if most := mostOfKept*leaderBefore + 2*forReplicas; max(leaderPeak, replicaPeak) > most {
		return fmt.Errorf("a full sync takes %d MB of memory on the leader and %d MB on the replica, at most %d may be",
			leaderPeak>>20, replicaPeak>>20, most>>20)
	}
	return nil
}

func (o *replicaOptions) oneSync(ctx context.Context, leader, replica *member, waits *others) (took time.Duration, before int64, err error) {
	filled := make(chan error, loadClients)
	for i := range loadClients {
		go func() { filled <- attack.Fill(ctx, leader.server, fmt.Sprintf("k%d:", i), o.keys/loadClients) }()
	}
	for range loadClients {
		err = errors.Join(err, <-filled)
	}
	if err != nil {
		return 0, 0, err
	}
	some, err := call(leader.server.TCP, time.Duration(o.seconds*float64(time.Second)))
	if err != nil {
		return 0, 0, err
	}
	waits.without = append(waits.without, some...)
	before = leader.peak()
	began, done := time.Now(), make(chan error, 1)
	go func() { done <- errors.Join(replica.follow(ctx, leader), replica.inStep(ctx)) }()
	for {
		const window = 100 * time.Millisecond
		if some, err = call(leader.server.TCP, window); err != nil {
			return 0, 0, err
		}
		waits.with = append(waits.with, some...)
		select {
		case err := <-done:
			return time.Since(began), before, err
		default:
		}
	}
}
