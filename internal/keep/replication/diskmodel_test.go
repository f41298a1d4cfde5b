package replication

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/keep/changes"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/gate"
	"cellserver/internal/store/replicas"
	"cellserver/internal/test/racetest"
)

// The model with disks has two servers that run by themselves, in the bubble's time. One of them ends at any
// operation of a disk, and begins again with what is left there.

// diskHost is a server with a directory, between its start and its end.
type diskHost struct {
	*host
	dir    *disktest.Dir
	keeper *persist.Keeper
	stop   context.CancelFunc
	ended  chan struct{}
	isDead atomic.Bool
}

// diskPair is a, which leads at first, and b.
type diskPair struct {
	t     *testing.T
	name  string
	calls atomic.Int64
	// isOver says that a server has ended, and not begun again; until then it runs, heard by nobody.
	isOver [2]atomic.Bool

	isPromoted bool // b

	mu    sync.Mutex // guards hosts
	hosts [2]*diskHost
}

func (p *diskPair) host(i int) *diskHost {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hosts[i]
}

// start starts a server with a directory, and waits until it serves clients.
func (p *diskPair) start(i int, dir *disktest.Dir, replicaOf replicas.Address) {
	p.isOver[i].Store(false)
	names := [2]string{"a", "b"}
	h := &diskHost{dir: dir, ended: make(chan struct{}), host: &host{
		store: shard.New(), clock: &fakeClock{}, at: replicas.Address{Host: names[i], Port: 6380},
		patience: replicas.NextTime, killer: func(int64) func() { return func() {} },
	}}
	h.gate = gate.New(h.store, h.clock.Now)
	gathered := changes.New(h.store, h.clock.Now)
	log := slog.New(slog.DiscardHandler)
	h.keeper = persist.New(persist.Config{
		Dir: dir, Store: h.store, Changes: gathered, Gate: h.gate, Now: h.clock.Now, Interval: time.Second, Log: log,
		Beside: []string{RoleName}, Stands: func() { h.node.KeepRole() },
	})
	h.node = New(Config{
		Store: h.store, Changes: gathered, Gate: h.gate, Clock: h.clock, Definitions: noDefinitions{},
		Dial:     func(_ context.Context, to replicas.Address) (Conn, error) { return p.dial(i, to) },
		Announce: h.at, Dir: dir, Disk: h.keeper, KillClients: func() {}, EndTurns: func() {}, RunID: names[i], Log: log,
		Settings: Settings{Priority: 100, Backlog: 1 << 20, MaxLag: maxLag},
	})
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	ready := make(chan struct{})
	go func() {
		defer close(h.ended)
		_ = h.keeper.Run(ctx, func() {
			b := Beginning{ReplicaOf: replicaOf, HasStates: !h.node.isEmpty(), Found: h.keeper.Found()}
			if err := h.node.Begin(ctx, b); err != nil {
				p.t.Errorf("%s: %s: %v", p.name, names[i], err)
			}
			close(ready)
			go h.node.Run(ctx)
		})
	}()
	<-ready
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hosts[i] = h
}

// dial connects one server to the other.
func (p *diskPair) dial(from int, to replicas.Address) (Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, own := p.hosts[1-from], p.hosts[from]
	if h == nil || p.isOver[1-from].Load() || p.isOver[from].Load() || h.at != to {
		return nil, errCut
	}
	view := &model{a: &host{at: replicas.Address{Host: "a", Port: 6380}}, b: &host{at: replicas.Address{Host: "b", Port: 6380}}}
	if from == 0 {
		view.b = h.host
	} else {
		view.a = h.host
	}
	return &diskConn{&conn{view, h.host, p.calls.Add(1)}, h, own, p, from}, nil
}

// diskConn ends with its servers.
type diskConn struct {
	*conn    // whose host is to's
	to, from *diskHost
	pair     *diskPair
	by       int
}

// isCut reports whether one of its servers has ended.
func (c *diskConn) isCut() bool {
	return c.pair.isOver[c.by].Load() || c.pair.isOver[1-c.by].Load() || c.to.isDead.Load() || c.from != nil && c.from.isDead.Load()
}

func (c *diskConn) Do(ctx context.Context, args ...any) (any, error) {
	if c.isCut() {
		return nil, errCut
	}
	reply, err := c.conn.Do(ctx, args...)
	if c.isCut() {
		return nil, errCut
	}
	return reply, err
}

// modelDebts are charged long before anything happens.
const modelDebts = 20

func (h *diskHost) chargeOld() {
	for i := range modelDebts {
		batch := []store.Request{{Key: store.Key{Name: fmt.Append(nil, "old", i)}, Rule: limit(), Quantity: 1}}
		h.store.Throttle(h.clock.Now(), batch)
	}
}

// old returns how many of these debts a server knows.
func (h *diskHost) old() (n int) {
	for i := range modelDebts {
		if _, ok, _ := h.store.State(h.clock.Now(), store.Key{Name: fmt.Append(nil, "old", i)}); ok {
			n++
		}
	}
	return n
}

// leads reports whether a server accepts changes.
func (h *diskHost) leads() bool {
	return h.node.Status().Role == replicas.Leader && h.gate.Refusal() == nil
}

// diskRun is one order of events.
type diskRun struct {
	promote string        // "at link up", "at once", "never"
	isAlone bool          // the leader ends before the replica is promoted
	ending  int           // the server that ends and begins again
	at      int           // the operation of its disk, since b's start, at which it does
	isCrash bool          // of the machine
	isFull  bool          // its disk is full from then on, and it ends later
	slow    time.Duration // each of its operations
}

// diskEnd is what a diskRun leaves.
type diskEnd struct {
	mu       sync.Mutex // guards all below
	begun    bool       // operations count
	happened bool
	remains  *disktest.Dir
}

func (e *diskEnd) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun = true
}

func (e *diskEnd) hasBegun() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.begun
}

func (r *diskRun) String() string {
	return fmt.Sprintf("promoted %s, the leader ends: %t; %d ends at operation %d, crash: %t, full: %t, slow %s",
		r.promote, r.isAlone, r.ending, r.at, r.isCrash, r.isFull, r.slow)
}

var errNoSpace = errors.New("no space left on the device")

// watch has a directory end its server, or be full, at an operation.
func (r *diskRun) watch(dir *disktest.Dir, p *diskPair, rng *rand.Rand) *diskEnd {
	ops, e := 0, &diskEnd{}
	dir.Before = func(op disktest.Op, name string) error {
		if !e.hasBegun() {
			return nil
		}
		if strings.HasPrefix(name, "snapshot-") { // a role is written under a lock, which the bubble's time does not pass
			time.Sleep(r.slow)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if ops++; ops == r.at && !e.happened {
			if e.happened = true; !r.isFull {
				e.remains = r.left(dir, rng)
				p.isOver[r.ending].Store(true)
			}
		}
		isSmall := op == disktest.Rename || op == disktest.Remove || op == disktest.SyncDir
		if e.happened && r.isFull && !isSmall {
			return errNoSpace
		}
		return nil
	}
	return e
}

// left returns what is left of a directory.
func (r *diskRun) left(dir *disktest.Dir, rng *rand.Rand) *disktest.Dir {
	if r.isCrash {
		return dir.Crash(rng)
	}
	return dir.Kill()
}

// do lets it happen, and reports whether the operation was reached.
func (r *diskRun) do(t *testing.T) (reached bool) {
	p := &diskPair{t: t, name: r.String()}
	rng := rand.New(rand.NewPCG(uint64(r.at), 1))
	dirs := [2]*disktest.Dir{disktest.New(), disktest.New()}
	e := r.watch(dirs[r.ending], p, rng)
	p.start(0, dirs[0], replicas.Address{})
	a := p.host(0)
	a.chargeOld()
	time.Sleep(2 * time.Second) // they are on a's disk
	e.begin()
	p.start(1, dirs[1], a.at)
	defer func() {
		for i := range p.hosts {
			p.end(i)
		}
	}()
	r.change(p)
	time.Sleep(3 * time.Second)
	e.mu.Lock()
	reached, e.happened = e.happened, true
	remains := e.remains
	e.mu.Unlock()
	if remains == nil { // it ends later, whatever it has reached
		remains = r.left(p.host(r.ending).dir, rng)
	}
	p.end(r.ending)
	of := replicas.Address{}
	if r.ending == 1 {
		of = a.at
	}
	p.start(r.ending, remains, of)
	if r.isAlone { // as DEPLOY says
		of = replicas.Address{}
		if p.isPromoted {
			of = p.host(1).at
		}
		p.start(0, a.dir.Kill(), of)
	}
	time.Sleep(8 * time.Second)
	p.look()
	return reached
}

// change has b promoted.
func (r *diskRun) change(p *diskPair) {
	b := p.host(1)
	for range 400 {
		time.Sleep(10 * time.Millisecond)
		if st := b.node.Status(); r.promote == "at once" && b.old() == modelDebts || st.Link == replicas.LinkConnected {
			break
		}
	}
	if r.isAlone {
		p.end(0)
	}
	if r.promote != "never" && !p.isOver[1].Load() && (!r.isAlone || b.old() == modelDebts) {
		_ = b.node.Lead() // whose outcome is looked at
		p.isPromoted = true
	}
}

// end ends a server at once, whatever it still writes.
func (p *diskPair) end(i int) {
	h := p.host(i)
	p.isOver[i].Store(true)
	h.isDead.Store(true)
	h.stop()
	<-h.ended
}

// look holds the invariants: who leads knows all old debts, and if nobody does, somebody who knows them can
// be told to.
func (p *diskPair) look() {
	leaders := 0
	for i := range p.hosts {
		h := p.host(i)
		if h.isDead.Load() {
			continue
		}
		if h.leads() {
			leaders++
			if h.old() != modelDebts {
				p.t.Errorf("%s: %s leads, and knows %d of %d debts: %s", p.name, h.at.Host, h.old(), modelDebts, h.dir.Contents(RoleName))
			}
		}
	}
	if leaders > 0 {
		return
	}
	best := p.host(1) // as DEPLOY says
	if other := p.host(0); best.isDead.Load() || best.node.Status().Kept == replicas.Missing || best.old() < other.old() {
		best = other
	}
	_ = best.node.Lead()
	time.Sleep(10 * time.Second)
	if !best.leads() || best.old() != modelDebts {
		p.t.Errorf("%s: %s is told to lead, and knows %d of %d debts", p.name, best.at.Host, best.old(), modelDebts)
	}
}

// TestModelOfDisks: at whatever operation of a disk a server ends, or finds its disk full, nobody leads
// without what was on a disk long before.
func TestModelOfDisks(t *testing.T) {
	t.Parallel()
	for _, promote := range []string{"at link up", "at once", "never"} {
		for _, r := range []diskRun{
			{ending: 1}, {ending: 1, isCrash: true}, {ending: 1, isFull: true},
			{ending: 1, isAlone: true}, {ending: 1, isAlone: true, isFull: true}, {ending: 0}, {ending: 0, isCrash: true}, {ending: 0, isFull: true},
		} {
			r.promote = promote
			t.Run(fmt.Sprintf("%s %d alone=%t crash=%t full=%t", promote, r.ending, r.isAlone, r.isCrash, r.isFull), func(t *testing.T) {
				t.Parallel()
				step := 1
				if racetest.OmitsLong() {
					step = 5
				}
				for at, reached := 1, true; reached && at < 200; at += step {
					synctest.Test(t, func(t *testing.T) {
						r.at, r.slow = at, time.Duration(at%2)*100*time.Millisecond
						reached = r.do(t)
					})
				}
			})
		}
	}
}
