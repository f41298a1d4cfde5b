package command

import (
	"cellserver/internal/funnel"
	"cellserver/internal/resp"
	"cellserver/internal/shard"
)

// keySpace is where a command finds its keys: the store, or what a transaction has of it.
type keySpace interface {
	TAT(key shard.Key) (tatNs int64, ok bool)
	Delete(key shard.Key) (existed bool)
	Throttle(key shard.Key, limit funnel.Limit, quantity int64) funnel.Result
	SetTAT(key shard.Key, tatNs int64)
}

// wholeSpace is where a command finds all keys.
type wholeSpace interface {
	MemoryUsage(key shard.Key) (bytes int, ok bool)
	Count(counts []int)
	Scan(db uint16, cursor uint64, count int, visit func(key shard.Key, tatNs int64)) (next uint64)
	Flush(db uint16)
	FlushAll()
	UpdateStats(st *shard.Stats)
}

// whole returns the store, or in a transaction that has all of it, that.
func (s *Session) whole() wholeSpace {
	if all, ok := s.space.(wholeSpace); ok {
		return all
	}
	return s.engine.config.Store.At(s.now())
}

// now is the time that a command sees. In a transaction it stands still.
func (s *Session) now() int64 {
	if s.space != nil {
		return s.spaceNs
	}
	return s.engine.config.Now()
}

// child returns a session for what EXEC or a script executes: as the client's own, with replies of its own.
func (s *Session) child(kind innerKind) *Session {
	return &Session{
		engine:        s.engine,
		user:          s.user,
		authenticated: s.authenticated,
		db:            s.db,
		replies:       s.replies,
		w:             resp.Writer{RESP3: s.w.RESP3},
		inner:         kind,
		client:        s.client,
		conn:          s.conn,
		monitored:     s.monitored,
	}
}

// enter makes the session execute in a space, until leave.
func (s *Session) enter(in keySpace, nowNs int64) {
	s.space, s.spaceNs = in, nowNs
	s.borrow()
}

func (s *Session) leave() {
	s.space = nil
	s.giveBack()
}

// optimisticAttempts is how often a snapshot may turn out to be stale.
const optimisticAttempts = 3

// optimistically lets do work on a snapshot of the keys, so that nobody waits for their locks meanwhile, and again
// when somebody has changed one of them before its writes are in. The last attempt keeps the locks. Nothing is
// written unless do wants it kept.
func (e *Engine) optimistically(keys []shard.Key, do func(tx *shard.Tx, nowNs int64) (keep bool)) {
	for attempt := range optimisticAttempts {
		if e.attempt(keys, attempt < optimisticAttempts-1, do) {
			return
		}
	}
}

func (e *Engine) attempt(keys []shard.Key, release bool, do func(tx *shard.Tx, nowNs int64) (keep bool)) (done bool) {
	nowNs := e.config.Now()
	tx := e.config.Store.Begin(nowNs, keys)
	defer tx.Rollback()
	if release {
		tx.Release()
	}
	return !do(tx, nowNs) || tx.Commit()
}
