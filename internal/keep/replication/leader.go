package replication

import (
	"context"
	"slices"
	"time"

	"cellserver/internal/keep/changes"
	"cellserver/internal/store/gate"
	"cellserver/internal/store/replicas"
)

const (
	leastInterval = 10 * time.Millisecond
	mostInterval  = 100 * time.Millisecond
	// roundShare: the pause after a round is as many times its duration.
	roundShare = 20
	// replicaTimeout ends a replica that asks for nothing.
	replicaTimeout = 60 * time.Second
	// mostWaiting bounds the bytes of changes that wait for a round.
	mostWaiting = 256 << 20
)

// lead gathers rounds for replicas until ctx ends.
func (n *Node) lead(ctx context.Context) {
	if !n.becomeLeader() {
		return
	}
	timer := time.NewTimer(leastInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			n.resign()
			return
		case <-n.kicked:
		case <-timer.C:
		}
		timer.Reset(n.Round())
	}
}

// becomeLeader makes the server ready for changes, and reports whether it still is to lead.
func (n *Node) becomeLeader() bool {
	isPromoted := read(n, func() bool { return n.role.state == promoted })
	if isPromoted {
		n.keepRoleFirst(changeWait) // a start after a crash must not find one that follows
	}
	n.mu.Lock()
	isReady := n.role.take(onReady)
	if isReady && isPromoted {
		n.parent, n.branch, n.history = n.history, n.backlog.end, newHistory()
		n.counts.Promotions++
		n.config.Clock.NotBefore(n.latestNs)
		n.link, n.complete, n.leader, n.gave = replicas.LinkConnect, true, replicas.Address{}, false
	}
	leads, isBranch, differing := n.role.leads(), n.parent != "", n.differing
	n.unlock()
	if !leads {
		return false
	}
	if isBranch { // a replica may know the place, and go on from it
		n.beginStream()
	}
	n.mu.Lock()
	n.checkReplicasLocked()
	if n.role.state == leading && !n.missing { // else it follows next, hands over or leads nobody
		n.config.Gate.Open(gate.Replica)
	}
	n.unlock()
	if isPromoted {
		n.config.Log.Info("this server leads now")
		if len(differing) > 0 {
			n.config.Log.Warn("this server decides by its own named limits, which were not those of its leader", "limits", replicas.SomeNames(differing))
		}
	}
	return true
}

// beginStream starts recording a leader's changes for replicas.
func (n *Node) beginStream() {
	n.streaming.Lock()
	defer n.streaming.Unlock()
	if !read(n, func() bool { return n.feed == nil && n.role.leads() }) {
		return
	}
	feed := n.config.Changes.NewFeed(n.kick, mostWaiting)
	n.config.Definitions.Record(true)
	n.locked(func() { n.feed = feed })
}

func (n *Node) endStream() {
	n.streaming.Lock()
	defer n.streaming.Unlock()
	n.mu.Lock()
	feed := n.feed
	n.feed = nil
	n.unlock()
	if feed != nil {
		feed.Close()
		n.config.Definitions.Record(false)
	}
}

// resign ends leading, with everything that has changed in the stream.
func (n *Node) resign() {
	if hasEverything := read(n, func() bool { return n.role.state == handedOver }); !hasEverything {
		n.Round()
	}
	isOver := false
	if n.locked(func() { isOver = n.role.take(onResign) }); !isOver { // the server ends, or leads on
		return
	}
	n.endStream()
	n.mu.Lock()
	defer n.unlock()
	for _, r := range n.replicas {
		n.detachLocked(r)
		r.client.Kill()
	}
	n.stopLeaseLocked()
	n.config.Gate.Open(gate.TooFew)
	for w := range n.waiters {
		if w.only == nil { // else its handover ends it
			n.endWaitLocked(w)
		}
	}
	n.counts.Demotions++
}

// Round gathers the changes up to now, and returns the time until the next round. Calls must not overlap.
func (n *Node) Round() (pause time.Duration) {
	beganNs := n.config.Clock.Now()
	n.mu.Lock()
	feed, waits := n.feed, make([]*waiter, 0, len(n.waiters))
	for w := range n.waiters {
		if w.target < 0 {
			waits = append(waits, w)
		}
	}
	mustHave := len(waits) > 0 || n.role.leader != (replicas.Address{}) // all definitions, however slow the disk is
	n.unlock()
	var frames [][]byte
	complete := true
	if feed != nil {
		for _, text := range n.config.Definitions.TakeRecorded(mustHave) {
			frames = append(frames, appendFrame(nil, flagDefinitions, beganNs, text))
		}
		complete, _ = feed.Round(func(p changes.Piece) error { // which does not fail
			frames = append(frames, appendFrame(nil, 0, p.ClockNs, p.Records))
			return nil
		})
	}
	if len(frames) > 0 {
		frames[len(frames)-1][4] |= flagEnd
	}
	n.mu.Lock()
	defer n.unlock()
	if !complete {
		n.counts.Incomplete++
		n.config.Log.Warn("all keys were replaced, or more were deleted at once than are listed one by one; replicas take all states again", "replicas", len(n.replicas))
		n.backlog.add(frames)
		n.backlog.reset(n.backlog.end + 1) // an offset that nobody has
	} else {
		n.backlog.add(frames)
	}
	n.tendReplicasLocked(len(frames) > 0 || !complete)
	for _, w := range waits {
		w.target = n.backlog.end
	}
	n.checkWaitersLocked()
	return n.pauseLocked(time.Duration(n.config.Clock.Now()-beganNs), len(frames) > 0)
}

// pauseLocked adapts the interval: longer without changes, and where a round takes long.
func (n *Node) pauseLocked(took time.Duration, changed bool) time.Duration {
	switch {
	case n.feed == nil:
		return time.Second
	case changed:
		n.interval = min(max(leastInterval, roundShare*took), mostInterval)
	default:
		n.interval = min(max(leastInterval, 2*n.interval), mostInterval)
	}
	return n.interval
}

// tendReplicasLocked wakes replicas for new frames, and ends those that are too slow or silent.
func (n *Node) tendReplicasLocked(changed bool) {
	nowNs := n.config.Clock.Now()
	for _, r := range n.replicas {
		switch behind := n.backlog.end - r.sentTo; {
		case r.sync == nil && !n.backlog.covers(r.sentTo):
			n.evictLocked(r, "a replica is further behind than --repl-backlog, and has to take all states again")
		case nowNs-r.activeNs > int64(replicaTimeout):
			n.evictLocked(r, "a replica has asked for nothing in a minute; its connection is closed")
		case r.sync == nil && behind > n.settings.Backlog/2 && !r.warned:
			r.warned = true
			n.config.Log.Warn("a replica is slow: half of --repl-backlog waits for it", "replica", r.client.Address.String(), "bytes", behind)
		case changed:
			r.wake()
		}
	}
}

func (n *Node) evictLocked(r *replica, why string) {
	n.counts.Evicted++
	n.config.Log.Warn(why, "replica", r.client.Address.String(), "offset", r.sentTo, "behind", n.backlog.end-r.sentTo)
	n.detachLocked(r)
	r.client.Kill()
}

// checkReplicasLocked refuses changes from the time on at which too few replicas have acknowledged lately.
func (n *Node) checkReplicasLocked() {
	n.stopLeaseLocked()
	if !n.role.isLeader() || n.settings.MinReplicas == 0 {
		n.config.Gate.Open(gate.TooFew)
		return
	}
	acks := make([]int64, 0, len(n.replicas))
	for _, r := range n.replicas {
		if r.online {
			acks = append(acks, r.ackNs)
		}
	}
	slices.Sort(acks)
	fromNs := int64(0)
	if len(acks) >= n.settings.MinReplicas {
		fromNs = acks[len(acks)-n.settings.MinReplicas] + int64(n.settings.MaxLag)
	}
	nowNs := n.config.Clock.Now()
	if fromNs <= nowNs {
		if n.config.Gate.Close(gate.TooFew, 0, noReplicas) {
			n.counts.RefusedWithout++
			n.config.Log.Warn("changes are refused: fewer replicas than --min-replicas-to-write have acknowledged in --min-replicas-max-lag",
				"good", min(len(acks), n.settings.MinReplicas-1), "wanted", n.settings.MinReplicas)
		}
		return
	}
	n.config.Gate.Close(gate.TooFew, fromNs, noReplicas)
	n.lease = time.AfterFunc(time.Duration(fromNs-nowNs), func() { // scripts are held to the time of their beginning
		n.locked(n.checkReplicasLocked)
	})
}

func (n *Node) stopLeaseLocked() {
	if n.lease != nil {
		n.lease.Stop()
	}
}

// waiter waits until replicas have what was changed before it came.
type waiter struct {
	target   int64 // offset; negative before the round that has the changes
	replicas int
	only     *replica // whose acknowledgement counts; nil for all
	done     func()
}

func (n *Node) Wait(count int, done func()) (acknowledged func() int) {
	w := &waiter{target: -1, replicas: count, done: done}
	n.mu.Lock()
	defer n.unlock()
	n.waiters[w] = struct{}{}
	if !n.role.isLeader() {
		n.endWaitLocked(w)
	}
	n.kick()
	return func() int {
		n.mu.Lock()
		defer n.unlock()
		delete(n.waiters, w)
		return n.acknowledgedLocked(w)
	}
}

func (n *Node) acknowledgedLocked(w *waiter) (count int) {
	if w.target < 0 {
		return 0
	}
	for _, r := range n.replicas {
		if r.online && r.acked >= w.target && (w.only == nil || w.only == r) {
			count++
		}
	}
	return count
}

func (n *Node) checkWaitersLocked() {
	for w := range n.waiters {
		if w.target >= 0 && n.acknowledgedLocked(w) >= w.replicas {
			n.endWaitLocked(w)
		}
	}
}

func (n *Node) endWaitLocked(w *waiter) {
	delete(n.waiters, w)
	go w.done()
}
