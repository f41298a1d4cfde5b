package replication

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

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
