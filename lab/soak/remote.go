package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellserver/e2e/remotetest"
	"cellserver/internal/test/redistest"
	"cellserver/lab/soak/internal/target"
)

// The load of several cellservers in front of a cluster.
const (
	remoteServers = 4
	remoteClients = 200
	remoteKeys    = 1000
	// hotShare and busyShare are percentages of calls for the hot and the busy key.
	hotShare  = 30
	busyShare = 30
	// remoteTimeout is long, to measure no policy for a busy machine.
	remoteTimeout = 10 * time.Second
)

// remoteLimits are those of the hot key, the busy key and the others. The busy key is called about as often
// as allowed, the others much more.
func remoteLimits() []remotetest.Limit {
	return []remotetest.Limit{
		{MaxBurst: 499, Count: 1000, PeriodSeconds: 1}, {MaxBurst: 9999, Count: 5000, PeriodSeconds: 1}, {MaxBurst: 4, Count: 1, PeriodSeconds: 2},
	}
}

type remoteOptions struct {
	time   time.Duration
	kills  int
	binary string
}

func runRemote(ctx context.Context, args []string, stdout io.Writer) error {
	var o remoteOptions
	fs := newFlags("remote", "Calls four servers in front of a Redis cluster, and kills its masters; fails if too much or too little is allowed.", stdout)
	fs.DurationVar(&o.time, "time", 30*time.Second, "how long to call")
	fs.IntVar(&o.kills, "kills", 5, "how often to kill a master under load")
	fs.StringVar(&o.binary, "binary", "", "`file` of a server, instead of one built without the race detector")
	if err := parse(fs, args); err != nil {
		return err
	}
	dir, err := workIn(ctx, &o.binary, false)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	f := &fleet{binary: o.binary, dir: dir, out: stdout}
	if f.cluster, err = redistest.LaunchCluster(ctx, dir, "--cluster-node-timeout", "1000"); err != nil {
		return err
	}
	defer f.cluster.Close()
	for _, part := range []func(context.Context) error{
		func(ctx context.Context) error { return f.storm(ctx, o.time) },
		func(ctx context.Context) error { return f.killMasters(ctx, o.kills, 0) },
		func(ctx context.Context) error { return f.killMasters(ctx, o.kills, 1) },
	} {
		err = errors.Join(err, part(ctx))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return err
}

// fleet is cellservers in front of a cluster.
type fleet struct {
	binary, dir string
	out         io.Writer
	cluster     *redistest.ClusterNodes
	servers     []*target.Server // running
	started     int              // so far
}

// start starts the servers. The function that it returns ends them, and says what was amiss with one.
func (f *fleet) start(ctx context.Context, args ...string) (addrs []string, stop func() error, err error) {
	stop = func() error {
		var found error
		for _, s := range f.servers {
			if _, err := s.Stop(shutdownMargin); err != nil {
				found = errors.Join(found, err)
			}
			for _, line := range s.Trouble() {
				found = errors.Join(found, errors.New(line))
			}
		}
		f.servers = nil
		return found
	}
	for range remoteServers {
		f.started++
		dir := filepath.Join(f.dir, "cellserver"+strconv.Itoa(f.started))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, stop, err
		}
		s, err := target.Start(ctx, target.Spec{Binary: f.binary, Dir: dir, Args: append([]string{"--store", f.cluster.URL()}, args...)})
		if err != nil {
			return nil, stop, err
		}
		f.servers = append(f.servers, s)
		addrs = append(addrs, s.TCP)
	}
	return addrs, stop, nil
}

// asked reports the servers' counters of the store.
func (f *fleet) asked(ctx context.Context) (string, error) {
	sums := map[string]int64{}
	for _, s := range f.servers {
		metrics, err := s.Counters(ctx)
		if err != nil {
			return "", err
		}
		for name, value := range metrics {
			sums[name] += value
		}
	}
	of := func(name string) int64 { return sums["cellserver_store_"+name+"_total"] }
	return fmt.Sprintf("%d joined, %d prefiltered, %d scripts", of("joined"), of("prefiltered"), of("scripts")), nil
}

// storm calls from all clients for a while and judges each key.
func (f *fleet) storm(ctx context.Context, length time.Duration) (err error) {
	addrs, stop, err := f.start(ctx, "--store-timeout", remoteTimeout.String())
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return err
	}
	load := &remotetest.Load{
		Servers: addrs, Clients: remoteClients, Keys: []string{"hot", "busy"}, Limits: remoteLimits(),
		Pick: func(r *rand.Rand) int {
			switch of := r.IntN(100); {
			case of < hotShare:
				return 0
			case of < hotShare+busyShare:
				return 1
			}
			return 2 + r.IntN(remoteKeys)
		},
	}
	var cold []int
	for i := range remoteKeys {
		load.Keys = append(load.Keys, fmt.Sprintf("key-%d", i))
		cold = append(cold, 2+i)
	}
	record, err := load.For(ctx, length)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	asked, err := f.asked(ctx)
	if err != nil {
		return err
	}
	hot, busy, others := load.Judge(record, 0), load.Judge(record, 1), load.Judge(record, cold...)
	calls := record.Total(remotetest.Allowed) + record.Total(remotetest.Limited)
	_, _ = fmt.Fprintf(f.out, "%d servers: %d calls in %s, the longest %s; %s\n  the hot key: %s\n  the busy key: %s\n  %d others: %s\n",
		remoteServers, calls, record.Took.Round(time.Millisecond), record.Longest().Round(time.Millisecond), asked, hot, busy, remoteKeys, others)
	wrong := slices.Concat(hot.Wrong(), busy.Wrong(), others.Wrong())
	if len(record.Errors) > 0 {
		wrong = append(wrong, "errors: "+record.ErrorsText())
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}
