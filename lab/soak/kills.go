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
	"syscall"
	"time"

	"cellserver/internal/test/killtest"
	"cellserver/lab/soak/internal/target"
)

// Bounds of the load between two kills.
const (
	killClients = 8
	killKeys    = 5000 // per client
	mostCalling = 3 * time.Second
	// mostReported bounds the listed wrong keys.
	mostReported = 20
)

type killOptions struct {
	kills  int
	pause  time.Duration
	binary string
	seed   uint64
}

func runKills(ctx context.Context, args []string, stdout io.Writer) error {
	var o killOptions
	fs := newFlags("kills", "Kills a server with a data directory at random moments under load, and looks for what it has lost.", stdout)
	fs.IntVar(&o.kills, "kills", 50, "how often to kill it, with each fsync interval")
	fs.DurationVar(&o.pause, "pause", time.Minute, "how long to stop it by SIGSTOP once")
	fs.StringVar(&o.binary, "binary", "", "`file` of a server, instead of one built without the race detector")
	addSeed(fs, &o.seed)
	if err := parse(fs, args); err != nil {
		return err
	}
	dir, err := workIn(ctx, &o.binary, false)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, interval := range []string{"1s", "0"} {
		k := &kills{
			options: o, dir: filepath.Join(dir, interval), interval: interval,
			load:   killtest.New(killtest.Config{Clients: killClients, Keys: killKeys, EachReply: interval == "0", Seed: o.seed}),
			random: rand.New(rand.NewPCG(o.seed, killClients)),
		}
		if found := k.run(ctx); found != nil {
			err = errors.Join(err, fmt.Errorf("with an interval of %s, seed %d:\n%w", interval, o.seed, found))
		}
		k.report(stdout)
	}
	return err
}

// kills is a data directory with its repeatedly killed server.
type kills struct {
	options  killOptions
	dir      string
	interval string
	load     *killtest.Load
	random   *rand.Rand // the moments of kills

	starts []time.Duration
	kills  int
	sum    killtest.Found
	wrong  []string
}

// run returns an error with a line for each fault.
func (k *kills) run(ctx context.Context) error {
	paused := k.random.IntN(max(k.options.kills, 1))
	for k.kills = range k.options.kills {
		pause := time.Duration(0)
		if k.kills == paused {
			pause = k.options.pause
		}
		if err := k.once(ctx, pause); err != nil {
			return err
		}
	}
	k.kills = k.options.kills
	server, err := k.start(ctx)
	if err != nil {
		return err
	}
	if _, err := server.Stop(shutdownTimeout + shutdownMargin); err != nil {
		k.wrong = append(k.wrong, fmt.Sprintf("SIGTERM: %v", err))
	}
	if len(k.wrong) == 0 {
		return nil
	}
	return errors.New(strings.Join(k.wrong, "\n"))
}

// once starts the server, checks its keys, and kills it under load, after a pause by SIGSTOP.
func (k *kills) once(ctx context.Context, pause time.Duration) error {
	server, err := k.start(ctx)
	if err != nil {
		return err
	}
	run := k.load.Begin(ctx, server.TCP)
	err = sleepBetween(ctx, 0, mostCalling, k.random)
	if pause > 0 {
		err = errors.Join(err, server.Signal(syscall.SIGSTOP), sleep(ctx, pause), server.Signal(syscall.SIGCONT), sleep(ctx, mostCalling))
	}
	k.wrong = append(k.wrong, run.End(server.Kill)...)
	k.wrong = append(k.wrong, server.Trouble()...)
	return errors.Join(err, ctx.Err())
}

// start starts the server and compares its keys with their allowed states.
func (k *kills) start(ctx context.Context) (*target.Server, error) {
	files := filepath.Join(k.dir, strconv.Itoa(len(k.starts)))
	if err := os.MkdirAll(files, 0o700); err != nil {
		return nil, err
	}
	args := []string{"--data-dir", filepath.Join(k.dir, "data"), "--fsync-interval", k.interval}
	if k.interval == "0" {
		args = append(args, "--fsync-timeout", "1h") // a busy disk is not a loss
	}
	began := time.Now()
	server, err := target.Start(ctx, target.Spec{Binary: k.options.binary, Dir: files, Args: args})
	if err != nil {
		return nil, err
	}
	k.starts = append(k.starts, time.Since(began))
	found, err := k.load.Check(ctx, server.TCP)
	if err != nil {
		server.Kill()
		return nil, err
	}
	k.sum.Add(found)
	k.wrong = append(k.wrong, found.Wrong[:min(len(found.Wrong), mostReported)]...)
	return server, nil
}

func (k *kills) report(out io.Writer) {
	slices.Sort(k.starts)
	_, _ = fmt.Fprintf(out, "interval %s: %d kills; %d keys looked at; %d calls to be kept, and %d later ones of which %d keys had some; %d keys wrong; started in p50 %s, longest %s\n",
		k.interval, k.kills, k.sum.Keys, k.sum.Confirmed, k.sum.Unsure, k.sum.Survived, len(k.sum.Wrong), at(k.starts, 0.5), at(k.starts, 1))
}

// sleepBetween sleeps for a random time.
func sleepBetween(ctx context.Context, least, most time.Duration, random *rand.Rand) error {
	return sleep(ctx, least+time.Duration(random.Int64N(int64(most-least))))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
