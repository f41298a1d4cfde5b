package replication

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/changes"
	"cellserver/internal/limiter"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/gate"
	"cellserver/internal/store/replicas"
)

// The model has two servers, a link between them that carries what is sent when a step says so, and somebody
// who promotes, as Sentinel does. Sequences of its steps are enumerated; after each one the invariants hold.

const (
	tick   = 400 * time.Millisecond // of a step, so that three exceed a planned change's second
	maxLag = 2 * tick
	// downAfter is the silence after which a replica is promoted, above maxLag.
	downAfter = 3 * tick
)

// fakeClock is the bubble's clock, apart by an offset.
type fakeClock struct{ offsetNs atomic.Int64 }

func (c *fakeClock) Now() int64 { return time.Now().UnixNano() + c.offsetNs.Load() }

func (c *fakeClock) SetTo(ns int64) { c.offsetNs.Add(ns - c.Now()) }

func (c *fakeClock) NotBefore(ns int64) (offsetNs int64) {
	offsetNs = max(0, ns-c.Now())
	c.offsetNs.Add(offsetNs)
	return offsetNs
}

// noDefinitions are those of servers whose limits have no name.
type noDefinitions struct{}

func (noDefinitions) Record(bool)                       {}
func (noDefinitions) TakeRecorded(bool) [][]byte        { return nil }
func (noDefinitions) Everything() [][]byte              { return nil }
func (noDefinitions) Digests() (d replicas.Definitions) { return d }
func (noDefinitions) Apply([]byte) error                { return nil }

// host is a server of the model.
type host struct {
	node   *Node
	store  *shard.Store
	gate   *gate.Gate
	clock  *fakeClock
	at     replicas.Address
	isDown atomic.Bool

	patience time.Duration             // of CL.SYNC NEXT
	killer   func(client int64) func() // ends a connection
}

// model is two servers; a leads at first.
type model struct {
	t     *testing.T
	path  []string // the steps so far
	a, b  *host
	calls atomic.Int64 // connections

	up       *leaderLink // b's link to a; nil while it is cut
	client   int64       // of up, at a
	inFlight []byte      // sent to b, not applied
	sentNs   int64       // a's clock then
	isSent   bool
	isApart  atomic.Bool // neither server reaches the other
	isOld    bool        // a's version does not know the second connection
	end      context.CancelFunc

	// what has happened:
	charged, gathered, sent, applied int64 // units at a; in rounds; in flight; at b
	chargedB                         int64 // units at b
	waited                           int64 // units that a WAIT has found at b
	waiting                          int64 // units before the WAIT under way; -1 for none
	waitDone                         chan struct{}
	seenNs                           int64 // latest time of a that b has seen
	branch                           int64 // units at b when it was promoted; -1 before
	silentNs                         int64 // time from which a is cut off
	handed                           bool  // a planned change is under way, or done
	wasLinked                        bool  // b had heard a lately when it began
}

func newHost(name string, offset time.Duration, m *model, minReplicas int) *host {
	h := &host{store: shard.New(), clock: &fakeClock{}, at: replicas.Address{Host: name, Port: 6380}, patience: time.Microsecond}
	h.clock.offsetNs.Store(int64(offset))
	h.killer = func(int64) func() { return func() {} }
	h.gate = gate.New(h.store, h.clock.Now)
	h.node = New(Config{
		Store: h.store, Changes: changes.New(h.store, h.clock.Now), Gate: h.gate, Clock: h.clock, Definitions: noDefinitions{},
		Dial: m.dial, Announce: h.at, KillClients: func() {}, EndTurns: func() {}, RunID: name, Log: slog.New(slog.DiscardHandler),
		Settings: Settings{Priority: 100, Backlog: 1 << 20, MinReplicas: minReplicas, MaxLag: maxLag},
	})
	return h
}

// conn is a connection of the model: a call is done at once.
type conn struct {
	model *model
	to    *host
	id    int64
}

var errCut = errors.New("the link is cut")

// refusal is an error that a server replies.
type refusal string

func (e refusal) Error() string { return string(e) }

// RedisError implements go-redis's interface.
func (refusal) RedisError() {}

// refused is err as a server replies it.
func refused(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, replicas.ErrNotLeader):
		return refusal(notLeader + err.Error())
	case errors.Is(err, replicas.ErrHandingOver):
		return refusal(handingOver + err.Error())
	}
	return refusal("ERR " + err.Error())
}

func (m *model) dial(_ context.Context, to replicas.Address) (Conn, error) {
	for _, h := range []*host{m.a, m.b} {
		if h.at == to && !h.isDown.Load() && !m.isApart.Load() {
			return &conn{m, h, m.calls.Add(1)}, nil
		}
	}
	return nil, errCut
}

// Do implements Conn.
func (c *conn) Do(ctx context.Context, args ...any) (any, error) {
	from := c.model.a
	if c.to == from {
		from = c.model.b
	}
	if args[0] == "CL.SYNC" && args[1] == "TAKEOVER" {
		c.model.applied = c.model.gathered
	}
	reply, err := c.to.reply(ctx, c.id, from.at, c.model.isOld, args)
	if c.model.isApart.Load() {
		return nil, errCut
	}
	return reply, err
}

// reply is the server's reply to a replica that connects with an ID. One of an older version knows less.
func (h *host) reply(ctx context.Context, id int64, from replicas.Address, isOld bool, args []any) (any, error) {
	if args[0] == "REPLCONF" {
		return "OK", nil
	}
	if args[0] == "INFO" {
		return h.info(), nil
	}
	n, word := h.node, args[1]
	switch {
	case isOld && (word == "PING" || word == "LIMITS" || word == "TAKEOVER" || word == "HANDOVER" && len(args) > 2):
		return nil, refusal("ERR unknown subcommand or wrong number of arguments")
	case word == "PING":
		n.Measured(from, time.Duration(args[2].(int64))*time.Microsecond)
		return "OK", nil
	case word == "LIMITS":
		return []any{int64(n.config.Definitions.Digests().Digest)}, nil
	case word == "START":
		s, err := n.Attach(replicas.Client{ID: id, Address: from, Kill: h.killer(id)}, args[2].(int), args[3].(string), args[4].(int64), len(args) > 5)
		mode := "continue"
		if s.Full {
			mode = "full"
		}
		hasHad := int64(0)
		if s.HasHad {
			hasHad = 1
		}
		return []any{int64(s.Format), mode, s.History, s.Parent, s.Branch, s.Offset, s.ClockNs, hasHad}, refused(err)
	case word == "NEXT":
		ready := make(chan struct{}, 1)
		if err := n.Next(id, args[2].(int64), func() { ready <- struct{}{} }); err != nil {
			return nil, refused(err)
		}
		select {
		case <-ready:
		case <-time.After(h.patience):
		}
		clockNs, frames, err := n.Take(id)
		return []any{clockNs, string(frames)}, refused(err)
	case word == "HANDOVER":
		return handOverReply(ctx, n, id, from, args)
	case word == "TAKEOVER":
		clockNs, frames, err := n.TakeOver(id, args[2].(int64))
		if err != nil || len(frames) == 0 {
			return "OK", refused(err)
		}
		return []any{clockNs, string(frames)}, nil
	}
	panic(args)
}

func handOverReply(ctx context.Context, n *Node, id int64, from replicas.Address, args []any) (any, error) {
	h := replicas.Handover{Client: id, To: from}
	if len(args) > 2 {
		h.History, h.Offset, h.Within = args[2].(string), args[3].(int64), time.Duration(args[4].(int64))*time.Millisecond
	}
	type result struct {
		reply any
		err   error
	}
	done := make(chan result, 1)
	n.HandOver(h, func(clockNs int64, frames []byte, err error) {
		if h.Within == 0 {
			done <- result{"OK", refused(err)}
		} else {
			done <- result{[]any{clockNs, string(frames)}, refused(err)}
		}
	})
	select {
	case r := <-done:
		return r.reply, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// info is INFO's text, as far as servers read it.
func (h *host) info() string {
	st := h.node.Status()
	text := fmt.Sprintf("run_id:%s\r\nmaster_replid:%s\r\nmaster_replid2:%040s\r\nmaster_repl_offset:%d\r\n", h.node.config.RunID, st.History, st.Parent, st.Offset)
	if st.Role == replicas.Leader {
		return text + "role:master\r\n"
	}
	return text + fmt.Sprintf("role:slave\r\nmaster_host:%s\r\nmaster_port:%d\r\n", st.Leader.Host, st.Leader.Port)
}

// Close implements Conn.
func (c *conn) Close() error {
	c.to.node.Detach(c.id)
	return nil
}

// newModel returns two servers in step, whose clocks differ.
func newModel(t *testing.T, skew time.Duration, minReplicas int) *model {
	m := &model{t: t, waiting: -1, branch: -1}
	m.a, m.b = newHost("a", 0, m, minReplicas), newHost("b", skew, m, 0)
	m.a.node.becomeLeader()
	m.b.node.role = role{state: following, leader: m.a.at}
	m.b.gate.Close(gate.Replica, 0, m.b.node.readOnlyLocked(m.a.at))
	m.up, m.client = m.join(m.b, m.a)
	m.b.node.setAsked(true)
	ctx, end := context.WithCancel(t.Context())
	m.end = end
	go m.b.node.standBy(ctx, m.a.at)
	return m
}

// join connects a replica, and has it take what is there.
func (m *model) join(replica, leader *host) (f *leaderLink, client int64) {
	ctx := m.t.Context()
	c, err := replica.node.connect(ctx, leader.at)
	if err == nil {
		f, err = replica.node.start(ctx, c, false)
	}
	for i := 0; err == nil && (f.beside != nil || i < 3); i++ { // the last call acknowledges
		synctest.Wait()
		leader.node.Round()
		synctest.Wait()
		err = f.next(ctx)
	}
	if err != nil {
		m.fail("cannot follow: %v", err)
	}
	return f, c.(*conn).id
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("after %v: "+format, append([]any{m.path}, args...)...)
}

// limit has no units given back meanwhile.
func limit() limiter.Rule {
	l, _ := funnel.NewLimit(funnel.Capacity, 1000, 1, 3600)
	return limiter.OfFunnel(l)
}

// charge asks for units, and reports whether they are allowed.
func (h *host) charge(units int64) (used int64, allowed bool) {
	batch := []store.Request{{Key: store.Key{Name: []byte("key")}, Rule: limit(), Quantity: units}}
	h.store.Throttle(h.clock.Now(), batch)
	r := &batch[0]
	return r.Result.Limit - r.Result.Remaining, r.Err == nil && !r.Result.Limited
}

func (h *host) used() int64 {
	used, _ := h.charge(0)
	return used
}

// cut ends the link: what was under way is lost.
func (m *model) cut() {
	m.up, m.isSent, m.inFlight = nil, false, nil
	m.a.node.Detach(m.client)
	m.b.node.linkDown(errCut)
}

// followNew has the old leader follow the new one: with all states exactly if it is beyond the branch, or its
// clock far ahead.
func (m *model) followNew() {
	st, full := m.a.node.Status(), m.b.node.Status().Counts.FullSyncs
	isBeyond := st.Offset > m.b.node.Status().BranchOffset || m.a.clock.Now()-m.b.clock.Now() > int64(mostAhead)
	m.join(m.a, m.b)
	if got := m.b.node.Status().Counts.FullSyncs > full; got != isBeyond {
		m.fail("a takes all states: %t; it is at %d, and the branch at %d", got, st.Offset, m.b.node.Status().BranchOffset)
	}
	if got, want := m.a.used(), m.b.used(); got != want {
		m.fail("a has %d units, and b, which it follows, %d", got, want)
	}
}

// settle does what Run does for a wanted role.
func (m *model) settle() {
	synctest.Wait()
	b := m.b.node
	b.mu.Lock()
	leads := b.role.state == promoted
	b.mu.Unlock()
	if leads {
		b.becomeLeader()
		m.branch = m.applied
		if m.up != nil {
			m.cut()
		}
		if nowNs := m.b.clock.Now(); nowNs < m.seenNs {
			m.fail("b leads at %d, and a was at %d", nowNs, m.seenNs)
		}
	}
	synctest.Wait()
	a := m.a.node
	a.mu.Lock()
	resigns := a.role.isLeader() && !a.role.leads() && !m.a.isDown.Load()
	a.mu.Unlock()
	if resigns {
		a.resign()
		synctest.Wait()
	}
}

// sleep lets time pass, in which servers take the roles that they want.
func (m *model) sleep(d time.Duration) {
	const pause = tick / 8
	for ; d > 0; d -= pause {
		time.Sleep(pause)
		m.settle()
	}
}

// check holds the invariants.
func (m *model) check() {
	m.settle()
	if m.waiting >= 0 {
		select {
		case <-m.waitDone:
			if m.up != nil || m.branch < 0 {
				m.waited = max(m.waited, m.waiting)
			}
		default:
		}
	}
	used := m.b.used()
	switch {
	case used < m.waited:
		m.fail("b has %d units, and WAIT has found %d there", used, m.waited)
	case m.branch < 0 && used != m.applied:
		m.fail("b has %d units, want %d", used, m.applied)
	case m.branch >= 0 && used != m.branch+m.chargedB:
		m.fail("b has %d units, want %d, of which %d are its own", used, m.branch+m.chargedB, m.chargedB)
	case used > m.charged+m.chargedB:
		m.fail("b has %d units, of %d", used, m.charged+m.chargedB)
	}
}
