package session

import "cellserver/internal/redis/execute"

// executeMuted executes a command whose reply is not wanted, unless it is the one that wants replies again. There is no
// batch in front of it: whatever turns replies off has flushed it. What is skipped is settled before it runs, for EXEC
// may still be in the background when the next command is due.
func (s *Session) executeMuted(dispatch func()) {
	before := len(s.x.W.Buf)
	s.x.RepliesRequested = false
	once := s.x.Replies == execute.RepliesSkipNext
	if once {
		s.x.Replies = execute.RepliesOn
	}
	untold(&s.x, func() {
		dispatch()
		s.x.Flush()
	})
	if once && !s.x.RepliesRequested || s.x.Replies == execute.RepliesOff {
		s.muteFrom(before)
	}
}

// muteFrom takes back what was replied, and what a command that is not done will reply.
func (s *Session) muteFrom(before int) {
	s.x.W.Buf = s.x.W.Buf[:before]
	if s.pending != nil {
		s.pending.muted = true
	}
}
