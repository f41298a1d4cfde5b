package command

// commandGetKeys is COMMAND GETKEYS command [arg ...].
func commandGetKeys(s *Session, args [][]byte) error {
	_, keys, err := s.keysOf(args[2:])
	if err != nil {
		return err
	}
	s.w.Array(len(keys))
	for _, key := range keys {
		s.w.Bulk(key)
	}
	return nil
}

// commandGetKeysAndFlags is COMMAND GETKEYSANDFLAGS command [arg ...].
func commandGetKeysAndFlags(s *Session, args [][]byte) error {
	r, keys, err := s.keysOf(args[2:])
	if err != nil {
		return err
	}
	s.w.Array(len(keys))
	for _, key := range keys {
		s.w.Array(2)
		s.w.Bulk(key)
		s.replyStatuses(r.keys.flags)
	}
	return nil
}

// keysOf returns the keys of a command that is not executed.
func (s *Session) keysOf(args [][]byte) (*row, [][]byte, error) {
	r := s.engine.table.lookup(args[0])
	if r != nil && r.subs != nil && len(args) > 1 {
		r = r.sub(args[1])
	}
	switch {
	case r == nil || r.refusal != "":
		return nil, nil, replyError("ERR Invalid command specified")
	case r.keys.first == 0 && r.keys.counted == 0:
		return nil, nil, replyError("ERR The command has no key arguments")
	case !r.acceptsArity(len(args)):
		return nil, nil, replyError("ERR Invalid number of arguments specified for command")
	}
	var keys [][]byte
	r.keys.eachKey(args, func(key []byte) { keys = append(keys, key) })
	if keys == nil {
		if r.flags&flagNoMandatoryKeys != 0 {
			return r, nil, nil
		}
		return nil, nil, replyError("ERR Invalid arguments specified for command")
	}
	return r, keys, nil
}
