package replication

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/keep/changes"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

const (
	// chunkBytes is the size of a part of a full sync.
	chunkBytes = 128 << 10
	// mostRest bounds a rest beside a slow replica.
	mostRest = 5 * time.Millisecond
	// chunksAhead are read before the replica asks for them.
	chunksAhead = 8
)

// fullSync reads all states for a replica, on a goroutine that waits while the replica is slow. Before it
// reads on, it sends the stream up to then: no change is sent before an older state of its key.
type fullSync struct {
	chunks chan []byte
	begun  atomic.Bool
	free   sync.Pool // of chunks that were sent
	end    context.CancelFunc
	// set before chunks is closed:
	offset int64
	err    error
}

func (s *fullSync) reuse(chunk []byte) { s.free.Put(&chunk) }

func (s *fullSync) buffer() []byte {
	if b, ok := s.free.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return nil
}

func (n *Node) beginSyncLocked(r *replica) {
	ctx, end := context.WithCancel(context.Background())
	s := &fullSync{chunks: make(chan []byte, chunksAhead), end: end, offset: r.sentTo}
	r.sync = s
	go func() {
		defer end()
		s.err = n.readAll(ctx, r, s)
		close(s.chunks)
		n.locked(r.wake)
	}()
}

// readAll sends all states and the stream meanwhile.
func (n *Node) readAll(ctx context.Context, r *replica, s *fullSync) error {
	send := func(chunk []byte) {
		select {
		case s.chunks <- chunk:
			s.begun.Store(true)
			n.locked(r.wake)
		case <-ctx.Done():
		}
	}
	clock := n.config.Clock
	for _, text := range n.config.Definitions.Everything() {
		send(appendFrame(nil, flagState|flagDefinitions, clock.Now(), text))
	}
	if err := n.sendStates(ctx, s, send); err != nil {
		return err
	}
	if err := n.awaitRound(ctx); err != nil {
		return err
	}
	if err := n.sendStream(s, send); err != nil {
		return err
	}
	send(appendFrame(nil, flagState|flagComplete, clock.Now(), nil))
	return ctx.Err()
}

// sendStates sends all states, and the stream up to each part of them behind it.
func (n *Node) sendStates(ctx context.Context, s *fullSync, send func(chunk []byte)) error {
	records := make([]byte, 0, chunkBytes)
	flush := func() {
		if len(records) > 0 {
			send(appendFrame(s.buffer(), flagState, n.config.Clock.Now(), records))
			records = records[:0]
		}
	}
	var behind error
	rested := time.Now()
	beganNs := n.config.Clock.Now()
	walk, stop := context.WithCancel(ctx)
	defer stop()
	n.config.Store.States(walk, beganNs, func(c store.Change) {
		changes.Expire(&c, n.config.Clock.Now)
		records = changes.Append(records, beganNs, &c)
	}, func() {
		if len(records) < chunkBytes {
			return
		}
		flush()
		if behind = n.sendStream(s, send); behind != nil {
			stop()
		}
		time.Sleep(min(time.Since(rested), mostRest)) // as long as it worked: half of a processor is for clients
		rested = time.Now()
	})
	if behind == nil {
		flush()
	}
	return behind
}

// sendStream sends the stream up to now.
func (n *Node) sendStream(s *fullSync, send func(chunk []byte)) error {
	for {
		n.mu.Lock()
		if !n.backlog.covers(s.offset) {
			n.unlock()
			return replicas.ErrBehind
		}
		frames, next := n.backlog.from(s.buffer(), s.offset, chunkBytes)
		n.unlock()
		if len(frames) == 0 {
			return nil
		}
		send(frames)
		s.offset = next
	}
}

// awaitRound waits for the end of a round that begins now. A replica's states change by its leader's rounds.
func (n *Node) awaitRound(ctx context.Context) error {
	if leads := read(n, func() bool { return n.role.isLeader() && n.feed != nil }); !leads {
		n.applying.Lock()
		defer n.applying.Unlock()
		return nil
	}
	done := make(chan struct{})
	n.Wait(0, func() { close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start asks for the stream from where this server is, or, to take states only, for all of them.
func (n *Node) start(ctx context.Context, c Conn, takes bool) (*leaderLink, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	n.mu.Lock()
	history, offset := n.placeLocked()
	n.unlock()
	args := []any{"CL.SYNC", "START", Format, history, offset}
	if takes {
		args = append(args, "TAKE")
	}
	asked := time.Now()
	start, err := askStart(ctx, c, args)
	if err != nil {
		return nil, err
	}
	ahead := n.config.Clock.Now() - start.ClockNs - int64(time.Since(asked)) // the answer was under way so long at most
	if !start.Full && ahead > int64(mostAhead) {                             // keys may have expired too early
		args[3] = newHistory()
		if start, err = askStart(ctx, c, args); err != nil {
			return nil, err
		}
	}
	if start.Full && !start.HasHad && !n.isEmpty() {
		return nil, errEmptyLeader
	}
	f := &leaderLink{node: n, conn: c, start: start, received: start.Offset}
	n.config.Clock.SetTo(start.ClockNs)
	n.mu.Lock()
	defer n.unlock()
	n.latestNs, n.heard = max(n.latestNs, start.ClockNs), time.Now()
	if start.Full {
		for _, r := range n.replicas { // they take the states that are replaced
			n.detachLocked(r)
			r.client.Kill()
		}
		f.beside = n.config.Store.Beside()
		n.link, n.syncBytes, n.complete = replicas.LinkSync, 0, false
		return f, nil
	}
	n.adoptLocked(&start)
	if n.statusOfKept(n.missing, n.replacing) == replicas.KeptLater { // as before the connection ended
		n.link = replicas.LinkSync
	}
	n.complete, n.linkErr = true, nil
	n.config.Log.Info("this replica goes on", "leader", n.leader.String(), "offset", start.Offset)
	return f, nil
}

func (n *Node) isEmpty() bool {
	var held store.Stats
	n.config.Store.UpdateStats(&held)
	return held.Keys == 0
}

// errEmptyLeader keeps states from one that has lost its own.
var errEmptyLeader = errors.New("the leader has never had a state, and this server has some, which following would remove: " +
	"REPLICAOF NO ONE here has this server lead with them, and on the leader has both begin without")

// mostAhead is how far a replica's clock may be ahead of its leader's before its states are taken anew.
const mostAhead = 50 * time.Millisecond

func askStart(ctx context.Context, c Conn, args []any) (replicas.Start, error) {
	reply, err := c.Do(ctx, args...)
	if err != nil {
		return replicas.Start{}, err
	}
	return readStart(reply)
}

// placeLocked returns this server's place in a history: where nothing has changed since the branch, in the
// parent, which more servers know.
func (n *Node) placeLocked() (history string, offset int64) {
	if n.parent != "" && n.backlog.end == n.branch {
		return n.parent, n.branch
	}
	return n.history, n.backlog.end
}

func (n *Node) adoptLocked(s *replicas.Start) {
	n.history, n.parent, n.branch, n.gave = s.History, s.Parent, s.Branch, false
}

var errStart = errors.New("replication: the answer to CL.SYNC START is of another format; is the other server of an older version?")

func readStart(reply any) (s replicas.Start, err error) {
	parts, _ := reply.([]any)
	const leastParts, parts2 = 7, 8 // by format
	if len(parts) != leastParts && len(parts) != parts2 {
		return s, errStart
	}
	text := func(i int) string { return partOf[string](parts, i, &err) }
	number := func(i int) int64 { return partOf[int64](parts, i, &err) }
	s = replicas.Start{
		Format: int(number(0)), Full: text(1) == "full", HasHad: true, History: text(2), Parent: text(3),
		Branch: number(4), Offset: number(5), ClockNs: number(6),
	}
	switch {
	case err != nil || len(s.History) != len(newHistory()):
		return s, errStart
	case s.Format < 1 || s.Format > Format:
		return s, fmt.Errorf("replication: the stream is of format %d, and this version reads formats up to %d", s.Format, Format)
	case (s.Format == 1) != (len(parts) == leastParts):
		return s, errStart
	case s.Format > 1: // format 1 does not say so
		s.HasHad = number(leastParts) != 0
	}
	return s, err
}

// partOf returns a part of a reply, and sets an error if it is of another type.
func partOf[T any](parts []any, i int, err *error) T {
	part, is := parts[i].(T)
	if !is {
		*err = errStart
	}
	return part
}
