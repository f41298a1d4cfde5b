package replication

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/store/replicas"
	"cellserver/internal/test/racetest"
)

// The model of links has two servers that run, on links with a round trip. A planned change begins, and one
// fault happens at one of the messages since, of whatever connection: each order of losses is tried.

// mishap is what happens to a message.
type mishap struct {
	name  string
	peers bool // each server knows the other one, as with --peer
	do    func(w *web, c *wire)
}

func mishaps() []mishap {
	stall := func(bounds float64) func(w *web, c *wire) {
		return func(w *web, c *wire) {
			c.stalledUntil = time.Now().Add(time.Duration(bounds * float64(replicas.Bound(w.roundTrip))))
		}
	}
	return []mishap{
		{name: "none", do: func(*web, *wire) {}},
		{name: "the connection breaks", do: func(_ *web, c *wire) { c.breakLocked() }},
		{name: "all connections break", do: func(w *web, _ *wire) { w.breakAllLocked() }},
		{name: "the connection stalls for half the bound", do: stall(0.5)},
		{name: "the connection stalls for three bounds", do: stall(3)},
		{name: "all stalls for three bounds", peers: true, do: func(w *web, _ *wire) {
			w.stalledUntil = time.Now().Add(3 * replicas.Bound(w.roundTrip))
		}},
		{name: "the leader crashes", do: func(w *web, _ *wire) {
			w.a.isDown.Store(true)
			w.breakAllLocked()
		}},
	}
}

// web is the network between the servers.
type web struct {
	a, b      *host
	roundTrip time.Duration
	ctx       context.Context
	isOld     bool // a's version does not know the second connection

	mu           sync.Mutex // guards all below, and all wires
	wires        map[int64]*wire
	calls        int64
	left         int // messages until the mishap; negative for none
	mishap       mishap
	stalledUntil time.Time
}

// wire is a connection.
type wire struct {
	web          *web
	from, to     *host
	id           int64
	broken       chan struct{}
	isBroken     bool
	stalledUntil time.Time
	lastAt       time.Time // of the last message to the server
}

// breakLocked loses what is under way.
func (c *wire) breakLocked() {
	if !c.isBroken {
		c.isBroken = true
		close(c.broken)
		delete(c.web.wires, c.id)
		go c.to.node.Detach(c.id)
	}
}

func (w *web) breakAllLocked() {
	for _, c := range w.wires {
		c.breakLocked()
	}
}

// carry takes a message the one or the other way, and reports whether it arrives.
func (c *wire) carry(out bool) bool {
	w := c.web
	w.mu.Lock()
	if w.left--; w.left == 0 {
		w.mishap.do(w, c)
	}
	at := time.Now().Add(w.roundTrip / 2)
	for _, stalled := range []time.Time{c.stalledUntil, w.stalledUntil} {
		if at.Before(stalled) {
			at = stalled
		}
	}
	if out {
		if at.Before(c.lastAt) {
			at = c.lastAt
		}
		c.lastAt = at
	}
	isBroken := c.isBroken
	w.mu.Unlock()
	if isBroken {
		return false
	}
	select {
	case <-c.broken:
		return false
	case <-w.ctx.Done():
		return false
	case <-time.After(time.Until(at)):
		return true
	}
}

// dialFrom is a server's Dial: four round trips, of TCP, HELLO, CLIENT SETNAME and PING.
func (w *web) dialFrom(from *host) Dial {
	return func(ctx context.Context, to replicas.Address) (Conn, error) {
		h := w.a
		if h.at != to {
			h = w.b
		}
		w.mu.Lock()
		w.calls++
		c := &wire{web: w, from: from, to: h, id: w.calls, broken: make(chan struct{})}
		isDown := h.isDown.Load() || from.isDown.Load()
		if !isDown {
			w.wires[c.id] = c
		}
		w.mu.Unlock()
		if isDown {
			return nil, errCut
		}
		for range 4 {
			if _, err := c.exchange(ctx, func() (any, error) { return nil, nil }); err != nil {
				return nil, err
			}
		}
		return c, nil
	}
}

// Do implements Conn.
func (c *wire) Do(ctx context.Context, args ...any) (any, error) {
	return c.exchange(ctx, func() (any, error) { return c.to.reply(c.web.ctx, c.id, c.from.at, c.web.isOld, args) })
}

// exchange has the server do something even if its client has given up, and returns what that gets.
func (c *wire) exchange(ctx context.Context, serve func() (any, error)) (any, error) {
	type result struct {
		reply any
		err   error
	}
	done := make(chan result, 1)
	go func() {
		if !c.carry(true) {
			return
		}
		reply, err := serve()
		if c.carry(false) {
			done <- result{reply, err}
		}
	}()
	select {
	case r := <-done:
		return r.reply, r.err
	case <-c.broken:
		return nil, errCut
	case <-ctx.Done():
		return nil, errors.Join(errCut, ctx.Err())
	}
}

// Close implements Conn: the server sees it after what was sent before.
func (c *wire) Close() error {
	go func() {
		if c.carry(true) {
			c.web.mu.Lock()
			defer c.web.mu.Unlock()
			c.breakLocked()
		}
	}()
	return nil
}

// newWeb returns two servers that run, in step.
func newWeb(ctx context.Context, t *testing.T, roundTrip time.Duration, what mishap, isOld bool) *web {
	t.Helper()
	w := &web{roundTrip: roundTrip, ctx: ctx, isOld: isOld, mishap: what, left: -1, wires: map[int64]*wire{}}
	m := &model{t: t}
	w.a, w.b = newHost("a", 0, m, 0), newHost("b", time.Minute, m, 0)
	for _, h := range []*host{w.a, w.b} {
		h.patience = replicas.NextTime
		h.node.config.Dial = w.dialFrom(h)
		h.killer = func(client int64) func() {
			return func() {
				go func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					if c := w.wires[client]; c != nil {
						c.breakLocked()
					}
				}()
			}
		}
	}
	if what.peers {
		w.a.node.peer, w.b.node.peer = w.b.at, w.a.at
	}
	w.b.node.Follow(w.a.at)
	go w.a.node.Run(ctx)
	go w.b.node.Run(ctx)
	for w.b.node.Status().RoundTrip == 0 || w.b.node.Status().Link != replicas.LinkConnected {
		time.Sleep(10 * time.Millisecond)
	}
	return w
}

// change has the servers change at a message, charges meanwhile, and checks the end.
func (w *web) change(t *testing.T, at int) {
	t.Helper()
	w.mu.Lock()
	w.left = at
	w.mu.Unlock()
	before := int64(0)
	charge := func(h *host) bool {
		_, ok := h.charge(1)
		return ok
	}
	if charge(w.a) {
		before++
	}
	if err := w.b.node.Lead(); err != nil {
		t.Fatal(err)
	}
	both := false
	for range 100 {
		time.Sleep(replicas.Bound(w.roundTrip) / 5)
		onA, onB := !w.a.isDown.Load() && charge(w.a), false
		if w.leads(w.b) {
			onB = charge(w.b)
		}
		both = both || onA && onB
		if onA || onB {
			before++
		}
	}
	leader, other := w.a, w.b
	if w.leads(w.b) {
		leader, other = w.b, w.a
	}
	st, counts := other.node.Status(), w.b.node.Status().Counts
	if w.a.isDown.Load() {
		if leader != w.b || !charge(w.b) {
			t.Errorf("b does not lead after the crash: %+v", counts)
		}
		return
	}
	if !charge(leader) || charge(other) || st.Role != replicas.Replica || st.Link != replicas.LinkConnected || st.Leader != leader.at {
		t.Errorf("%s leads; the other one is a %s of %s, its link is %s (%v); %+v", leader.at.Host, st.Role, st.Leader, st.Link, st.LinkError, counts)
	}
	if counts.Handovers+counts.HandoverTimeouts+counts.HandoverFailures != 1 {
		t.Errorf("b counts %+v", counts)
	}
	if lost := before + 1 - leader.used(); !both && counts.HandoverTimeouts == 0 && lost != 0 {
		t.Errorf("%d units of %d are lost: %+v", lost, before+1, counts)
	}
	// An older leader waits for a second, and for the replica's link.
	if w.mishap.name == "none" && (!w.isOld || w.roundTrip < oldBound/2) && (counts.Handovers != 1 || both) {
		t.Errorf("not disturbed, and b counts %+v", counts)
	}
}

func (w *web) leads(h *host) bool {
	h.node.mu.Lock()
	defer h.node.mu.Unlock()
	return h.node.role.leads()
}

// TestModelOfSlowLinks: at each round trip and with any message lost, late or the last one before a crash, a
// planned change ends with one leader, which the other one follows; without a fault nothing is lost.
func TestModelOfSlowLinks(t *testing.T) {
	roundTrips, most := []time.Duration{time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, time.Second}, 20
	if racetest.OmitsLong() {
		roundTrips, most = []time.Duration{50 * time.Millisecond, time.Second}, 6
	}
	for _, roundTrip := range roundTrips {
		for _, what := range mishaps() {
			for _, isOld := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, older leader %t", roundTrip, what.name, isOld), func(t *testing.T) {
					t.Parallel()
					for at := 1; at <= most && !t.Failed(); at++ {
						inWeb(t, roundTrip, what, isOld, func(w *web) { w.change(t, at) })
						if what.name == "none" {
							break
						}
					}
				})
			}
		}
	}
}

// inWeb does something with two servers in a bubble.
func inWeb(t *testing.T, roundTrip time.Duration, what mishap, isOld bool, do func(w *web)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		do(newWeb(ctx, t, roundTrip, what, isOld))
		end()
		synctest.Wait()
		time.Sleep(time.Minute) // what was under way ends
	})
}

// TestSlowLinkIsRefused: a link beyond the longest round trip is refused in a line, and nothing changes.
func TestSlowLinkIsRefused(t *testing.T) {
	inWeb(t, 1600*time.Millisecond, mishaps()[0], false, func(w *web) {
		err := w.b.node.Lead()
		if !errors.As(err, new(replicas.SlowLinkError)) || !strings.Contains(err.Error(), "is 1600 ms, and a planned change is possible up to 1500 ms") {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Minute)
		if st := w.b.node.Status(); st.Role != replicas.Replica || st.Link != replicas.LinkConnected || !errors.Is(st.HandoverError, err) || st.Counts.HandoverFailures != 1 {
			t.Errorf("it is %+v", st)
		}
		if w.a.gate.Refusal() != nil {
			t.Error("the leader refuses changes")
		}
	})
}

// TestHoldIsBounded: a replica that asks for a change and sends no more has calls held for the longest bound,
// whatever it asks for, and the leader leads on.
func TestHoldIsBounded(t *testing.T) {
	inWeb(t, 10*time.Millisecond, mishaps()[0], false, func(w *web) {
		a := w.a.node
		a.HandOver(replicas.Handover{Client: 99, To: w.b.at, History: a.history, Offset: a.backlog.end, Within: time.Hour},
			func(int64, []byte, error) {})
		longest := replicas.Bound(replicas.MostRoundTrip)
		if time.Sleep(longest - time.Second); !w.a.gate.Holds() {
			t.Error("calls are not held")
		}
		if time.Sleep(2 * time.Second); w.a.gate.Holds() || w.a.gate.Refusal() != nil || !w.leads(w.a) {
			t.Errorf("calls are held: %t; %v", w.a.gate.Holds(), w.a.gate.Refusal())
		}
	})
}
