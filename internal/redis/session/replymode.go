package session

import "cellserver/internal/redis/execute"

// executeMuted executes a command without a reply, unless it turns replies on. No batch precedes it: turning
// replies off has flushed it. The skip ends before the command runs, as EXEC may be in the background when
// the next one is due.
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

// muteFrom drops replies and those to come of a pending command.
func (s *Session) muteFrom(before int) {
	s.x.W.Buf = s.x.W.Buf[:before]
	if s.pending != nil {
		s.pending.muted = true
	}
}
