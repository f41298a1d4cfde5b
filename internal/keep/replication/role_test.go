package replication

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/store/replicas"
)

// part is a server whose role changes, and what the other ones say.
type part struct {
	*host
	replicaLeads atomic.Bool // else it is gone
	followed     int         // servers so far
}

// said is a connection to a server that answers INFO.
type said string

func (s said) Do(context.Context, ...any) (any, error) { return string(s), nil }
func (said) Close() error                              { return nil }

const asker = 2

func newPart(t *testing.T) *part {
	p := &part{host: newHost("a", 0, &model{t: t}, 0)}
	p.node.config.Dial = func(context.Context, replicas.Address) (Conn, error) {
		if p.replicaLeads.Load() {
			return said("role:master\r\n"), nil
		}
		return nil, errCut
	}
	return p
}

// handOver has a replica with everything ask for it.
func (p *part) handOver(within time.Duration) {
	n := p.node
	n.mu.Lock()
	to, offset := replicas.Address{Host: "r", Port: 1}, n.backlog.end
	if !n.role.handsOver() {
		c := replicas.Client{ID: 1, Address: to, Kill: func() {}}
		n.replicas = map[int64]*replica{1: {client: c, online: true, sentTo: offset, activeNs: n.config.Clock.Now()}}
	}
	n.mu.Unlock()
	n.HandOver(replicas.Handover{Client: asker, To: to, History: n.history, Offset: offset, Within: within}, func(int64, []byte, error) {})
}

// now returns the role, and the handover under way.
func (p *part) now() (role, *handover) {
	p.node.mu.Lock()
	defer p.node.mu.Unlock()
	return p.node.role, p.node.handing
}

func (p *part) state() state {
	r, _ := p.now()
	return r.state
}

func (p *part) hands(toOld bool) bool {
	_, h := p.now()
	return h != nil && (h.asker == 0) == toOld
}

// heard sets the link's state, and when the leader was last heard.
func (p *part) heard(link replicas.Link, at time.Time) {
	p.node.mu.Lock()
	defer p.node.mu.Unlock()
	p.node.link, p.node.heard = link, at
}

// cause is something that happens to a server, and the events that it is, by state; else it is none.
type cause struct {
	name string
	do   func(p *part)
	is   map[state]event
}

func causes() []cause {
	lead := func(p *part) { _ = p.node.Lead() }
	all := map[state]event{}
	for s := range states {
		all[s] = onFollow
	}
	return []cause{
		{"Begin or Run lets it lead", func(p *part) { p.node.becomeLeader() }, map[state]event{starting: onReady, promoted: onReady}},
		{"Run ends leading", func(p *part) {
			if !p.hands(true) { // which a round ends
				p.node.resign()
			}
		}, map[state]event{handedOver: onResign, resigning: onResign, draining: onAnswer}},
		{"it is to follow", func(p *part) {
			p.followed++
			p.node.Follow(replicas.Address{Host: "x", Port: p.followed})
		}, all},
		{"it is to lead, without a leader", func(p *part) {
			p.heard(replicas.LinkConnect, time.Time{})
			lead(p)
		}, map[state]event{handedOver: onLead, resigning: onLead, following: onLead}},
		{"it is to lead, and the leader answers", func(p *part) {
			p.heard(replicas.LinkConnected, time.Now())
			lead(p)
		}, map[state]event{handedOver: onLead, resigning: onLead, following: onRequest}},
		{"the leader is silent", func(p *part) {
			if r, _ := p.now(); r.handsOver() { // which time would end
				return
			}
			p.heard(replicas.LinkConnect, time.Time{})
			time.Sleep(2 * replicas.LeastBound)
		}, map[state]event{requesting: onLead}},
		{"the leader cannot be asked", func(p *part) {
			(&second{node: p.node}).takeOver(context.Background())
		}, map[state]event{requesting: onFail}},
		{"a replica is to lead", func(p *part) { p.handOver(time.Minute) }, map[state]event{leading: onHandOver}},
		{"an older replica is to lead", func(p *part) { p.handOver(0) }, map[state]event{leading: onHandOver}},
		{"a round", func(p *part) {
			if !p.hands(true) {
				p.node.Round()
			}
		}, map[state]event{draining: onAnswer}},
		{"the replica takes over", func(p *part) { _, _, _ = p.node.TakeOver(asker, p.node.backlog.end) }, map[state]event{answered: onTakeOver}},
		{"the older replica has everything", func(p *part) {
			if p.hands(true) {
				p.node.Round()
				_ = p.node.Next(1, p.node.backlog.end, func() {})
			}
		}, map[state]event{draining: onTakeOver}},
		{"the replica leads, after the bound", func(p *part) {
			p.replicaLeads.Store(true)
			time.Sleep(time.Minute)
		}, map[state]event{draining: onLate, answered: onLate}},
		{"the replica is gone", func(p *part) {
			p.node.Detach(asker)
			p.node.Detach(1)
		}, map[state]event{draining: onFail, answered: onFail}},
	}
}

// TestTransitions: whatever happens in whatever state, the table has it, and all of the table happens.
func TestTransitions(t *testing.T) {
	type place struct {
		state state
		isOld bool
	}
	seen, paths, queue := map[transition]bool{}, map[place][]int{{}: nil}, []place{{}}
	for ; len(queue) > 0; queue = queue[1:] {
		path := paths[queue[0]]
		for i := range causes() {
			synctest.Test(t, func(t *testing.T) {
				p := newPart(t)
				for _, i := range path {
					causes()[i].do(p)
					synctest.Wait()
				}
				c, was := causes()[i], p.state()
				on, is := c.is[was]
				if was == draining { // an older replica is not answered, and takes over by its link
					is = is && (on != onAnswer || p.hands(false)) && (on != onTakeOver || p.hands(true))
				}
				want := role{state: was}
				if is {
					if !want.take(on) {
						t.Fatalf("%v, then %s: the table does not have it", path, c.name)
					}
					seen[transition{was, on, want.state}] = true
				}
				c.do(p)
				synctest.Wait()
				if got := p.state(); got != want.state {
					t.Fatalf("%v, then %s: from %d to %d, want %d", path, c.name, was, got, want.state)
				}
				p.check(t, fmt.Sprint(path, c.name))
				if to := (place{want.state, p.hands(true)}); paths[to] == nil && to != (place{}) {
					paths[to] = append(slices.Clone(path), i)
					queue = append(queue, to)
				}
				p.node.Follow(replicas.Address{Host: "end", Port: 1}) // what looks for silence ends
				time.Sleep(time.Minute)
			})
		}
	}
	for _, row := range transitions() {
		if !seen[row] {
			t.Errorf("nothing takes %v", row)
		}
	}
}

// check holds what goes with a state.
func (p *part) check(t *testing.T, after string) {
	r, h := p.now()
	st := p.node.Status()
	follows := slices.Contains([]state{handedOver, resigning, following, requesting}, r.state)
	switch {
	case follows != (r.leader != replicas.Address{}), (h != nil) != r.handsOver(), p.gate.Holds() != r.handsOver():
		t.Errorf("%s: it is %+v, handing over %t, clients are held: %t", after, r, h != nil, p.gate.Holds())
	case p.gate.Refusal() == nil && r.state != starting && r.state != leading:
		t.Errorf("%s: in state %d it accepts changes", after, r.state)
	case (st.Role == replicas.Leader) != r.isLeader(), st.HandingOver != (r.handsOver() || r.state == requesting):
		t.Errorf("%s: in state %d it is %+v", after, r.state, st)
	}
}

// TestTableOfTransitions: it says one thing about each event in each state, and nothing else changes a state.
func TestTableOfTransitions(t *testing.T) {
	for from := range states {
		for on := range events {
			rows := slices.DeleteFunc(transitions(), func(t transition) bool { return t.from != from || t.on != on })
			r := role{state: from}
			switch took := r.take(on); {
			case len(rows) > 1:
				t.Errorf("%v", rows)
			case took != (len(rows) == 1), took && r.state != rows[0].to, !took && r.state != from:
				t.Errorf("in state %d event %d leads to %d: %t; the table has %v", from, on, r.state, took, rows)
			}
		}
	}
}
