package command

import (
	"bytes"
	"strconv"

	"cellserver/internal/shard"
)

// transaction is the commands between MULTI and EXEC.
type transaction struct {
	queued []queuedCommand
	bytes  int
	failed bool // a command was refused, so EXEC refuses them all
}

type queuedCommand struct {
	row  *row
	args [][]byte
}

// queuedArgBytes is what an argument costs beside its bytes.
const queuedArgBytes = 24

func multi(s *Session, _ [][]byte) error {
	if s.multi != nil {
		return errNestedMulti
	}
	s.multi = &transaction{}
	s.client.change(func(i *clientInfo) { i.queued = 0 })
	s.w.OK()
	return nil
}

// queue keeps a command for EXEC.
func (s *Session) queue(r *row, args [][]byte) {
	s.flush()
	m := s.multi
	for _, arg := range args {
		m.bytes += len(arg) + queuedArgBytes
	}
	if limit := s.engine.config.Limits.MaxCommandBytes; m.bytes > limit {
		s.reject(r, replyError("ERR transaction is longer than "+strconv.Itoa(limit)+" bytes, the limit of --max-command-bytes"))
		return
	}
	kept := make([][]byte, len(args))
	for i, arg := range args {
		kept[i] = bytes.Clone(arg)
	}
	m.queued = append(m.queued, queuedCommand{r, kept})
	s.client.change(func(i *clientInfo) { i.queued = len(m.queued) })
	s.w.Status("QUEUED")
}

func discardCommand(s *Session, _ [][]byte) error {
	if s.multi == nil {
		return replyError("ERR DISCARD without MULTI")
	}
	s.discard()
	s.w.OK()
	return nil
}

// discard forgets the transaction, and what was watched for it.
func (s *Session) discard() {
	s.multi = nil
	s.client.change(func(i *clientInfo) { i.queued = -1 })
	s.unwatch()
}

const maxWatched = 10_000 // keys of one client

func watch(s *Session, args [][]byte) error {
	if s.multi != nil {
		return replyError("ERR WATCH inside MULTI is not allowed")
	}
	keys := make([]shard.Key, len(args)-1)
	for i, name := range args[1:] {
		keys[i] = s.key(bytes.Clone(name))
	}
	if len(s.watched)+len(keys) > maxWatched {
		return replyError("ERR more than " + strconv.Itoa(maxWatched) + " keys are watched; EXEC or UNWATCH first")
	}
	if s.watch == nil {
		s.watch = s.engine.config.Store.Watch(s.now(), keys)
	} else {
		s.watch.Add(s.now(), keys)
	}
	s.watched = append(s.watched, keys...)
	s.client.change(func(i *clientInfo) { i.watching = len(s.watched) })
	s.w.OK()
	return nil
}

func unwatchCommand(s *Session, _ [][]byte) error {
	s.unwatch()
	s.w.OK()
	return nil
}

func (s *Session) unwatch() {
	if s.watch == nil {
		return
	}
	s.watch.Close()
	s.watch, s.watched = nil, nil
	s.client.change(func(i *clientInfo) { i.watching = 0 })
}

func exec(s *Session, _ [][]byte) error {
	switch {
	case s.multi == nil:
		return replyError("ERR EXEC without MULTI")
	case s.multi.failed:
		s.discard()
		return errExecFailed
	}
	x := s.newExecution()
	s.multi = nil // what is executed is not queued
	s.client.change(func(i *clientInfo) { i.queued = -1 })
	if x.long {
		slots := s.engine.asides
		if x.scripts {
			slots = s.engine.scripts
		}
		s.asideIn(slots, x.run, func(s *Session) { s.finishExec(x) })
		return nil
	}
	x.run()
	s.finishExec(x)
	return nil
}

// finishExec replies with what an execution left, and takes over what its commands made of the session.
func (s *Session) finishExec(x *execution) {
	s.unwatch()
	if x.inner == nil {
		s.w.NullArray()
		return
	}
	s.w.Array(len(x.queued))
	s.w.Buf = append(s.w.Buf, x.inner.w.Buf...)
	s.db, s.replies = x.inner.db, x.inner.replies
	if x.inner.status == Close {
		s.status = Close
	}
}

// execution is EXEC at work.
type execution struct {
	session *Session // which waits
	queued  []queuedCommand
	keys    []shard.Key // of all commands, and those watched
	whole   bool        // a command is about all keys
	scripts bool        // a command is a script, which may take long
	long    bool        // worth a goroutine
	inner   *Session    // what has executed the commands; nil if a watched key had changed
}

const longExec = 1000 // commands

func (s *Session) newExecution() *execution {
	x := &execution{session: s, queued: s.multi.queued, keys: s.watched}
	db := s.db
	for _, q := range x.queued {
		x.whole = x.whole || q.row.flags&flagWhole != 0
		x.scripts = x.scripts || q.row.flags&flagScript != 0
		q.row.keys.eachKey(q.args, func(name []byte) { x.keys = append(x.keys, shard.Key{DB: db, Name: name}) })
		if q.row.name == "select" {
			if n, err := s.database(q.args[1]); err == nil {
				db = n
			}
		}
	}
	x.long = x.whole || x.scripts || len(x.queued) > longExec
	return x
}

// run executes the commands as one step, unless a watched key has changed.
func (x *execution) run() {
	e := x.session.engine
	nowNs := e.config.Now()
	switch {
	case x.whole:
		all := e.config.Store.BeginAll(nowNs)
		defer all.End()
		x.execute(all, nowNs)
	case x.scripts:
		e.optimistically(x.keys, func(tx *shard.Tx, nowNs int64) (keep bool) {
			x.execute(tx.ByKey(), nowNs)
			return true
		})
	default:
		tx := e.config.Store.Begin(nowNs, x.keys)
		defer tx.Rollback()
		x.execute(tx.ByKey(), nowNs)
		tx.Commit()
	}
}

func (x *execution) execute(in keySpace, nowNs int64) {
	x.inner = nil
	if w := x.session.watch; w != nil && w.Dirty(nowNs) {
		return
	}
	s := x.session.child(inExec)
	s.enter(in, nowNs)
	defer s.leave()
	for _, q := range x.queued {
		if err := s.stillAllowed(q); err != nil {
			s.fail(err)
			continue
		}
		s.call(q.row, q.args)
		s.flush()
	}
	x.inner = s
}

// stillAllowed refuses what the user was allowed when it was queued, and is not any more.
func (s *Session) stillAllowed(q queuedCommand) error {
	if s.user.Unrestricted() || s.permit(q.row, q.args) == nil {
		return nil
	}
	return errACLChanged
}
