package session

import (
	"context"
	"slices"

	"cellserver/internal/acl"
	"cellserver/internal/argument"
	"cellserver/internal/catalog"
	"cellserver/internal/clients"
	"cellserver/internal/peer"
	"cellserver/internal/reply"
	"cellserver/internal/store"
)

func exec(s *Session, args [][]byte) error {
	switch {
	case s.multi == nil:
		return reply.Error("ERR EXEC without MULTI")
	case s.multi.failed:
		s.discard()
		return errExecFailed
	}
	x := s.newExecution()
	if refused := x.notWithKeys(); refused != nil {
		s.multi.failed = true
		s.discard()
		return reply.ExecAborted(errNotWithKeys(refused))
	}
	x.name = string(args[0])
	s.multi = nil // what is executed is not queued
	if x.long {
		slots := s.engine.background
		if x.scripts {
			slots = s.engine.scripts
		}
		return s.inBackground(slots, x.run, func(s *Session) error {
			s.finishExec(x)
			return nil
		})
	}
	x.run(context.Background())
	s.finishExec(x)
	return nil
}

// finishExec replies with what an execution left, and takes over what its commands made of the session.
func (s *Session) finishExec(x *execution) {
	s.unwatch()
	s.client.Change(func(i *clients.Info) { i.Queued = -1 })
	var left inner
	if x.session != nil {
		s.db, left = x.session.db, *x.session.inner
	}
	if s.monitored {
		left.monitored = s.appendLine(left.monitored, s.role == inScript, [][]byte{[]byte(x.name)})
	}
	s.settle(&left)
	if x.session == nil {
		s.w.NullArray()
		return
	}
	s.w.Array(len(x.queued))
	s.w.Buf = append(s.w.Buf, x.session.w.Buf...)
	if x.session.replies != x.replies {
		s.replies = x.session.replies
	}
	if x.session.status == peer.Close {
		s.status = peer.Close
	}
}

// execution is EXEC at work.
type execution struct {
	client  *Session // which waits
	queued  []queuedCommand
	watch   store.Watch // nil without WATCH
	keys    []store.Key // of all commands and, where there are some, those watched
	replies replyMode   // in the beginning
	whole   bool        // a command is about all keys
	scripts bool        // a command is a script, which may take long
	once    bool        // a command does more than to change keys, so it must not be executed again
	long    bool        // worth a goroutine
	name    string      // as the client spells it
	session *Session    // what has executed the commands; nil if a watched key had changed
}

const longExec = 1000 // commands, or keys

func (s *Session) newExecution() *execution {
	x := &execution{client: s, queued: s.multi.queued, replies: s.replies}
	db := s.db
	for _, q := range x.queued {
		f := q.command.Flags
		x.whole = x.whole || f&catalog.FlagWhole != 0
		x.scripts = x.scripts || f&catalog.FlagScript != 0
		x.once = x.once || f&(catalog.FlagWrite|catalog.FlagReadonly|catalog.FlagScript|catalog.FlagFast) == 0
		x.long = x.long || q.command.Long && q.command.Keys.First == 0
		q.command.Keys.Each(q.args, func(name []byte) { x.keys = append(x.keys, store.Key{DB: db, Name: name}) })
		if q.command.Name == "select" {
			if n, err := argument.Database(q.args[1], s.engine.config.Databases); err == nil {
				db = n
			}
		}
	}
	if s.watched != nil {
		x.watch = s.watched.watch
		if x.keys != nil {
			x.keys = append(x.keys, s.watched.keys...)
		}
	}
	x.long = x.long || x.whole || x.scripts || len(x.queued) > longExec || len(x.keys) > longExec
	return x
}

// notWithKeys returns a command that must not be executed while keys are held, if any are.
func (x *execution) notWithKeys() *catalog.Command {
	at := slices.IndexFunc(x.queued, func(q queuedCommand) bool { return q.command.Flags&catalog.FlagNotWithKeys != 0 })
	if at < 0 || x.keys == nil && !x.whole {
		return nil
	}
	return x.queued[at].command
}

// run executes the commands as one step, unless a watched key has changed.
func (x *execution) run(ctx context.Context) {
	e := x.client.engine
	nowNs := e.config.Now()
	switch {
	case x.whole:
		all := e.txs.BeginAll(nowNs)
		defer all.End()
		x.execute(ctx, &space{keys: all, all: all, nowNs: nowNs})
	case x.scripts && !x.once:
		e.optimistically(x.keys, func(in *space) (keep bool) {
			x.execute(ctx, in)
			return true
		})
	default:
		tx := e.txs.Begin(nowNs, x.keys)
		defer tx.Rollback()
		x.execute(ctx, &space{keys: tx, nowNs: nowNs})
		tx.Commit()
	}
}

func (x *execution) execute(ctx context.Context, in *space) {
	x.session = nil
	// A session that has ended watches nothing any more, and has ended ctx before.
	if x.watch != nil && (x.watch.Dirty(in.nowNs) || ctx.Err() != nil) {
		return
	}
	// From here on all is executed, or a transaction could be cut in half.
	s := x.client.child(context.WithoutCancel(ctx), inExec, in)
	s.borrow()
	defer s.giveBack()
	for _, q := range x.queued {
		if err := s.mayExecuteQueued(q); err != nil {
			s.fail(err)
			continue
		}
		s.run(held{command: q.command, args: q.args})
		s.flush()
	}
	x.session = s
}

// mayExecuteQueued refuses what EXEC must not do any more.
func (s *Session) mayExecuteQueued(q queuedCommand) error {
	if most := s.engine.config.MaxReplyBytes; len(s.w.Buf) > most {
		return errTooLongReplies(most)
	}
	return s.stillAllowed(q)
}

// stillAllowed refuses what the user was allowed when it was queued, and is not any more.
func (s *Session) stillAllowed(q queuedCommand) error {
	if s.user.Unrestricted() {
		return nil
	}
	switch reason, _ := s.denied(q.command, q.args); reason {
	case acl.Allowed:
		return nil
	case acl.DeniedCommand:
		return errACLChanged + "no permission to execute the command or subcommand"
	default:
		return errACLChanged + "no permission to touch the specified keys"
	}
}
