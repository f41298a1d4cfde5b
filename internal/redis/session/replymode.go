package session

// replyMode is what CLIENT REPLY says.
type replyMode uint8

const (
	repliesOn replyMode = iota
	repliesOff
	repliesSkipNext // the reply of the next command only
)

// executeMuted executes a command whose reply is not wanted, unless it is the one that wants replies again. There is no
// batch in front of it: whatever turns replies off has flushed it. What is skipped is settled before it runs, for EXEC
// may still be in the background when the next command is due.
func (s *Session) executeMuted(dispatch func()) {
	before := len(s.w.Buf)
	s.repliesRequested = false
	once := s.replies == repliesSkipNext
	if once {
		s.replies = repliesOn
	}
	s.untold(func() {
		dispatch()
		s.flush()
	})
	if once && !s.repliesRequested || s.replies == repliesOff {
		s.muteFrom(before)
	}
}

// muteFrom takes back what was replied, and what a command that is not done will reply.
func (s *Session) muteFrom(before int) {
	s.w.Buf = s.w.Buf[:before]
	if s.pending != nil {
		s.pending.muted = true
	}
}
