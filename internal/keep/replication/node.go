// Package replication has a server follow another one: the leader's changes go to replicas in rounds, after
// all of its states, and a replica answers looks until it is promoted. It is asynchronous, and elects nobody.
// A Node is safe for concurrent use.
package replication

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/keep/changes"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/shard"
	"cellserver/internal/store/gate"
	"cellserver/internal/store/replicas"
)

type Clock interface {
	Now() int64
	// SetTo sets the clock to a leader's time, also back.
	SetTo(ns int64)
	// NotBefore sets the clock forward.
	NotBefore(ns int64) (offsetNs int64)
}

// Definitions are texts beside keys, which replicas have to apply in their order.
type Definitions interface {
	// Record starts recording changes, the first of which is everything, or stops it.
	Record(on bool)
	// TakeRecorded returns the changes since its last call. It skips one that is being written, unless wait
	// is set.
	TakeRecorded(wait bool) [][]byte
	Everything() [][]byte
	// Digests returns digests of all in force, by commands and by this server's file.
	Digests() replicas.Definitions
	// Apply applies a text, in memory whatever becomes of the error.
	Apply(text []byte) error
}

// Settings can change while the server runs.
type Settings struct {
	Priority    int           // for promotion; 0 for never
	MinReplicas int           // to accept changes
	MaxLag      time.Duration // of a replica that counts
	Backlog     int64         // bytes
}

type Config struct {
	Store       *shard.Store
	Changes     *changes.Gatherer // of the store
	Gate        *gate.Gate        // of the store
	Clock       Clock
	Definitions Definitions
	Dial        Dial
	Announce    replicas.Address // where others reach this server; a zero host is the connection's
	Dir         disk.Dir         // keeps the role; nil for none
	Disk        Disk             // of the store, in Dir; nil for none
	KillClients func()           // closes the connections of clients
	EndTurns    func()           // ends waiting clients' turns and returns their charges
	RunID       string
	Settings    Settings
	Log         *slog.Logger
}

// Node is a server's part in replication.
type Node struct {
	config Config
	kicked chan struct{} // a round is wanted

	file      roleFile
	unkept    atomic.Bool  // definitions of the leader are not in the data directory
	streaming sync.Mutex   // rank 20: held while recording begins or ends
	applying  sync.Mutex   // rank 20: held while a replica applies a round and adds it to the backlog
	starting  atomic.Int32 // see startingWords
	published atomic.Pointer[published]

	mu       sync.Mutex // rank 30: guards all below
	settings Settings
	role     role
	endRole  context.CancelFunc // ends what Run does for the role
	history  string
	parent   string
	branch   int64
	backlog  backlog // its end is the offset
	latestNs int64   // latest time of a leader's clock

	// Of a leader:
	feed     *changes.Feed // nil before the first replica
	replicas map[int64]*replica
	waiters  map[*waiter]struct{}
	handing  *handover // while it is draining or answered
	interval time.Duration
	lease    *time.Timer // ends when too few replicas are good

	// Of a replica:
	link       replicas.Link
	linkErr    error
	downNs     int64 // when the link went down; 0 while it is up
	lastIONs   int64
	lastFullNs int64 // when this replica last had everything
	syncBytes  int64
	leader     replicas.Address
	complete   bool             // has all states of some time
	last       replicas.Address // whom this server has followed latest
	missing    bool             // the directory lacks the states that ROLE names
	replacing  bool             // the states are about to be replaced
	hasHad     bool             // states of an earlier process or of another server, or leads without by an operator's word
	counts     replicas.Counts
	requested  chan struct{} // wakes the second connection for it
	refusal    error         // of the last one
	trips      trips         // of the link
	heard      time.Time     // when the leader last answered as leader, or was first asked; zero for never
	isAsked    bool          // it has not answered since
	attempts   attempts      // to follow the leader
	differing  []string      // definitions that are not as the leader's

	// Of a pair:
	peer      replicas.Address // zero for none
	peerLeads bool             // with states of another origin
	doubted   replicas.Address // of a replica whose planned change has failed
	gave      bool             // has handed over, and followed nobody since
}

// New returns the Node of a server that leads, until Run.
func New(c Config) *Node {
	n := &Node{
		config: c, settings: c.Settings, kicked: make(chan struct{}, 1), history: newHistory(), branch: -1, complete: true,
		replicas: map[int64]*replica{}, waiters: map[*waiter]struct{}{}, requested: make(chan struct{}, 1),
	}
	n.backlog.max = max(c.Settings.Backlog, 1)
	n.publishLocked()
	return n
}

// Run does what the role is until ctx ends.
func (n *Node) Run(ctx context.Context) {
	go n.watchOthers(ctx)
	for ctx.Err() == nil {
		ctx, end := context.WithCancel(ctx)
		n.mu.Lock()
		n.endRole = end
		r := n.role
		n.unlock()
		switch {
		case r.leader == (replicas.Address{}):
			n.lead(ctx)
		case r.isLeader():
			n.resign()
		default:
			n.follow(ctx, r.leader)
		}
		end()
	}
}

func (n *Node) Follow(leader replicas.Address) {
	n.mu.Lock()
	if n.role.leader == leader {
		n.unlock()
		return
	}
	n.orderLocked(onFollow, leader)
	n.unlock()
	n.config.Log.Info("this server follows another one", "leader", leader.String())
	n.KeepRole()
}

// orderLocked takes an event that has the server follow another one, or lead, for a zero address. It ends
// what Run does.
func (n *Node) orderLocked(e event, leader replicas.Address) {
	if h := n.handing; h != nil {
		release := h.detachLocked()
		go func() {
			release(replicas.ErrReplicaGone)
			n.config.KillClients()
		}()
	}
	n.role.take(e)
	n.role.leader, n.role.number = leader, n.role.number+1
	if leader != (replicas.Address{}) {
		n.last = leader
		n.config.Gate.Close(gate.Replica, 0, n.readOnlyLocked(leader))
	}
	if n.endRole != nil {
		n.endRole()
	}
}

func (n *Node) Lead() error {
	n.mu.Lock()
	defer n.unlock()
	switch isSilent := n.isSilentLocked(); {
	case n.role.state == requesting:
	case n.role.leader == (replicas.Address{}):
		n.acceptLocked()
	case n.role.isLeader() || isSilent && !n.isAsked:
		n.leadLocked()
	case !isSilent && n.trips.longest() > replicas.MostRoundTrip:
		n.refusal = replicas.SlowLinkError{RoundTrip: n.trips.longest()}
		n.counts.HandoverFailures++
		return n.refusal
	default:
		n.role.take(onRequest)
		n.leadOnceSilentLocked(n.role.number, isSilent)
		select {
		case n.requested <- struct{}{}:
		default:
		}
	}
	return nil
}

func (n *Node) leadLocked() {
	n.acceptLocked()
	n.refusal = nil
	n.orderLocked(onLead, replicas.Address{})
	n.KeepRole()
}

// leadOnceSilentLocked has a server that is to lead do so once its leader is silent, as after a crash. A
// leader that is asked has to be so at two looks: its answer may be unread, if this process has stood still.
func (n *Node) leadOnceSilentLocked(number int, wasSilent bool) {
	time.AfterFunc(max(leastRetry, replicas.Bound(n.trips.longest())-time.Since(n.heard)), func() {
		n.mu.Lock()
		defer n.unlock()
		switch isSilent := n.isSilentLocked(); {
		case n.role.state != requesting || n.role.number != number:
		case !isSilent || n.isAsked && !wasSilent:
			n.leadOnceSilentLocked(number, isSilent)
		default:
			n.counts.HandoverTimeouts++
			n.config.Log.Warn("the leader is silent, and has not handed over; this server takes over, as after a crash", "leader", n.leader.String())
			n.leadLocked()
		}
	})
}

// isSilentLocked reports whether the leader has not answered for the bound. One that is connected and not
// asked, while this server applies what it has sent, is not silent.
func (n *Node) isSilentLocked() bool {
	return (n.isAsked || n.link < replicas.LinkSync) && time.Since(n.heard) >= replicas.Bound(n.trips.longest())
}

const noReplicas gate.Refusal = "NOREPLICAS Not enough good replicas to write."

func (n *Node) locked(do func()) {
	n.mu.Lock()
	defer n.unlock()
	do()
}

func read[T any](n *Node, what func() T) T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return what()
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// kick has the leader begin a round at once.
func (n *Node) kick() {
	select {
	case n.kicked <- struct{}{}:
	default:
	}
}

func (n *Node) Change(change func(s *Settings)) {
	n.mu.Lock()
	defer n.unlock()
	change(&n.settings)
	n.backlog.max = max(n.settings.Backlog, 1)
	n.backlog.add(nil)
	n.checkReplicasLocked()
	n.kick()
}

// published is what Status needs. EXEC asks for it while it holds keys, for which the Gate waits under the
// Node's lock, so that Status must not.
type published struct {
	settings           Settings
	status             replicas.Status // without what depends on the time and on the disk
	replicas           []replicaAt
	lastFullNs         int64
	missing, replacing bool
	complete           bool
}

type replicaAt struct {
	replicas.ReplicaStatus
	ackNs  int64
	online bool
}

// unlock unlocks the Node, and publishes its state before.
func (n *Node) unlock() {
	n.publishLocked()
	n.mu.Unlock()
}

func (n *Node) publishLocked() {
	p := &published{settings: n.settings, lastFullNs: n.lastFullNs, missing: n.missing, replacing: n.replacing, complete: n.complete}
	st := &p.status
	*st = replicas.Status{
		Role: replicas.Replica, History: n.history, Parent: n.parent, BranchOffset: n.branch, Offset: n.backlog.end,
		Backlog: n.backlog.bytes, MaxBacklog: n.settings.Backlog, Priority: n.settings.Priority,
		MinReplicas: n.settings.MinReplicas, MaxLagNs: int64(n.settings.MaxLag), HandingOver: n.role.handsOver() || n.role.state == requesting,
		HandoverError: n.refusal, RoundTrip: n.trips.longest(), PeerLeads: n.peerLeads, Counts: n.counts,
	}
	if n.role.isLeader() {
		st.Role, st.RoundTrip = replicas.Leader, n.slowestLocked()
		for _, id := range slices.Sorted(maps.Keys(n.replicas)) { // by age
			r := n.replicas[id]
			p.replicas = append(p.replicas, replicaAt{replicas.ReplicaStatus{
				Address: r.client.Address, State: r.state(), Offset: r.acked, LagBytes: n.backlog.end - r.acked, ClientID: id,
			}, r.ackNs, r.online})
		}
	} else {
		st.Leader, st.Link, st.LinkDownSinceNs, st.LastIONs = n.leader, n.link, n.downNs, n.lastIONs
		st.SyncBytes, st.LinkError, st.LatestNs, st.Differing = n.syncBytes, n.linkErr, n.latestNs, n.differing
	}
	n.published.Store(p)
}

func (n *Node) Settings() Settings { return n.published.Load().settings }

func (n *Node) Status() replicas.Status {
	p := n.published.Load()
	st, nowNs := p.status, n.config.Clock.Now()
	st.Kept = n.statusOfKept(p.missing, p.replacing)
	if st.Role == replicas.Leader {
		for _, r := range p.replicas {
			if r.LagNs = max(0, nowNs-r.ackNs); r.online && r.LagNs <= st.MaxLagNs {
				st.Good++
			}
			st.Replicas = append(st.Replicas, r.ReplicaStatus)
		}
		return st
	}
	if st.LagNs = math.MaxInt64; p.lastFullNs > 0 {
		st.LagNs = max(0, nowNs-p.lastFullNs)
	}
	if !p.complete || st.Kept == replicas.KeptLater || st.Kept == replicas.Missing {
		st.Priority = 0
	}
	return st
}
