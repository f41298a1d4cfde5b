// Package failover runs a pair of servers, three Sentinels and programs that follow them, and has the leader
// change again and again. A Run is for one goroutine.
package failover

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cellserver/lab/clients/internal/report"
	"cellserver/lab/clients/internal/target"
)

// Config is what to run.
type Config struct {
	Kind     Kind
	Sentinel string // redis-server's path
	Settings Settings
	Programs []Program
	Kills    int // failovers by kill -9 of the leader
	Planned  int // by SENTINEL FAILOVER
	Dir      string
	Log      func(format string, args ...any)
}

// Failover is one change of the leader.
type Failover struct {
	Planned  bool
	Without  time.Duration // a leader
	Both     time.Duration // accepted changes
	Sections []report.Section
	Accounts []Account
}

// Account compares a key with what its program saw.
type Account struct {
	Library string
	Allowed int // calls, as the program saw
	Unknown int // calls that may have been charged
	Charged int // units of the key
}

// Forgiven returns the units that the program saw and the key does not have.
func (a Account) Forgiven() int { return max(0, a.Allowed-a.Charged) }

// Doubled returns the units that no call explains.
func (a Account) Doubled() int { return max(0, a.Charged-a.Allowed-a.Unknown) }

// Result is what was seen.
type Result struct {
	Kind      string
	Failovers []Failover
	Planned   []Account // over all planned failovers
}

// roundTimeout bounds the steps of a failover, each by itself.
const roundTimeout = 2 * time.Minute

type run struct {
	Config

	leader, replica *server
	probes          map[*server]*probe
	trio            *sentinels
	programs        []*program
	key             string // of the programs, after their name
	result          Result
}

// Run returns what it saw, also with an error.
func Run(ctx context.Context, c Config) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{Config: c, probes: map[*server]*probe{}, result: Result{Kind: c.Kind.Name}}
	defer r.close()
	defer cancel() // the probes before what they probe
	err := r.start(ctx)
	if err == nil {
		err = r.all(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", c.Kind.Name, err, r.logs())
	}
	return r.result, err
}

func (r *run) close() {
	for _, p := range r.programs {
		p.stop()
	}
	if r.trio != nil {
		r.trio.close()
	}
	for _, s := range []*server{r.leader, r.replica} {
		if s != nil {
			s.close()
		}
	}
}

func (r *run) start(ctx context.Context) error {
	ports, err := target.FreePorts(ctx, 5)
	if err != nil {
		return err
	}
	if r.leader, err = newServer(r.Dir, "server0", ports[0]); err != nil {
		return err
	}
	if r.replica, err = newServer(r.Dir, "server1", ports[1]); err != nil {
		return err
	}
	if err := r.startServer(ctx, r.leader); err != nil {
		return err
	}
	if err := r.startServer(ctx, r.replica); err != nil {
		return err
	}
	if err := r.await(ctx, "the replica follows", r.follows); err != nil {
		return err
	}
	if r.trio, err = startSentinels(ctx, r.Sentinel, r.Dir, ports[2:], r.leader.port, r.Settings); err != nil {
		return err
	}
	if err := r.await(ctx, "the Sentinels agree", r.whole); err != nil {
		return err
	}
	for _, s := range []*server{r.leader, r.replica} {
		r.probes[s] = new(probe)
		go r.probes[s].run(ctx, r.Kind, admin(s.port, password))
	}
	r.key = "start"
	for _, p := range r.Programs {
		started, err := startProgram(ctx, p, r.Dir, r.trio.addresses(), r.Kind.Call)
		if err != nil {
			return err
		}
		r.programs = append(r.programs, started)
		if err := started.begin(keyOf(started, r.key)); err != nil {
			return started.failed(err)
		}
	}
	return r.await(ctx, "the programs call", r.recovered)
}

// startServer starts a server, as a part of the pair, and waits until it answers.
func (r *run) startServer(ctx context.Context, s *server) error {
	peer := r.leader
	if s == r.leader {
		peer = r.replica
	}
	var err error
	if s.argv, err = r.Kind.command(s, peer.port, r.leader.port); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	return r.await(ctx, s.name+" answers", func(ctx context.Context) error {
		if s.exited() {
			return final{errors.New("it has ended")}
		}
		_, err := s.replication(ctx)
		return err
	})
}

// final is an error that does not go away.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// await calls until there is no error, or a final one.
func (r *run) await(ctx context.Context, what string, done func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, roundTimeout, fmt.Errorf("not after %s", roundTimeout))
	defer cancel()
	for {
		err := done(ctx)
		if err == nil {
			return nil
		}
		if last, ok := errors.AsType[final](err); ok {
			return fmt.Errorf("%s: %w", what, last.error)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), err)
		}
	}
}

// follows returns nil once the replica has what the leader has.
func (r *run) follows(ctx context.Context) error {
	fields, err := r.replica.replication(ctx)
	if err != nil {
		return err
	}
	return expect(fields, map[string]string{
		"role": "slave", "master_link_status": "up", "master_port": strconv.Itoa(r.leader.port),
	})
}

// whole returns nil once the replica follows and could be promoted. The Sentinels have named the leader
// before.
func (r *run) whole(ctx context.Context) error {
	if r.trio.named(ctx, r.replica.port) == nil {
		return final{errors.New("the Sentinels have changed the leader again")}
	}
	if err := r.follows(ctx); err != nil {
		return err
	}
	return r.trio.agree(ctx, r.leader.port, r.replica.port)
}

// recent is how long ago the last success of a program may be that has recovered.
const recent = 200 * time.Millisecond

// recovered returns nil once all programs have successes; each has a section more.
func (r *run) recovered(ctx context.Context) error {
	var waiting error
	for _, p := range r.programs {
		s, err := p.section(ctx, keyOf(p, r.key))
		if err != nil {
			return final{err}
		}
		p.round.Add(s)
		if s.OK == 0 || s.SinceMs > float64(recent.Milliseconds()) {
			waiting = fmt.Errorf("%s has no success: %v", p.Name, s.Errors)
		}
	}
	return waiting
}

func keyOf(p *program, key string) string { return "failover:" + p.Name + ":" + key }

// turn has the programs go on with another key, and returns the accounts of the last one.
func (r *run) turn(ctx context.Context, key string) ([]Account, error) {
	var accounts []Account
	for _, p := range r.programs {
		s, err := p.section(ctx, keyOf(p, key))
		if err != nil {
			return nil, err
		}
		p.round.Add(s)
		p.total.Add(p.round)
		var charged int
		err = r.await(ctx, "the leader says what is charged", func(ctx context.Context) (err error) {
			charged, err = r.Kind.charged(ctx, r.leader.client, keyOf(p, r.key))
			return err
		})
		if err != nil {
			return nil, err
		}
		accounts = append(accounts, Account{
			Library: p.Name, Allowed: p.total.Allowed, Unknown: p.total.Unknown, Charged: charged,
		})
		p.round, p.total = report.Section{}, report.Section{}
	}
	r.key = key
	return accounts, nil
}

func (r *run) all(ctx context.Context) error {
	for i := range r.Kills {
		if _, err := r.turn(ctx, fmt.Sprint("kill:", i)); err != nil {
			return err
		}
		f, err := r.fail(ctx, false)
		if err == nil {
			f.Accounts, err = r.turn(ctx, "between")
		}
		if err != nil {
			return fmt.Errorf("kill %d: %w", i+1, err)
		}
		r.note(f, i+1, r.Kills)
	}
	if r.Planned == 0 {
		return nil
	}
	if _, err := r.turn(ctx, "planned"); err != nil {
		return err
	}
	for i := range r.Planned {
		f, err := r.fail(ctx, true)
		if err != nil {
			return fmt.Errorf("planned failover %d: %w", i+1, err)
		}
		r.note(f, i+1, r.Planned)
	}
	var err error
	r.result.Planned, err = r.turn(ctx, "end")
	return err
}

func (r *run) note(f Failover, i, of int) {
	r.result.Failovers = append(r.result.Failovers, f)
	r.Log("%s", f.line(r.Kind.Name, i, of))
}

// settle is longer than a Sentinel's pause between two connections: a leader that is lost sooner is noticed
// later.
const settle = 2 * time.Second

// fail has the other server become the leader, and returns once the pair is whole and all programs call it.
func (r *run) fail(ctx context.Context, planned bool) (Failover, error) {
	for _, p := range r.programs {
		p.total.Add(p.round)
		p.round = report.Section{}
	}
	time.Sleep(settle)
	began := time.Now()
	if !planned {
		r.leader.kill()
	} else if err := r.await(ctx, "SENTINEL FAILOVER", r.trio.failover); err != nil {
		return Failover{}, err
	}
	err := r.await(ctx, "the other one leads", func(context.Context) error {
		if !r.probes[r.replica].seen(began) {
			return errors.New("it refuses changes")
		}
		return nil
	})
	if err != nil {
		return Failover{}, err
	}
	r.leader, r.replica = r.replica, r.leader
	err = r.await(ctx, "the Sentinels name the other one", func(ctx context.Context) error {
		return r.trio.named(ctx, r.leader.port)
	})
	if err != nil {
		return Failover{}, err
	}
	if !planned {
		if err := r.startServer(ctx, r.replica); err != nil {
			return Failover{}, err
		}
	}
	if err := r.await(ctx, "the pair is whole", r.whole); err != nil {
		return Failover{}, err
	}
	if err := r.await(ctx, "the programs recover", r.recovered); err != nil {
		return Failover{}, err
	}
	f := Failover{Planned: planned}
	f.Without, f.Both = between(began, r.probes[r.replica].take(), r.probes[r.leader].take())
	for _, p := range r.programs {
		f.Sections = append(f.Sections, p.round)
	}
	return f, nil
}

// logs returns the ends of all logs.
func (r *run) logs() string {
	text := new(strings.Builder)
	var all []*process
	for _, s := range []*server{r.leader, r.replica} {
		if s != nil && s.argv != nil {
			all = append(all, &s.process)
		}
	}
	if r.trio != nil {
		all = append(all, r.trio.processes...)
	}
	for _, p := range all {
		fmt.Fprintf(text, "--- %s\n%s\n", p.name, tail(p.logFile()))
	}
	return text.String()
}
