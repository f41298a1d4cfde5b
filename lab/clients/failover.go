package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/pflag"

	"cellserver/lab/clients/internal/failover"
)

const failoverUsage = `clients failover has programs follow three Sentinels while the leader of a pair changes.

Usage:
  clients failover [flags]  run in lab/clients; builds cellserver

Flags:
`

// failoverSettings are the command line of clients failover.
type failoverSettings struct {
	kills, planned int
	pairs          []string // kinds of servers
	cellserver     string   // binary; empty to build it
	check          bool     // require all programs' clients
	dir            string   // kept; empty for a temporary one
	sentinel       failover.Settings
}

func parseFailover(args []string, stderr io.Writer) (failoverSettings, error) {
	var s failoverSettings
	flags := pflag.NewFlagSet("clients failover", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { _, _ = fmt.Fprint(stderr, failoverUsage, flags.FlagUsages()) }
	flags.IntVar(&s.kills, "kills", 1, "failovers by kill -9 of the leader")
	flags.IntVar(&s.planned, "planned", 1, "failovers by SENTINEL FAILOVER")
	flags.StringSliceVar(&s.pairs, "pairs", []string{"cellserver", "redis-server"},
		"pairs of servers, each with its own Sentinels and programs")
	flags.StringVar(&s.cellserver, "cellserver", "", "a `binary` to use instead of building cellserver")
	flags.BoolVar(&s.check, "check", os.Getenv("CI") == "true", "fail if a client is missing; set where CI=true")
	flags.StringVar(&s.dir, "dir", "",
		"a new `directory` for configurations and logs, which is kept (default a temporary one)")
	flags.DurationVar(&s.sentinel.DownAfter, "down-after", 2*time.Second, "Sentinel's down-after-milliseconds")
	flags.DurationVar(&s.sentinel.FailoverTimeout, "failover-timeout", 3*time.Second, "Sentinel's failover-timeout")
	flags.IntVar(&s.sentinel.ParallelSyncs, "parallel-syncs", 1, "Sentinel's parallel-syncs")
	if err := flags.Parse(args); err != nil {
		return failoverSettings{}, err
	}
	for _, pair := range s.pairs {
		if pair != "cellserver" && pair != "redis-server" {
			return failoverSettings{}, fmt.Errorf("--pairs: there are cellserver and redis-server, got %q", pair)
		}
	}
	if flags.NArg() > 0 {
		return failoverSettings{}, fmt.Errorf("unexpected argument %s", flags.Arg(0))
	}
	return s, nil
}

// follower is a client whose directory has a program that follows Sentinel.
type follower struct {
	library string
	client  client
	source  string // of the program
}

func followers() []follower {
	var all []follower
	for _, c := range matrix() {
		switch c.dir {
		case "go-redis":
			c.build = [][]string{{"go", "build", "-o", "{out}", "./failover"}}
			all = append(all, follower{"go-redis", c, "go-redis/failover/main.go"})
		case "python-redis":
			c.run[len(c.run)-1] = "failover.py"
			all = append(all, follower{"redis-py", c, "python-redis/failover.py"})
		case "node-ioredis":
			c.run[len(c.run)-1] = "failover.mjs"
			all = append(all, follower{"ioredis", c, "node-ioredis/failover.mjs"})
		case "ruby-redis":
			c.run[len(c.run)-1] = "failover.rb"
			all = append(all, follower{"redis-rb", c, "ruby-redis/failover.rb"})
		}
	}
	return all
}

// runFailover is the whole of clients failover.
func runFailover(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parseFailover(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cellserver-failover-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if s.dir == "" {
		s.dir = filepath.Join(dir, "pairs")
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	programs, err := s.programs(ctx, dir, stderr)
	if err != nil {
		return err
	}
	logging.Disable() // go-redis's, of the failures that are waited for
	results, failures := s.run(ctx, dir, programs, stderr)
	_, err = io.WriteString(stdout, failover.Report(results))
	return errors.Join(failures, err)
}

// programs builds the programs and returns how they are started.
func (s failoverSettings) programs(ctx context.Context, dir string, stderr io.Writer) ([]failover.Program, error) {
	var programs []failover.Program
	var absent []string
	r := runner{dir: dir, log: stderr}
	for _, f := range followers() {
		if packages := missing(ctx, f.client); packages != "" {
			absent = append(absent, fmt.Sprintf("%s is not tested: sudo apt-get install %s", f.library, packages))
			continue
		}
		if err := r.build(ctx, f.client); err != nil {
			return nil, err
		}
		argv := r.words(f.client, f.client.run)
		programs = append(programs, failover.Program{Name: f.library, Dir: f.client.dir, Argv: argv})
	}
	if len(absent) > 0 && s.check {
		return nil, errors.New(strings.Join(absent, "\n"))
	}
	for _, line := range absent {
		_, _ = fmt.Fprintln(stderr, line)
	}
	return programs, nil
}

// run runs the pairs beside each other.
func (s failoverSettings) run(
	ctx context.Context, dir string, programs []failover.Program, stderr io.Writer,
) ([]failover.Result, error) {
	redisServer, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("the Sentinels: %w: sudo apt-get install redis-server", err)
	}
	var mu sync.Mutex // guards stderr
	log := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintf(stderr, format+"\n", args...)
	}
	results, failures := make([]failover.Result, len(s.pairs)), make([]error, len(s.pairs))
	var running sync.WaitGroup
	for i, pair := range s.pairs {
		kind, err := s.kind(ctx, dir, pair, redisServer)
		if err != nil {
			return nil, err
		}
		running.Go(func() {
			results[i], failures[i] = failover.Run(ctx, failover.Config{
				Kind: kind, Sentinel: redisServer, Settings: s.sentinel, Programs: programs, Kills: s.kills, Planned: s.planned,
				Dir: filepath.Join(s.dir, pair), Log: log,
			})
			if pair == "cellserver" { // the control may lose units
				failures[i] = errors.Join(failures[i], results[i].Check())
			}
		})
	}
	running.Wait()
	return results, errors.Join(failures...)
}

func (s failoverSettings) kind(ctx context.Context, dir, pair, redisServer string) (failover.Kind, error) {
	if pair == "redis-server" {
		return failover.Redis(redisServer), nil
	}
	if s.cellserver != "" {
		binary, err := filepath.Abs(s.cellserver)
		return failover.Cellserver(binary), err
	}
	argv, err := buildCellserver(ctx, dir)
	if err != nil {
		return failover.Kind{}, err
	}
	return failover.Cellserver(argv[0]), nil
}
