package squares

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/randtest"
	"cellserver/internal/test/redistest"
)

// processes are servers as programs, one of which is asked at a time.
type processes struct {
	t      *testing.T
	files  []string // of limits, one a server
	all    []*harness.Process
	ways   []way
	admin  []*client
	remote bool
	longNs int64 // the longest call
}

func (p *processes) now() int64        { return time.Now().UnixNano() }
func (p *processes) pass(int64)        {}
func (p *processes) admins() []*client { return p.admin }
func (p *processes) opened() []way     { return p.ways }
func (p *processes) commands() bool    { return !p.remote }
func (p *processes) setsClock() bool   { return false }

// counters are all servers over a store; a replica counts nothing.
func (p *processes) counters() []*client {
	if p.remote {
		return p.admin
	}
	return p.admin[:1]
}

// slackNs has a debt that a call began somewhere within it, which a change of numbers makes larger by their
// largest ratio; and a second that is rounded.
func (p *processes) slackNs() int64 {
	return secNs + p.longNs*slow.most*slow.periods[1]/slow.periods[0]
}

func (p *processes) write(t *testing.T, text string) {
	t.Helper()
	for _, file := range p.files {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// start starts a server with a file of its own.
func (p *processes) start(args ...string) *harness.Process {
	p.t.Helper()
	s := harness.StartServer(p.t, append([]string{"--http-addr", "127.0.0.1:0", "--enable-debug-command", "yes"}, args...)...)
	p.all = append(p.all, s)
	return s
}

// newFile returns flags with a file of limits.
func (p *processes) newFile(text string) (flags []string) {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "limits.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.files = append(p.files, file)
	return []string{"--limits-file", file}
}

// ask has the next calls go to some servers.
func (p *processes) ask(to ...*harness.Process) {
	p.t.Helper()
	p.ways, p.admin = nil, nil
	for _, s := range to {
		ways := append(append(redisDoors(p.t, s.Addr, p.remote), httpDoors("http://"+s.HTTP)...), pageDoor("http://"+s.Metrics))
		for _, w := range ways {
			asked := w.ask
			w.ask = func(t *testing.T, all []question) []answer {
				began := time.Now()
				defer func() { p.longNs = max(p.longNs, int64(time.Since(began))) }()
				return asked(t, all)
			}
			p.ways = append(p.ways, w)
		}
		p.admin = append(p.admin, newClient(p.t, s.Addr, "2"))
	}
}

// processRuns has runs of programs, with something between their steps.
func processRuns(t *testing.T, column string, open func(p *processes, text string) (between func(r *run))) {
	t.Helper()
	t.Parallel()
	runs, steps := runsOf(t, 2, 1), 100
	seed := randtest.Seed(t, 1)
	b := &table{of: map[[2]string]int{}}
	for i := range runs {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			p := &processes{t: t}
			a := artist{rand.New(rand.NewPCG(seed, uint64(i))), slowNow()}
			var between func(r *run)
			r := newRun(t, a, func(_ *run, text string) system {
				between = open(p, text)
				return p
			}, b, column)
			for range 4 {
				for range steps {
					r.step()
				}
				r.compareCounts()
				between(r)
			}
		})
	}
	b.log(t)
}

// TestSquaresOnDisk: a server that is killed continues.
func TestSquaresOnDisk(t *testing.T) {
	processRuns(t, "disk", func(p *processes, text string) func(*run) {
		args := append(p.newFile(text), "--data-dir", p.t.TempDir(), "--fsync-interval", "0", "--fsync-timeout", "1h")
		s := p.start(args...)
		p.ask(s)
		return func(r *run) {
			s.Stop(r.t, syscall.SIGKILL)
			r.note("killed")
			clear(r.counts)
			s = p.start(args...)
			p.ask(s)
		}
	})
}

// TestSquaresOfReplica: a replica answers looks as its leader, and continues when it is promoted, with the
// definitions and the overrides by commands.
func TestSquaresOfReplica(t *testing.T) {
	processRuns(t, "replica", func(p *processes, text string) func(*run) {
		leader := p.start(p.newFile(text)...)
		var replica *harness.Process
		var looks *client
		follow := func(text string) {
			replica = p.start(append(p.newFile(text), "--replica-of", leader.Addr)...)
			p.ask(leader)
			looks = newClient(p.t, replica.Addr, "2")
			p.admin = append(p.admin, looks)
			replica.Eventually(p.t, "be in step", func() bool {
				return strings.Contains(looks.one("INFO", "replication").Text, "master_link_status:up")
			})
		}
		follow(text)
		return func(r *run) {
			r.expect("1", "WAIT", "1", "0")
			r.note("the replica is asked, and promoted")
			r.compares(way{name: "RESP2", unit: seconds, ask: looks.pipelined}, r.everything())
			leader.Stop(r.t, syscall.SIGKILL)
			replica.Eventually(r.t, "lead", func() bool {
				looks.one("REPLICAOF", "NO", "ONE")
				return looks.one("DEL", "absent").Kind == ':'
			})
			clear(r.counts)
			leader, p.files = replica, p.files[1:]
			follow(yaml(r.byFile, r.plans))
		}
	})
}

// TestSquaresOverStore: two servers over one Redis answer as one server.
func TestSquaresOverStore(t *testing.T) {
	on := redistest.Server(t)
	processRuns(t, "store on Redis", func(p *processes, text string) func(*run) {
		p.remote = true
		on.Client().FlushAll(p.t.Context())
		args := append(p.newFile(text), "--store", "redis://"+on.Addr, "--store-timeout", "1m")
		two := []*harness.Process{p.start(args...), p.start(args...)}
		p.ask(two...)
		return func(*run) {}
	})
}
