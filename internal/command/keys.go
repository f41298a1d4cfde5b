package command

import (
	"time"

	"cellserver/internal/shard"
)

// del removes all keys at once.
func del(s *Session, args [][]byte) error {
	keys := make([]shard.Key, len(args)-1)
	for i, name := range args[1:] {
		keys[i] = shard.Key{DB: s.db, Name: name}
	}
	tx := s.engine.config.Store.Begin(s.engine.config.Now(), keys)
	defer tx.Rollback()
	n := int64(0)
	for i := range keys {
		if tx.Delete(i) {
			n++
		}
	}
	tx.Commit()
	s.w.Int(n)
	return nil
}

func exists(s *Session, args [][]byte) error {
	nowNs := s.engine.config.Now()
	n := int64(0)
	for _, name := range args[1:] {
		if _, ok := s.engine.config.Store.TAT(nowNs, shard.Key{DB: s.db, Name: name}); ok {
			n++
		}
	}
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
