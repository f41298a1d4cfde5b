package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"cellserver/lab/soak/internal/attack"
	"cellserver/lab/soak/internal/probe"
	"cellserver/lab/soak/internal/target"
)

// trial is an attack whose effect on others is measured.
type trial struct {
	number      string
	attack      string
	keys        int  // in the store
	connections int  // of an attacker, at once
	bytes       int  // per round and connection, without a payload
	logUnread   bool // the log's pipe is full
	scripts     bool // other clients' scripts are measured, too
	strangers   bool // attackers have no password; others sign in with each call
}

func trials() []trial {
	const million = 1_000_000
	return []trial{
		{number: "idle", attack: attack.Idle},
		{number: "1", attack: "EXEC of 2,500 DBSIZE", keys: million},
		{number: "1", attack: "EXEC of 18,000 CL.THROTTLE"},
		{number: "1", attack: "EXEC of KEYS", keys: million},
		{number: "2", attack: "SCAN with a long pattern"},
		{number: "2", attack: "EXEC of KEYS with a long pattern"},
		{number: "3", attack: "EVAL of 10,000 globals"},
		{number: "3", attack: "SCRIPT LOAD of 10,000 globals"},
		{number: "3", attack: "EXEC of EVAL of 10,000 globals"},
		{number: "12a", attack: "endless scripts of 50 connections", connections: 50, bytes: 60, scripts: true},
		{number: "12b", attack: "script whose key others change", connections: 2, bytes: 250},
		{number: "16", attack: "gsub of 4 MB"},
		{number: "16", attack: "EVAL with 100,000 keys"},
		{number: "18", attack: "EVAL with 400,000 arguments"},
		{number: "18", attack: "DEL of 100,000 keys"},
		{number: "45", attack: "400 GET of 64 KB"},
		{number: "45", attack: "MGET of 400 times 64 KB"},
		{number: "45", attack: "EXEC of 400 GET of 64 KB"},
		{number: "45", attack: "EXEC of more than may be replied"},
		{number: "13", attack: "redis.log flood"},
		{number: "5", attack: "wrong passwords", logUnread: true},
		{number: "grpc", attack: "gRPC that unpacks to 250 KB", strangers: true},
		{number: "grpc", attack: "gRPC of 125,000 entries"},
		{number: "20", attack: "stalled bodies"},
		{number: "20", attack: "stalled messages"},
		{number: "20", attack: "bodies that do not end"},
		{number: "20", attack: "half headers"},
		{number: "20", attack: "half-sent commands"},
		{number: "21", attack: "scrapes", connections: 24},
		{number: "21", attack: "pages", connections: 24},
		{number: "21", attack: "rapid reset", connections: 3},
		{number: "21", attack: "PINGs of HTTP/2", connections: 3},
		{number: "21", attack: "SETTINGS of HTTP/2", connections: 3},
		{number: "21", attack: "CONTINUATION without end", connections: 3},
		{number: "21", attack: "handshakes of TLS", connections: 24},
	}
}

// Goals for other clients' waits, doubled for four attackers, and at least twice an ECHO's.
const (
	goalP99     = 5 * time.Millisecond
	goalLongest = 100 * time.Millisecond
)

type measureOptions struct {
	binary, before string
	memory         bool
	only           []string
	seconds        float64
	patience       time.Duration
	keys, maxMB    int
}

func runMeasure(ctx context.Context, args []string, stdout io.Writer) error {
	var o measureOptions
	fs := newFlags("measure", "Attacks in one way at a time, and prints how long other clients wait, in Markdown.", stdout)
	fs.StringVar(&o.binary, "binary", "", "`file` of the server (default built from the directory above)")
	fs.StringVar(&o.before, "before", "", "`file` of another server, which is measured first")
	fs.StringArrayVar(&o.only, "only", nil, "`row` or attack to measure; all without it, several if repeated")
	fs.Float64Var(&o.seconds, "seconds", 5, "how long each attack goes on")
	fs.DurationVar(&o.patience, "patience", 45*time.Second, "how long to wait for replies from the start of an attack")
	fs.BoolVar(&o.memory, "memory", false, "measure resident memory through distinct keys and floods instead")
	fs.IntVar(&o.keys, "keys", 20_000_000, "number of distinct keys for --memory")
	fs.IntVar(&o.maxMB, "maxmemory-mb", 150, "the server's --maxmemory for --memory, in MB")
	if err := parse(fs, args); err != nil {
		return err
	}
	dir, err := workIn(ctx, &o.binary, false)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// Threads of attackers leave the probe's scheduling to the kernel, which is fairer than Go's on few
	// processors.
	runtime.GOMAXPROCS(8)
	measure := o.measureWaits
	if o.memory {
		measure = o.measureMemory
	}
	for _, binary := range []string{o.before, o.binary} {
		if binary == "" {
			continue
		}
		if _, err := fmt.Fprintf(stdout, "\n%s, %d processors\n\n", binary, runtime.NumCPU()); err != nil {
			return err
		}
		if err := measure(ctx, binary, stdout); err != nil {
			return err
		}
	}
	return nil
}

func (o *measureOptions) measureWaits(ctx context.Context, binary string, out io.Writer) error {
	_, _ = fmt.Fprintln(out, "| row | attack | attackers | p50 | p99 | longest | ECHOs p99 | ECHOs longest | goals met | largest resident | SIGTERM | log | rounds, last reply |")
	_, _ = fmt.Fprintln(out, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | --- |")
	for _, t := range trials() {
		if len(o.only) > 0 && !slices.Contains(o.only, t.number) && !slices.Contains(o.only, t.attack) {
			continue
		}
		a, err := attack.Find(t.attack)
		if err != nil {
			return err
		}
		echo := attack.Echo(max(t.connections, 1), t.payloadBytes(a))
		for _, attackers := range []int{1, 4} {
			base, err := o.try(ctx, binary, trial{connections: t.connections}, echo, attackers)
			if err != nil {
				return fmt.Errorf("ECHO for %s: %w", t.attack, err)
			}
			r, err := o.try(ctx, binary, t, a, attackers)
			if err != nil {
				return fmt.Errorf("%s: %w", t.attack, err)
			}
			r.print(out, t, attackers, base)
		}
	}
	return nil
}

func (t trial) payloadBytes(a attack.Attack) int {
	if a.Payload == nil {
		return t.bytes
	}
	return len(a.Payload(newRandom(0)).Bytes)
}

func newRandom(seed int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 2)) } //nolint:gosec // attacks need no secrets

// effect is the result of an attack.
type effect struct {
	calls, scripts probe.Result
	sigterm        string
	logPerSecond   float64 // bytes
	residentBytes  int64   // the most
	rounds         int64
	reply          string // the last
}

// try starts a server, attacks it, measures other clients, and ends the server under attack.
func (o *measureOptions) try(ctx context.Context, binary string, t trial, a attack.Attack, attackers int) (*effect, error) {
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	spec := target.Spec{Binary: binary, Dir: dir, LogUnread: t.logUnread}
	if t.strangers {
		spec.Password = "another-" + target.AppPassword
	}
	server, err := target.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	if err := attack.Prepare(ctx, server, t.keys); err != nil {
		return nil, err
	}
	r, stats := &effect{}, &attack.Stats{}
	attacking, endAttack := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer endAttack()
	window := time.Duration(o.seconds * float64(time.Second))
	for i := range attackers {
		attacker := attack.Attacker{
			Server: server, Networks: []string{"tcp"}, Random: newRandom(i), Size: 1, Hold: window + o.patience, Stats: stats,
		}
		running.Go(func() { attacker.Run(attacking, a, 0) })
	}
	logged := server.LogBytes.Load()
	if err := o.probe(server, t, window, r); err != nil {
		return nil, err
	}
	r.logPerSecond = float64(server.LogBytes.Load()-logged) / window.Seconds()
	r.rounds, r.reply = stats.Rounds.Load(), stats.Last()
	if r.residentBytes, err = server.LargestRSS(); err != nil {
		return nil, fmt.Errorf("the server has ended: %w", err)
	}
	took, err := server.Stop(12 * time.Second)
	if r.sigterm = took.Round(10 * time.Millisecond).String(); err != nil {
		r.sigterm = "> " + r.sigterm
	}
	return r, ctx.Err()
}

// probe measures other clients' calls, and scripts where they matter.
func (o *measureOptions) probe(server *target.Server, t trial, window time.Duration, r *effect) error {
	var call, script attack.Batch
	lines := 6
	if t.strangers {
		call.Add("AUTH", target.AppUser, target.AppPassword)
		lines++
	}
	call.Add("CL.THROTTLE", "other", "15", "30", "60", "1")
	script.Add("EVAL", "local n = 0 for i = 1, 10 do n = n + i end return n", "0")
	var errCall, errScript error
	var probes sync.WaitGroup
	probes.Go(func() {
		r.calls, errCall = probe.Call{Request: call.Bytes, Reply: lines, Every: time.Millisecond, For: window, Patience: o.patience}.Run(server.TCP)
	})
	if t.scripts {
		probes.Go(func() {
			r.scripts, errScript = probe.Call{
				Request: script.Bytes, Reply: 1, Every: 10 * time.Millisecond, For: window, Patience: o.patience, OneAtATime: true,
			}.Run(server.TCP)
		})
	}
	probes.Wait()
	if errCall != nil {
		return fmt.Errorf("others' calls: %w", errCall)
	}
	return errScript
}

func (r *effect) print(out io.Writer, t trial, attackers int, base *effect) {
	line := func(name string, got probe.Result, met string) {
		stuck := ""
		if got.Stuck {
			stuck = "> "
		}
		_, _ = fmt.Fprintf(out, "| %s | %s | %d | %s | %s | %s%s | %s | %s | %s | %d MB | %s | %.1f MB/s | %d, %.60q |\n",
			t.number, name, attackers, at(got.Waits, 0.5), at(got.Waits, 0.99), stuck, at(got.Waits, 1),
			at(base.calls.Waits, 0.99), at(base.calls.Waits, 1), met, r.residentBytes>>20, r.sigterm, r.logPerSecond/1e6,
			r.rounds, strings.ReplaceAll(r.reply, "|", "/"))
	}
	line(t.attack, r.calls, met(r.calls, base.calls, attackers))
	if t.scripts {
		line("- others' scripts", r.scripts, "-")
	}
}

// met compares with the goals and with twice an ECHO's waits.
func met(got, base probe.Result, attackers int) string {
	times := time.Duration(1)
	if attackers > 1 {
		times = 2
	}
	if at(got.Waits, 0.99) <= times*max(goalP99, 2*at(base.Waits, 0.99)) && at(got.Waits, 1) <= times*max(goalLongest, 2*at(base.Waits, 1)) {
		return "yes"
	}
	return "no"
}
