package command

import (
	"bytes"
	"strconv"
	"time"

	"cellserver/internal/shard"
)

// asideKeys is how many keys a command may have before it is worth a goroutine.
const asideKeys = 1000

func del(s *Session, args [][]byte) error {
	return s.onKeys(args[1:], (*Engine).deleteKeys, keySpace.Delete)
}

func exists(s *Session, args [][]byte) error { return s.onKeys(args[1:], (*Engine).countKeys, isLive) }

func isLive(in keySpace, key shard.Key) bool {
	_, ok := in.TAT(key)
	return ok
}

// onKeys counts keys: one by one with each in a transaction, else all at once, and aside if there are many of them.
func (s *Session) onKeys(names [][]byte, count func(*Engine, []shard.Key) int, each func(keySpace, shard.Key) bool) error {
	if s.space != nil {
		n := 0
		for _, name := range names {
			if each(s.space, s.key(name)) {
				n++
			}
		}
		s.w.Int(int64(n))
		return nil
	}
	keys := make([]shard.Key, len(names))
	for i, name := range names {
		keys[i] = s.key(name)
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

func (s *Session) key(name []byte) shard.Key { return shard.Key{DB: s.db, Name: name} }

func (s *Session) countAside(count func() int) {
	n := 0
	s.aside(func() { n = count() }, func(s *Session) { s.w.Int(int64(n)) })
}

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

func (e *Engine) countKeys(keys []shard.Key) (n int) {
	nowNs := e.config.Now()
	for _, key := range keys {
		if _, ok := e.config.Store.TAT(nowNs, key); ok {
			n++
		}
	}
	return n
}

// state returns a key's TAT and the time it was looked at; false if the key is absent.
func (s *Session) state(name []byte) (tatNs, nowNs int64, ok bool) {
	nowNs = s.now()
	if s.space != nil {
		tatNs, ok = s.space.TAT(s.key(name))
	} else {
		tatNs, ok = s.engine.config.Store.TAT(nowNs, s.key(name))
	}
	return tatNs, nowNs, ok
}

const absent = -2 // TTL and its like of a key that does not exist

// replyTime replies with what of tells of a live key's TAT.
func (s *Session) replyTime(name []byte, of func(tatNs, nowNs int64) int64) error {
	if tatNs, nowNs, ok := s.state(name); ok {
		s.w.Int(of(tatNs, nowNs))
	} else {
		s.w.Int(absent)
	}
	return nil
}

// Milliseconds are cut and seconds rounded from those, as in Redis.

func cutMs(ns int64) int64 { return ns / int64(time.Millisecond) }

func roundSec(ms int64) int64 { return (ms + 500) / 1000 }

func pttl(s *Session, args [][]byte) error {
	return s.replyTime(args[1], func(tatNs, nowNs int64) int64 { return cutMs(tatNs - nowNs) })
}

func ttl(s *Session, args [][]byte) error {
	return s.replyTime(args[1], func(tatNs, nowNs int64) int64 { return roundSec(cutMs(tatNs - nowNs)) })
}

func pexpireTime(s *Session, args [][]byte) error {
	return s.replyTime(args[1], func(tatNs, _ int64) int64 { return cutMs(tatNs) })
}

func expireTime(s *Session, args [][]byte) error {
	return s.replyTime(args[1], func(tatNs, _ int64) int64 { return roundSec(cutMs(tatNs)) })
}

// typeCommand and the commands behind it see a key as redis-cell keeps it in Redis: a string, the TAT in decimal.
func typeCommand(s *Session, args [][]byte) error {
	if _, _, ok := s.state(args[1]); ok {
		s.w.Status(keyType)
	} else {
		s.w.Status("none")
	}
	return nil
}

const keyType = "string"

func get(s *Session, args [][]byte) error {
	if tatNs, _, ok := s.state(args[1]); ok {
		s.w.BulkString(strconv.FormatInt(tatNs, 10))
	} else {
		s.w.Null()
	}
	return nil
}

func strLen(s *Session, args [][]byte) error {
	n := 0
	if tatNs, _, ok := s.state(args[1]); ok {
		n = len(strconv.FormatInt(tatNs, 10))
	}
	s.w.Int(int64(n))
	return nil
}

func objectEncoding(s *Session, args [][]byte) error {
	if _, _, ok := s.state(args[2]); ok {
		s.w.BulkString("int")
	} else {
		s.w.Null()
	}
	return nil
}

// memoryUsage is MEMORY USAGE key [SAMPLES count].
func memoryUsage(s *Session, args [][]byte) error {
	for rest := args[3:]; len(rest) > 0; rest = rest[2:] {
		if len(rest) == 1 || lower(rest[0]) != "samples" {
			return errSyntax
		}
		if n, err := s.integer(rest[1]); err != nil {
			return err
		} else if n < 0 {
			return errSyntax
		}
	}
	if n, ok := s.whole().MemoryUsage(s.key(args[2])); ok {
		s.w.Int(int64(n))
	} else {
		s.w.Null()
	}
	return nil
}

func dbSize(s *Session, _ [][]byte) error {
	s.countAside(func() int { return s.countLive()[s.db] })
	return nil
}

// countLive returns how many live keys each database has.
func (s *Session) countLive() []int {
	counts := make([]int, s.engine.config.Databases)
	s.whole().Count(counts)
	return counts
}

func flushDB(s *Session, args [][]byte) error {
	if err := checkFlush(args); err != nil {
		return err
	}
	s.aside(func() { s.whole().Flush(s.db) }, func(s *Session) { s.w.OK() })
	return nil
}

func flushAll(s *Session, args [][]byte) error {
	if err := checkFlush(args); err != nil {
		return err
	}
	s.whole().FlushAll()
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
