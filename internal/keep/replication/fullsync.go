package replication

import (
	"context"
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
	r.sync = &fullSync{chunks: make(chan []byte, chunksAhead), end: end, offset: r.sentTo}
	go n.runSync(ctx, r, r.sync)
}

func (n *Node) runSync(ctx context.Context, r *replica, s *fullSync) {
	defer s.end()
	s.err = n.readAll(ctx, r, s)
	close(s.chunks)
	n.locked(r.wake)
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
