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
	"strings"
	"sync"
	"time"

	"cellserver/lab/soak/internal/attack"
	"cellserver/lab/soak/internal/honest"
	"cellserver/lab/soak/internal/target"
)

// Permitted growth from start to end: kept buffers, a grown table.
const (
	moreHeapBytes   = 64 << 20
	moreGoroutines  = 20
	moreDescriptors = 10
)

// Bounds of the server. Its time to end allows for the race detector.
const (
	walkedKeys      = 20_000
	shutdownTimeout = time.Minute
	shutdownMargin  = 20 * time.Second
	settleWithin    = 2 * time.Minute
)

type soakOptions struct {
	time   time.Duration
	binary string
	only   []string
}

func runSoak(ctx context.Context, args []string, stdout io.Writer) error {
	var o soakOptions
	fs := newFlags("run", "Attacks a server with event loops, and then one with goroutines, in all ways at once.", stdout)
	fs.DurationVar(&o.time, "time", 10*time.Minute, "how long to attack, in all")
	fs.StringVar(&o.binary, "binary", "", "`file` of a server, instead of one built with the race detector")
	fs.StringArrayVar(&o.only, "only", nil, "`name` of an attack to carry out; all without it, several if repeated")
	if err := parse(fs, args); err != nil {
		return err
	}
	attacks, err := chosen(o.only)
	if err != nil {
		return err
	}
	dir, err := workIn(ctx, &o.binary, true)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, driver := range []struct{ name, ioThreads string }{{"event loops", "1"}, {"goroutines", "0"}} {
		spec := target.Spec{Binary: o.binary, Dir: filepath.Join(dir, driver.ioThreads)}
		spec.Args = []string{"--io-threads", driver.ioThreads, "--data-dir", filepath.Join(spec.Dir, "data")}
		if err := os.Mkdir(spec.Dir, 0o700); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(stdout, "A server with %s:\n", driver.name)
		s := soak{spec: spec, attacks: attacks, time: o.time / 2, out: stdout}
		if found := s.run(ctx); found != nil {
			err = errors.Join(err, fmt.Errorf("the server with %s:\n%w", driver.name, found))
		}
	}
	return err
}

// chosen returns the attacks with these names, or all.
func chosen(names []string) ([]attack.Attack, error) {
	if len(names) == 0 {
		return attack.All(), nil
	}
	var attacks []attack.Attack
	for _, name := range names {
		a, err := attack.Find(name)
		if err != nil {
			return nil, err
		}
		attacks = append(attacks, a)
	}
	return attacks, nil
}

// bounds are the options that bound clients together.
func bounds() []string {
	return []string{"--maxmemory", "300mb", "--maxmemory-policy", "volatile-ttl", "--maxmemory-clients", "75mb", "--input-timeout", "2s"}
}

// soak is the attack on one server.
type soak struct {
	spec    target.Spec
	attacks []attack.Attack
	time    time.Duration
	out     io.Writer
}

// run returns an error with a line for each fault.
func (s *soak) run(ctx context.Context) error {
	s.spec.Args = append(append(s.spec.Args, bounds()...), "--shutdown-timeout", shutdownTimeout.String())
	server, err := target.Start(ctx, s.spec)
	if err != nil {
		return err
	}
	defer server.Kill()
	if err := attack.Prepare(ctx, server, walkedKeys); err != nil {
		return err
	}
	before, err := server.Figures(ctx)
	if err != nil {
		return err
	}
	found := s.attackBesideClients(ctx, server)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	found = append(found, s.settle(ctx, server, before)...)
	found = append(found, s.endUnderAttack(ctx, server)...)
	if len(found) == 0 {
		return nil
	}
	return errors.New(strings.Join(found, "\n"))
}

// attackBesideClients runs all attacks beside honest clients, and returns the clients' findings.
func (s *soak) attackBesideClients(ctx context.Context, server *target.Server) []string {
	ledger := honest.NewLedger()
	var clients honest.Clients
	for i, network := range append(target.Networks(), target.Networks()...) {
		clients = append(clients, honest.NewClient(server, network, ledger, uint64(i)))
	}
	attacking, endAttacks := context.WithTimeout(ctx, s.time)
	calling, endCalls := context.WithCancel(ctx)
	var calls sync.WaitGroup
	calls.Go(func() { clients.Run(calling) })
	stats := s.attack(attacking, server)
	endAttacks()
	endCalls()
	calls.Wait()
	s.report(stats, clients, ledger)
	return findings(stats, clients, ledger)
}

// attack returns when ctx is done and all attackers have ended.
func (s *soak) attack(ctx context.Context, server *target.Server) map[string]*attack.Stats {
	stats := map[string]*attack.Stats{}
	var attackers sync.WaitGroup
	for i, a := range s.attacks {
		stats[a.Name] = &attack.Stats{}
		attacker := attack.Attacker{
			Server: server, Networks: target.Networks(), Random: rand.New(rand.NewPCG(uint64(i), 1)), //nolint:gosec // attacks need no secrets
			Size: 1, Hold: 3 * time.Second, Stats: stats[a.Name],
		}
		attackers.Go(func() { attacker.Run(ctx, a, a.Pause) })
	}
	attackers.Wait()
	return stats
}

func (s *soak) report(stats map[string]*attack.Stats, clients honest.Clients, ledger *honest.Ledger) {
	_, _ = fmt.Fprintf(s.out, "%-36s %8s  %s\n", "attack", "rounds", "last reply")
	for _, a := range s.attacks {
		_, _ = fmt.Fprintf(s.out, "%-36s %8d  %.90q\n", a.Name, stats[a.Name].Rounds.Load(), stats[a.Name].Last())
	}
	var reconnected, refused int
	for _, c := range clients {
		reconnected, refused = reconnected+c.Reconnected, refused+c.Refused
		if c.Refused > 0 {
			_, _ = fmt.Fprintf(s.out, "refused to a client: %s\n", c.LastRefusal)
		}
	}
	waits := clients.Waits()
	_, _ = fmt.Fprintf(s.out, "honest calls: %d, p50 %s, p99 %s, longest %s; reconnected %d times, %d EXECs and EVALs refused, %d units leaked and allowed\n",
		len(waits), at(waits, 0.5), at(waits, 0.99), at(waits, 1), reconnected, refused, ledger.Allowed())
}

// findings returns the faults that clients have seen.
func findings(stats map[string]*attack.Stats, clients honest.Clients, ledger *honest.Ledger) []string {
	found := ledger.Violations()
	for _, c := range clients {
		found = append(found, c.Unacceptable...)
	}
	if longest := at(clients.Waits(), 1); longest > honest.LongestWait {
		found = append(found, fmt.Sprintf("an honest client waited %s", longest))
	}
	for name, st := range stats {
		if st.Rounds.Load() == 0 {
			found = append(found, name+": not a round was finished")
		}
	}
	slices.Sort(found)
	return found
}

// settle waits until the server's resources are about those before.
func (s *soak) settle(ctx context.Context, server *target.Server, before target.Figures) []string {
	began := time.Now()
	var now target.Figures
	var found []string
	for len(found) > 0 || now.HeapBytes == 0 {
		var err error
		if now, err = server.Figures(ctx); err != nil {
			return []string{"the server's figures: " + err.Error()}
		}
		found = differences(before, now)
		if time.Since(began) > settleWithin || ctx.Err() != nil {
			break
		}
		if len(found) > 0 {
			time.Sleep(time.Second)
		}
	}
	_, _ = fmt.Fprintf(s.out, "after %s: heap %d MB (before %d), resident %d MB (%d), goroutines %d (%d), descriptors %d (%d)\n",
		time.Since(began).Round(time.Second), now.HeapBytes>>20, before.HeapBytes>>20, now.RSSBytes>>20, before.RSSBytes>>20,
		now.Goroutines, before.Goroutines, now.Descriptors, before.Descriptors)
	if now.Panics > 0 {
		found = append(found, fmt.Sprintf("%d panics", now.Panics))
	}
	return found
}

// differences compares the collector's figures, as the race detector never returns its shadow memory.
func differences(before, now target.Figures) []string {
	var found []string
	for _, figure := range []struct {
		name                string
		before, now, margin int64
	}{
		{"bytes of heap", before.HeapBytes, now.HeapBytes, moreHeapBytes},
		{"goroutines", before.Goroutines, now.Goroutines, moreGoroutines},
		{"descriptors", before.Descriptors, now.Descriptors, moreDescriptors},
	} {
		if figure.now > figure.before+figure.margin {
			found = append(found, fmt.Sprintf("%s: %d, before the attacks %d", figure.name, figure.now, figure.before))
		}
	}
	return found
}

// endUnderAttack ends the server by SIGTERM under attack and checks its log.
func (s *soak) endUnderAttack(ctx context.Context, server *target.Server) []string {
	attacking, endAttacks := context.WithCancel(ctx)
	var attacks sync.WaitGroup
	attacks.Go(func() { s.attack(attacking, server) })
	time.Sleep(2 * time.Second)
	took, err := server.Stop(shutdownTimeout + shutdownMargin)
	endAttacks()
	attacks.Wait()
	_, _ = fmt.Fprintf(s.out, "SIGTERM under attack: ended in %s; the log had %d MB\n\n", took.Round(time.Millisecond), server.LogBytes.Load()>>20)
	found := server.Trouble()
	if err != nil {
		found = append(found, fmt.Sprintf("SIGTERM: %v", err))
	}
	return found
}

// at returns a quantile of sorted durations.
func at(sorted []time.Duration, quantile float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(quantile*float64(len(sorted))), len(sorted)-1)].Round(10 * time.Microsecond)
}
