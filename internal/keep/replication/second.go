package replication

import (
	"context"
	"errors"
	"strings"
	"time"

	"cellserver/internal/store/replicas"
)

// pingTime is between two measurements of the round trip.
const pingTime = time.Second

type trips [3]time.Duration

func (t *trips) add(d time.Duration) { t[0], t[1], t[2] = d, t[0], t[1] }

// longest returns the longest one, 0 before the first.
func (t *trips) longest() time.Duration { return max(t[0], t[1], t[2]) }

// attempts number the connections to a leader, and say what became of them.
type attempts struct {
	n        int                // the present one
	end      context.CancelFunc // of it
	accepted int                // the latest that the leader has accepted
	refused  int                // the latest that it has refused, as it does not lead
}

// endAttempt notes the answer to CL.SYNC START.
func (n *Node) endAttempt(number int, err error) {
	n.mu.Lock()
	defer n.unlock()
	switch {
	case err == nil:
		n.attempts.accepted = number
	case isReply(err, notLeader):
		n.attempts.refused = number
	case isReply(err, handingOver):
		n.heard = time.Now()
	}
}

// setAsked notes that the leader is asked, or has answered.
func (n *Node) setAsked(isAsked bool) {
	n.mu.Lock()
	defer n.unlock()
	if n.isAsked = isAsked; isAsked {
		n.heard = time.Now()
	}
}

// Codes of errors that a leader replies:
const (
	notLeader   = "NOTLEADER "
	handingOver = "HANDINGOVER "
)

// isReply reports whether an error is a server's reply that begins with a code.
func isReply(err error, code string) bool {
	var reply interface {
		error
		RedisError()
	}
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), code)
}

// second is a replica's second connection to its leader: it measures the round trip, compares the
// definitions, and takes over. It stands while the replica follows, so that a planned change needs two round
// trips.
type second struct {
	node   *Node
	leader replicas.Address
	conn   Conn // nil while there is none
	isOld  bool // the leader's version does not know it
	isMute bool // the leader's version does not tell its definitions
	took   bool // TAKEOVER was sent

	limits replicas.Definitions // of the leader, as it has told them
}

// standBy keeps the second connection until ctx ends, and takes over if that is wanted.
func (n *Node) standBy(ctx context.Context, leader replicas.Address) {
	s := &second{node: n, leader: leader}
	defer s.close()
	ping := time.NewTimer(pingTime)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.requested:
			s.takeOver(ctx)
		case <-ping.C:
			s.stand(ctx)
		}
		ping.Reset(pingTime)
	}
}

func (s *second) close() {
	if s.conn != nil {
		_ = s.conn.Close() // nothing was written
		s.conn = nil
	}
}

// stand measures the round trip and compares definitions, or connects if the replica follows.
func (s *second) stand(ctx context.Context) {
	follows := read(s.node, func() bool { return s.node.link >= replicas.LinkSync })
	switch {
	case s.conn != nil:
		_ = s.measure(ctx)
	case follows:
		_ = s.connect(ctx) // it is tried again
	}
	if len(s.node.requested) == 0 && s.conn != nil && !s.isOld && !s.isMute {
		s.compare(ctx)
	}
}

func (s *second) connect(ctx context.Context) (err error) {
	if s.conn, err = s.node.connect(ctx, s.leader); err != nil {
		s.conn = nil
		return err
	}
	s.isOld, s.isMute = false, false
	return s.measure(ctx)
}

func (s *second) measure(ctx context.Context) error {
	last, began := read(s.node, s.node.trips.longest), time.Now()
	if _, err := s.do(ctx, answerTime, "CL.SYNC", "PING", last.Microseconds()); err != nil {
		if !isReply(err, "") {
			return err
		}
		s.isOld = true
	}
	s.node.locked(func() { s.node.trips.add(time.Since(began)) })
	return nil
}

// do sends a command. An error other than a reply ends the connection.
func (s *second) do(ctx context.Context, most time.Duration, args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	defer context.AfterFunc(ctx, func(c Conn) func() { return func() { _ = c.Close() } }(s.conn))()
	reply, err := s.conn.Do(ctx, args...)
	if err != nil && !isReply(err, "") {
		s.close()
	}
	return reply, err
}

// hears reports whether the leader answers by the link.
func (s *second) hears() bool {
	return read(s.node, func() bool { return s.node.link >= replicas.LinkSync && !s.node.isSilentLocked() })
}

// takeOver has the leader hand over, and this server lead. If that fails it goes on following; that the
// leader is silent is found out by the Node.
func (s *second) takeOver(ctx context.Context) {
	n := s.node
	n.mu.Lock()
	number, isRequested := n.role.number, n.role.state == requesting
	n.unlock()
	if !isRequested {
		return
	}
	leads, err := s.change(ctx)
	n.mu.Lock()
	defer n.unlock()
	if n.role.number != number || n.role.state != requesting {
		return
	}
	switch {
	case !leads:
		n.role.take(onFail)
		n.refusal = err
		n.counts.HandoverFailures++
		n.config.Log.Warn("the leader has not handed over; this server goes on following it", "leader", s.leader.String(), "error", err)
		return
	case err == nil:
		n.counts.Handovers++
	default:
		n.counts.HandoverTimeouts++
		n.config.Log.Warn("the leader leads no more, and has not handed over; this server takes over, as after a crash", "leader", s.leader.String(), "error", err)
	}
	n.leadLocked()
}

// change reports whether this server may lead; an error is why something may be missing, or why not.
func (s *second) change(ctx context.Context) (leads bool, err error) {
	for began := time.Now(); ; {
		asked := false
		if err = nil; s.conn == nil {
			err = s.connect(ctx)
		}
		if err == nil {
			asked, err = s.ask(ctx)
		}
		switch {
		case err == nil:
			return true, nil
		case ctx.Err() != nil || errors.As(err, new(replicas.SlowLinkError)):
			return false, err
		case isReply(err, notLeader):
			return true, err
		case asked && (s.isOld || !isReply(err, "")):
			return s.settle(ctx, err)
		case time.Since(began) >= replicas.Bound(read(s.node, s.node.trips.longest)) && s.hears(): // else the Node leads once the leader is silent
			return false, err
		}
		pause(ctx, leastRetry) // the link may be about to be in step
	}
}

// ask has the leader hand over, and reports whether it may have been asked.
func (s *second) ask(ctx context.Context) (asked bool, err error) {
	n := s.node
	n.mu.Lock()
	f := &leaderLink{node: n, history: n.history, received: n.backlog.end}
	trip := n.trips.longest()
	n.unlock()
	if trip > replicas.MostRoundTrip {
		return false, replicas.SlowLinkError{RoundTrip: trip}
	}
	s.took = false
	bound := replicas.Bound(trip)
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	if s.isOld {
		_, err := s.do(ctx, bound, "CL.SYNC", "HANDOVER")
		return true, err
	}
	reply, err := s.do(ctx, bound, "CL.SYNC", "HANDOVER", f.history, f.received, bound.Milliseconds())
	for err == nil && reply != "OK" {
		if err = f.takeReply(reply); err != nil {
			s.close()
			break
		}
		s.took = true
		reply, err = s.do(ctx, bound, "CL.SYNC", "TAKEOVER", f.received)
	}
	return true, err
}

// settle finds out by a new link what became of a change without an answer: a leader that accepts it leads
// on, and one that leads no more has handed over.
func (s *second) settle(ctx context.Context, cause error) (leads bool, err error) {
	n := s.node
	n.mu.Lock()
	from := n.attempts.n
	if n.attempts.end != nil {
		n.attempts.end()
	}
	n.unlock()
	for ctx.Err() == nil {
		said := read(n, func() attempts { return n.attempts })
		switch {
		case said.refused > from && s.took:
			return true, nil
		case said.refused > from:
			return true, cause
		case said.accepted > from:
			return false, cause
		}
		pause(ctx, leastRetry)
	}
	return false, cause
}
