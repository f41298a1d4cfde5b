package command

import (
	"time"

	"cellserver/internal/shard"
)

// del and exists take all keys at once, as one step.

func del(s *Session, args [][]byte) error { return s.countKeys(args[1:], (*shard.Tx).Delete) }

func exists(s *Session, args [][]byte) error { return s.countKeys(args[1:], (*shard.Tx).Exists) }

// countKeys replies for how many of the keys the operation is true.
func (s *Session) countKeys(names [][]byte, operation func(*shard.Tx, int) bool) error {
	keys := make([]shard.Key, len(names))
	for i, name := range names {
		keys[i] = shard.Key{DB: s.db, Name: name}
	}
	tx := s.engine.config.Store.Begin(s.engine.config.Now(), keys)
	defer tx.Rollback()
	n := int64(0)
	for i := range keys {
		if operation(tx, i) {
			n++
		}
	}
	tx.Commit()
	s.w.Int(n)
	return nil
}

const absent = -2 // TTL and PTTL of a key that does not exist

// pttl cuts to whole milliseconds and ttl rounds those to seconds, as Redis does.
func pttl(s *Session, args [][]byte) error {
	s.w.Int(s.ttlMs(args[1]))
	return nil
}

func ttl(s *Session, args [][]byte) error {
	ms := s.ttlMs(args[1])
	if ms >= 0 {
		ms = (ms + 500) / 1000
	}
	s.w.Int(ms)
	return nil
}

func (s *Session) ttlMs(key []byte) int64 {
	nowNs := s.engine.config.Now()
	tatNs, ok := s.engine.config.Store.TAT(nowNs, shard.Key{DB: s.db, Name: key})
	if !ok {
		return absent
	}
	return (tatNs - nowNs) / int64(time.Millisecond)
}

func dbSize(s *Session, _ [][]byte) error {
	counts := make([]int, s.engine.config.Databases)
	s.engine.config.Store.Count(s.engine.config.Now(), counts)
	s.w.Int(int64(counts[s.db]))
	return nil
}

func flushDB(s *Session, args [][]byte) error {
	if err := checkFlush(args); err != nil {
		return err
	}
	s.engine.config.Store.Flush(s.db)
	s.w.OK()
	return nil
}

func flushAll(s *Session, args [][]byte) error {
	if err := checkFlush(args); err != nil {
		return err
	}
	s.engine.config.Store.FlushAll()
	s.w.OK()
	return nil
}

func checkFlush(args [][]byte) error {
	if len(args) == 1 || len(args) == 2 &&
		(lower(args[1]) == "async" || lower(args[1]) == "sync") {
		return nil
	}
	return errSyntax
}
