package command

// replyMode is what CLIENT REPLY says.
type replyMode uint8

const (
	repliesOn replyMode = iota
	repliesOff
	repliesSkipNext // the reply of the next command only
)

// clientReply is CLIENT REPLY ON|OFF|SKIP. Only ON has a reply.
func clientReply(s *Session, args [][]byte) error {
	switch lower(args[2]) {
	case "on":
		s.replies, s.repliesAsked = repliesOn, true
		s.w.OK()
	case "off":
		s.replies = repliesOff
	case "skip":
		if s.replies != repliesOff {
			s.replies = repliesSkipNext
		}
	default:
		return errSyntax
	}
	return nil
}

// executeMuted executes a command whose reply is not wanted, unless it is the one that wants replies again. What is
// skipped is settled before it runs, for EXEC may still be at it, aside, when the next command is due.
func (s *Session) executeMuted(args [][]byte) {
	s.flush()
	before := len(s.w.Buf)
	s.repliesAsked = false
	once := s.replies == repliesSkipNext
	if once {
		s.replies = repliesOn
	}
	s.dispatch(args)
	s.flush()
	if once && !s.repliesAsked || s.replies == repliesOff {
		s.muteFrom(before)
	}
}

// muteFrom takes back what was replied, and what a command that still waits will reply.
func (s *Session) muteFrom(before int) {
	s.w.Buf = s.w.Buf[:before]
	if done := s.waiting; done != nil {
		s.waiting = func(s *Session) bool {
			before := len(s.w.Buf)
			ended := done(s)
			s.w.Buf = s.w.Buf[:before]
			return ended
		}
	}
}
