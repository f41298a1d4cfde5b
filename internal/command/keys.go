package command

import (
	"bytes"
	"time"

	"cellserver/internal/shard"
)

// asideKeys is how many keys a command may have before it is worth a goroutine.
const asideKeys = 1000

// onKeys counts keys aside if there are many of them.
func (s *Session) onKeys(names [][]byte, count func(*Engine, []shard.Key) int) error {
	keys := make([]shard.Key, len(names))
	for i, name := range names {
		keys[i] = shard.Key{DB: s.db, Name: name}
	}
	if len(keys) <= asideKeys {
		s.w.Int(int64(count(s.engine, keys)))
		return nil
	}
	for i := range keys {
		keys[i].Name = bytes.Clone(keys[i].Name)
	}
	s.countAside(func() int { return count(s.engine, keys) })
	return nil
}

func (s *Session) countAside(count func() int) {
	n := 0
	s.aside(func() { n = count() }, func(s *Session) { s.w.Int(int64(n)) })
}

func del(s *Session, args [][]byte) error { return s.onKeys(args[1:], (*Engine).deleteKeys) }

// deleteKeys removes all keys at once.
func (e *Engine) deleteKeys(keys []shard.Key) (n int) {
	tx := e.config.Store.Begin(e.config.Now(), keys)
	defer tx.Rollback()
	for i := range keys {
		if tx.Delete(i) {
			n++
		}
	}
	tx.Commit()
	return n
}

func exists(s *Session, args [][]byte) error { return s.onKeys(args[1:], (*Engine).countKeys) }

func (e *Engine) countKeys(keys []shard.Key) (n int) {
	nowNs := e.config.Now()
	for _, key := range keys {
		if _, ok := e.config.Store.TAT(nowNs, key); ok {
			n++
		}
	}
	return n
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
	s.countAside(func() int { return s.engine.countLive()[s.db] })
	return nil
}

// countLive returns how many live keys each database has.
func (e *Engine) countLive() []int {
	counts := make([]int, e.config.Databases)
	e.config.Store.Count(e.config.Now(), counts)
	return counts
}

func flushDB(s *Session, args [][]byte) error {
	if err := checkFlush(args); err != nil {
		return err
	}
	s.aside(func() { s.engine.config.Store.Flush(s.db) }, func(s *Session) { s.w.OK() })
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
