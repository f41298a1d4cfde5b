package replication

import (
	"context"
	"slices"

	"cellserver/internal/store/replicas"
)

// compare finds definitions by files that are not the same on this replica and on its leader. The stream does
// not have them: each server reads its own file, and decides by it once it leads.
func (s *second) compare(ctx context.Context) {
	reply, err := s.do(ctx, answerTime, "CL.SYNC", "LIMITS", int64(s.limits.Digest))
	switch {
	case isReply(err, ""):
		s.mute()
	case err != nil:
	case !s.takeLimits(reply):
		s.mute()
		s.node.config.Log.Error("the leader's answer about its named limits is not of this format, so they are not compared", "leader", s.leader.String())
	default:
		s.node.noteDiffering(s.node.config.Definitions.Digests().Differing(s.limits))
	}
}

// mute ends comparing with a leader that does not tell its definitions.
func (s *second) mute() {
	s.isMute = true
	s.node.locked(func() { s.node.differing = nil })
}

// takeLimits reads the leader's digest, and its definitions if they have changed. It returns false for
// anything else.
func (s *second) takeLimits(reply any) bool {
	parts, _ := reply.([]any)
	if len(parts)%3 != 1 {
		return false
	}
	digest, ok := parts[0].(int64)
	if !ok || uint64(digest) == s.limits.Digest {
		return ok
	}
	all := make([]replicas.Definition, 0, len(parts)/3)
	for parts = parts[1:]; len(parts) > 0; parts = parts[3:] {
		name, isName := parts[0].(string)
		ofFile, isFlag := parts[1].(int64)
		of, isDigest := parts[2].(int64)
		if !isName || !isFlag || !isDigest {
			return false
		}
		all = append(all, replicas.Definition{Name: name, OfFile: ofFile == 1, Digest: uint64(of)})
	}
	s.limits = replicas.Definitions{All: all, Digest: uint64(digest)}
	return true
}

// noteDiffering notes and logs what differs from the leader's definitions, once for each change.
func (n *Node) noteDiffering(names []string) {
	n.mu.Lock()
	before, leader := n.differing, n.leader
	n.differing = names
	n.unlock()
	switch {
	case slices.Equal(before, names):
	case len(names) > 0:
		n.config.Log.Warn("named limits of this replica are not its leader's, and it would decide by its own once it leads: "+
			"give both servers the same --limits-file, and send CL.LIMIT RELOAD to both",
			"limits", replicas.SomeNames(names), "leader", leader.String())
	default:
		n.config.Log.Info("this replica has the named limits of its leader", "leader", leader.String())
	}
}
