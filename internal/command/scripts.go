package command

func scriptLoad(s *Session, args [][]byte) error {
	script, err := s.engine.config.Scripts.Load(args[2])
	if err != nil {
		return err
	}
	s.w.BulkString(script.SHA1)
	return nil
}

func scriptExists(s *Session, args [][]byte) error {
	s.w.Array(len(args) - 2)
	for _, sha := range args[2:] {
		found := int64(0)
		if s.engine.config.Scripts.Lookup(sha) != nil {
			found = 1
		}
		s.w.Int(found)
	}
	return nil
}

// scriptFlush is SCRIPT FLUSH [ASYNC|SYNC].
func scriptFlush(s *Session, args [][]byte) error {
	if len(args) > 3 || len(args) == 3 && lower(args[2]) != "async" && lower(args[2]) != "sync" {
		return replyError("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	s.engine.config.Scripts.Flush()
	s.w.OK()
	return nil
}

func scriptKill(s *Session, _ [][]byte) error {
	if err := s.engine.config.Scripts.Kill(); err != nil {
		return err
	}
	s.w.OK()
	return nil
}
