package replication

import (
	"time"

	"cellserver/internal/store/replicas"
)

type replica struct {
	client   replicas.Client
	sync     *fullSync // under way, or nil
	online   bool      // has everything up to acked
	goesOn   bool      // without a full sync; it may not have asked since its start
	warned   bool
	sentTo   int64
	acked    int64
	tookNs   int64 // when it was last answered
	ackNs    int64 // when the answer before the last acknowledgement was given
	activeNs int64 // when it last asked
	ready    func()
	taken    []byte // the last answer, which the next one overwrites

	roundTrip time.Duration // as it says; 0 before
}

func (r *replica) state() string {
	switch {
	case r.online || r.goesOn:
		return "online"
	case r.sync != nil && !r.sync.begun.Load():
		return "wait_bgsave"
	}
	return "send_bulk"
}

func (r *replica) wake() {
	if r.ready != nil {
		r.ready()
		r.ready = nil
	}
}

func (n *Node) Attach(c replicas.Client, reads int, history string, offset int64, takes bool) (replicas.Start, error) {
	if reads < Format {
		return replicas.Start{}, replicas.FormatError{Format: Format, Reads: reads}
	}
	if !takes {
		n.beginStream()
	}
	n.mu.Lock()
	defer n.unlock()
	switch {
	case !takes && n.role.handsOver() && !n.missing:
		return replicas.Start{}, replicas.ErrHandingOver
	case takes && (n.role.isLeader() || !n.complete || n.missing):
		return replicas.Start{}, replicas.ErrNotGiven
	case !takes && (!n.role.leads() || n.missing):
		return replicas.Start{}, replicas.ErrNotLeader
	}
	if c.Address == n.doubted {
		n.doubted = replicas.Address{}
	}
	r, start := n.attachLocked(&c)
	start.Format = Format
	if !takes && n.goesOnLocked(history, offset) {
		start.Offset, r.sentTo, r.acked, r.goesOn = offset, offset, offset, true
		n.counts.PartialSyncs++
		n.config.Log.Info("a replica goes on", "replica", c.Address.String(), "offset", offset, "behind", n.backlog.end-offset)
		return start, nil
	}
	start.Full = true
	n.counts.FullSyncs++
	n.beginSyncLocked(r)
	n.config.Log.Info("a replica takes all states", "replica", c.Address.String(), "offset", start.Offset, "because", n.reasonLocked(history, offset))
	return start, nil
}

// attachLocked adds a replica, and returns what it is answered at least.
func (n *Node) attachLocked(c *replicas.Client) (*replica, replicas.Start) {
	if before := n.replicas[c.ID]; before != nil {
		n.detachLocked(before)
	}
	nowNs := n.config.Clock.Now()
	r := &replica{client: *c, activeNs: nowNs, tookNs: nowNs, ackNs: nowNs, sentTo: n.backlog.end}
	n.replicas[c.ID] = r
	return r, replicas.Start{
		HasHad: n.hasHad || n.config.Store.Touched(), History: n.history, Parent: n.parent, Branch: n.branch, Offset: n.backlog.end, ClockNs: max(nowNs, n.latestNs),
	}
}

// goesOnLocked reports whether a replica with a history up to an offset needs only the stream.
func (n *Node) goesOnLocked(history string, offset int64) bool {
	same := history == n.history || n.parent != "" && history == n.parent && offset <= n.branch
	return same && n.backlog.has(offset)
}

func (n *Node) reasonLocked(history string, offset int64) string {
	switch {
	case history != n.history && history != n.parent:
		return "its history is another one"
	case offset > n.backlog.end || history == n.parent && offset > n.branch:
		return "it is beyond this history"
	}
	return "the backlog begins later"
}

func (n *Node) Detach(client int64) {
	n.mu.Lock()
	defer n.unlock()
	if r := n.replicas[client]; r != nil {
		n.detachLocked(r)
	}
	if n.handing != nil && n.handing.asker == client {
		n.handing.gone()
	}
}

func (n *Node) detachLocked(r *replica) {
	if r.sync != nil {
		r.sync.end()
	}
	delete(n.replicas, r.client.ID)
	r.wake()
	if n.role.isLeader() {
		n.checkReplicasLocked()
	}
	if n.handing != nil && n.handing.to == r && n.handing.asker == 0 {
		n.handing.gone()
	}
}

func (n *Node) Next(client, applied int64, ready func()) error {
	n.mu.Lock()
	defer n.unlock()
	r := n.replicas[client]
	if r == nil {
		return replicas.ErrNotSynced
	}
	r.activeNs = n.config.Clock.Now()
	if applied < 0 { // it does not have the states on its disk yet
		r.goesOn = false
	}
	if applied >= 0 && r.sync == nil {
		if applied > r.sentTo && !n.backlog.has(applied) { // a planned change sends by another connection, too
			return replicas.ErrBeyond
		}
		if !r.online && !r.goesOn {
			n.config.Log.Info("a replica has all states", "replica", r.client.Address.String(), "offset", applied)
		}
		// An acknowledgement may have waited while this server was stopped, and its replica may lead since.
		// The replica surely followed only when it was last answered.
		r.acked, r.ackNs, r.online = applied, r.tookNs, true
		n.checkReplicasLocked()
		n.checkWaitersLocked()
	}
	r.ready = ready
	if r.sync != nil && len(r.sync.chunks) > 0 || r.sync == nil && r.sentTo != n.backlog.end {
		r.wake()
	}
	return nil
}

// takeBytes is the size of an answer to a replica, approximately.
const takeBytes = 512 << 10

func (n *Node) Take(client int64) (clockNs int64, frames []byte, err error) {
	n.mu.Lock()
	defer n.unlock()
	r := n.replicas[client]
	switch {
	case r == nil && !n.role.isLeader():
		return 0, nil, replicas.ErrNotLeader
	case r == nil:
		return 0, nil, replicas.ErrBehind // it was evicted
	}
	r.ready = nil
	clockNs = n.config.Clock.Now()
	r.tookNs = clockNs
	if r.sync != nil {
		frames, err = n.takeSyncLocked(r)
		return clockNs, frames, err
	}
	if !n.backlog.covers(r.sentTo) {
		return 0, nil, replicas.ErrBehind
	}
	r.taken, r.sentTo = n.backlog.from(r.taken[:0], r.sentTo, takeBytes)
	return clockNs, r.taken, nil
}

func (n *Node) takeSyncLocked(r *replica) (frames []byte, err error) {
	defer func() { r.taken = frames }()
	for frames = r.taken[:0]; len(frames) < takeBytes; {
		select {
		case chunk, more := <-r.sync.chunks:
			if more {
				frames = append(frames, chunk...)
				r.sync.reuse(chunk)
				continue
			}
			err, r.sentTo = r.sync.err, r.sync.offset
			r.sync = nil
			if n.replicas[r.client.ID] == r {
				n.checkReplicasLocked()
			}
		default:
		}
		break
	}
	return frames, err
}
