package replication

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellserver/internal/keep/persist"
	"cellserver/internal/store/replicas"
)

type Beginning struct {
	ReplicaOf replicas.Address // zero to lead
	Peer      replicas.Address // the other server of a pair; zero for none
	PeerWait  time.Duration    // for one that does not answer
	HasStates bool             // of its own, from a data directory
	// LatestNs is the latest time in these states; math.MaxInt64 if they have all that was confirmed.
	LatestNs int64
	Found    persist.Found // in the data directory
}

const (
	// statesWait bounds the wait for a peer that does not answer where there are states.
	statesWait = 5 * time.Second
	peerPoll   = 100 * time.Millisecond
	leastAsk   = 2 * time.Second
)

// Begin sets the role at a start, before clients are served: a peer that leads is followed, and a server
// without states takes those of its peer, so that it never leads with less. The directory's role precedes the
// setting.
func (n *Node) Begin(ctx context.Context, b Beginning) error {
	kept, err := n.loadRole(b.Found)
	if err != nil {
		return err
	}
	if kept == nil {
		kept = &keptRole{leader: b.ReplicaOf}
	} else {
		defer n.keepRoleFirst(roleWait) // the place held for this start only
	}
	n.beginRole(&b, kept)
	lacking := cmp.Or(kept.last, b.ReplicaOf, b.Peer) // the server to follow without states
	if b.ReplicaOf = kept.leader; b.Peer != (replicas.Address{}) {
		n.peer = b.Peer
		if b.ReplicaOf, err = n.meet(ctx, &b); err != nil {
			return err
		}
	}
	if n.isMissing() {
		b.ReplicaOf = cmp.Or(b.ReplicaOf, lacking)
		n.beginWithout(b.ReplicaOf)
	}
	if b.ReplicaOf == (replicas.Address{}) {
		n.becomeLeader()
	} else {
		n.Follow(b.ReplicaOf)
	}
	return nil
}

// beginRole begins with the kept role, which may be written from now on.
func (n *Node) beginRole(b *Beginning, kept *keptRole) {
	if kept.leader != b.ReplicaOf {
		n.config.Log.Info("the role is that of the last change, as kept in the data directory", "leader", kept.leader.String())
	}
	if kept.place.history != "" { // it ended without a fault
		b.LatestNs = math.MaxInt64
	}
	n.locked(func() { n.hasHad = b.HasStates })
	n.file.mu.Lock()
	defer n.file.mu.Unlock()
	n.file.stage = roleKept
}

func (n *Node) isMissing() bool { return read(n, func() bool { return n.missing }) }

// Other is what another server says of itself in INFO.
type Other struct {
	RunID    string
	Loading  bool
	starting int32 // in Begin
	Role     replicas.Role
	Leader   replicas.Address // of a replica
	LinkUp   bool
	LatestNs int64 // the latest time that it has heard of its leader
	History  string
	Parent   string
	Offset   int64

	isMissing bool // has not found its states
}

func (n *Node) Ask(ctx context.Context, to replicas.Address) (o Other, err error) {
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	c, err := n.config.Dial(ctx, to)
	if err != nil {
		return o, err
	}
	defer c.Close() //nolint:errcheck // nothing was written
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	reply, err := c.Do(ctx, "INFO", "server", "persistence", "replication")
	text, _ := reply.(string)
	o.read(text)
	return o, err
}

func (o *Other) read(info string) {
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch name {
		case "run_id":
			o.RunID = value
		case "loading":
			o.Loading = value == "1"
		case "cell_starting":
			o.starting = int32(slices.Index(startingWords(), value))
		case "role":
			if o.Role = replicas.Leader; value == "slave" {
				o.Role = replicas.Replica
			}
		case "master_host":
			if replicas.CheckHost(value) == nil {
				o.Leader.Host = value
			}
		case "master_port":
			port, _ := strconv.ParseUint(value, 10, 16)
			o.Leader.Port = int(port)
		case "cell_latest_usec":
			us, _ := strconv.ParseInt(value, 10, 64)
			o.LatestNs = us * int64(time.Microsecond)
		case "cell_states_kept":
			o.isMissing = value == replicas.Missing.String()
		case "master_link_status":
			o.LinkUp = value == "up"
		case "master_replid":
			o.History = value
		case "master_replid2":
			if o.Parent = value; strings.Trim(value, "0") == "" { // of none
				o.Parent = ""
			}
		case "master_repl_offset":
			o.Offset, _ = strconv.ParseInt(value, 10, 64)
		}
	}
}

// startingWords are INFO's words for a server in Begin, in the order in which one is to lead before another.
func startingWords() []string {
	return []string{"no", "lost_states", "without_states", "replica_with_states", "with_states"}
}

const (
	notStarting = iota
	lostStates
	withoutStates
	replicaWithStates
	withStates
)

// startingOf returns this server's place in that order.
func (n *Node) startingOf(b *Beginning) int32 {
	switch {
	case n.isMissing():
		return lostStates
	case !b.HasStates:
		return withoutStates
	case b.ReplicaOf != (replicas.Address{}):
		return replicaWithStates
	}
	return withStates
}

func (n *Node) Starting() string { return startingWords()[n.starting.Load()] }

// meet asks the peer whom to follow.
func (n *Node) meet(ctx context.Context, b *Beginning) (leader replicas.Address, err error) {
	n.starting.Store(n.startingOf(b))
	defer n.starting.Store(notStarting)
	silentNs, wait := n.config.Clock.Now(), b.PeerWait
	if b.HasStates {
		wait = min(wait, statesWait)
	}
	for said := false; ; said = true {
		within, cancel := context.WithTimeout(ctx, max(wait, leastAsk))
		other, err := n.Ask(within, b.Peer)
		cancel()
		switch {
		case ctx.Err() != nil:
			return leader, ctx.Err()
		case err != nil && n.config.Clock.Now()-silentNs >= int64(wait):
			n.config.Log.Warn("the peer does not answer; this server starts without it", "peer", b.Peer.String(), "error", err)
			return b.ReplicaOf, nil
		case err != nil:
		case other.RunID == n.config.RunID:
			return leader, errors.New("--peer is this server itself; give the address of the other one")
		default:
			silentNs = n.config.Clock.Now()
			if decided, leader, err := n.decide(ctx, b, &other); decided || err != nil {
				return leader, err
			}
		}
		if !said {
			n.config.Log.Info("waiting for the peer", "peer", b.Peer.String())
		}
		pause(ctx, peerPoll)
	}
}

// decide decides by what the peer says, if it can now.
func (n *Node) decide(ctx context.Context, b *Beginning, other *Other) (decided bool, leader replicas.Address, err error) {
	switch {
	case other.starting != notStarting: // of equals, the one whose run id is first leads
		mine := n.startingOf(b)
		if mine == lostStates && other.starting == lostStates { // neither leads
			return true, b.Peer, nil
		}
		return mine > other.starting || mine == other.starting && n.config.RunID < other.RunID, replicas.Address{}, nil
	case other.Loading:
		return false, leader, nil
	case other.isMissing && n.isMissing(): // neither leads
		return true, b.Peer, nil
	case other.isMissing: // it leads nobody, and has nothing to give
		return true, b.ReplicaOf, nil
	case other.Role == replicas.Leader:
		return true, b.Peer, nil
	case other.LinkUp && other.Leader.Host != "" && other.Leader.Port != 0:
		leader, err := n.Ask(ctx, other.Leader)
		stale := err == nil && leader.RunID == n.config.RunID // the link to this server before it was started again
		return !stale, other.Leader, nil
	case b.HasStates && !n.isMissing() && other.LatestNs <= b.LatestNs: // else a crash has lost more here than the peer lacks
		return true, b.ReplicaOf, nil
	}
	err = n.takeStates(ctx, b.Peer)
	if errors.Is(err, errEmptyLeader) {
		return true, b.ReplicaOf, nil
	}
	if err != nil {
		n.config.Log.Warn("cannot take the peer's states; trying again", "peer", b.Peer.String(), "error", err)
		return false, leader, ctx.Err()
	}
	return true, b.ReplicaOf, nil
}

// takeStates takes all states of a server, and begins a history that goes on from them.
func (n *Node) takeStates(ctx context.Context, from replicas.Address) error {
	c, err := n.connect(ctx, from)
	if err != nil {
		return err
	}
	defer c.Close()                    //nolint:errcheck // nothing was written
	n.locked(func() { n.last = from }) // ROLE has it, before this server leads
	f, err := n.start(ctx, c, true)
	for err == nil && f.beside != nil {
		err = f.next(ctx)
	}
	n.mu.Lock()
	defer n.unlock()
	n.complete = true
	if err != nil {
		return err
	}
	n.link = replicas.LinkConnect
	n.config.Clock.NotBefore(n.latestNs)
	n.parent, n.branch, n.history = n.history, n.backlog.end, newHistory()
	n.config.Log.Info("this server has taken its peer's states", "peer", from.String())
	return nil
}
