package command

import (
	"bytes"
	"slices"
	"strconv"

	"cellserver/internal/acl"
	"cellserver/internal/peer"
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
	nowNs := s.now()
	s.client.touch(r, nowNs)
	if m.failed || s.watch != nil && s.watch.Dirty(nowNs) { // it will not be executed
		s.w.Status("QUEUED")
		return
	}
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
	size := s.watchedBytes
	for i, name := range args[1:] {
		keys[i] = s.key(bytes.Clone(name))
		size += len(name)
	}
	switch most := s.engine.config.Limits.MaxCommandBytes; {
	case len(s.watched)+len(keys) > maxWatched:
		return replyError("ERR more than " + strconv.Itoa(maxWatched) + " keys are watched; EXEC or UNWATCH first")
	case size > most:
		return replyError("ERR the watched keys are longer than " + strconv.Itoa(most) +
			" bytes, the limit of --max-command-bytes; EXEC or UNWATCH first")
	}
	if s.watch == nil {
		s.watch = s.engine.config.Store.Watch(s.now(), keys)
	} else {
		s.watch.Add(s.now(), keys)
	}
	s.watched, s.watchedBytes = append(s.watched, keys...), size
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
	s.watch, s.watched, s.watchedBytes = nil, nil, 0
	s.client.change(func(i *clientInfo) { i.watching = 0 })
}

func exec(s *Session, args [][]byte) error {
	switch {
	case s.multi == nil:
		return replyError("ERR EXEC without MULTI")
	case s.multi.failed:
		s.discard()
		return errExecFailed
	}
	x := s.newExecution()
	x.name = string(args[0])
	s.multi = nil // what is executed is not queued
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
	s.client.change(func(i *clientInfo) { i.queued = -1 })
	if x.inner != nil {
		s.db = x.inner.db
	}
	if s.monitored {
		s.tellExec(x)
	}
	if x.inner == nil {
		s.w.NullArray()
		return
	}
	s.w.Array(len(x.queued))
	s.w.Buf = append(s.w.Buf, x.inner.w.Buf...)
	if x.inner.replies != x.replies {
		s.replies = x.inner.replies
	}
	if x.inner.status == peer.Close {
		s.status = peer.Close
	}
}

// execution is EXEC at work.
type execution struct {
	session *Session // which waits
	queued  []queuedCommand
	watch   *shard.Watch // nil without WATCH
	keys    []shard.Key  // of all commands, and those watched
	replies replyMode    // in the beginning
	whole   bool         // a command is about all keys
	scripts bool         // a command is a script, which may take long
	once    bool         // a command does more than to change keys, so it must not be executed again
	long    bool         // worth a goroutine
	name    string       // as the client spells it
	inner   *Session     // what has executed the commands; nil if a watched key had changed
}

const longExec = 1000 // commands, or keys

func (s *Session) newExecution() *execution {
	x := &execution{session: s, queued: s.multi.queued, watch: s.watch, keys: slices.Clone(s.watched), replies: s.replies}
	db := s.db
	for _, q := range x.queued {
		f := q.row.flags
		x.whole = x.whole || f&flagWhole != 0
		x.scripts = x.scripts || f&flagScript != 0
		x.once = x.once || f&(flagWrite|flagReadonly|flagScript|flagFast) == 0
		x.long = x.long || q.row.long && q.row.keys.first == 0
		q.row.keys.eachKey(q.args, func(name []byte) { x.keys = append(x.keys, shard.Key{DB: db, Name: name}) })
		if q.row.name == "select" {
			if n, err := s.database(q.args[1]); err == nil {
				db = n
			}
		}
	}
	x.long = x.long || x.whole || x.scripts || len(x.queued) > longExec || len(x.keys) > longExec
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
	case x.scripts && !x.once:
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
	// A session that has ended watches nothing any more, and says that it has ended before.
	if x.watch != nil && (x.watch.Dirty(nowNs) || x.session.gone.Load()) {
		return
	}
	s := x.session.child(inExec)
	s.enter(in, nowNs)
	defer s.leave()
	for _, q := range x.queued {
		if err := s.mayExecute(q); err != nil {
			s.fail(err)
			continue
		}
		if s.monitored {
			s.callMonitored(q.row, q.args)
		} else {
			s.call(q.row, q.args)
		}
		s.flush()
	}
	x.inner = s
}

// mayExecute refuses what EXEC must not do any more.
func (s *Session) mayExecute(q queuedCommand) error {
	if most := s.engine.config.MaxReplyBytes; len(s.w.Buf) > most {
		return replyError("ERR the replies of the transaction are longer than " + strconv.Itoa(most) +
			" bytes, the limit of --max-output-bytes; this command was not executed")
	}
	return s.stillAllowed(q)
}

// stillAllowed refuses what the user was allowed when it was queued, and is not any more.
func (s *Session) stillAllowed(q queuedCommand) error {
	if s.user.Unrestricted() {
		return nil
	}
	switch reason, _ := s.denied(q.row, q.args); reason {
	case acl.Allowed:
		return nil
	case acl.DeniedCommand:
		return errACLChanged + "no permission to execute the command or subcommand"
	default:
		return errACLChanged + "no permission to touch the specified keys"
	}
}
