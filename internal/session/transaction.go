package session

import (
	"bytes"
	"strconv"

	"cellserver/internal/argument"
	"cellserver/internal/catalog"
	"cellserver/internal/clients"
	"cellserver/internal/reply"
	"cellserver/internal/store"
)

// ownHandlers are of the commands that are about the session itself.
func ownHandlers() map[string]Handler {
	return map[string]Handler{
		"multi":      {own: multi},
		"discard":    {own: discardCommand},
		"exec":       {own: exec},
		"watch":      {own: watch},
		"unwatch":    {own: unwatchCommand},
		"eval":       {own: eval},
		"eval_ro":    {own: evalRO},
		"evalsha":    {own: evalSHA},
		"evalsha_ro": {own: evalSHARO},
	}
}

// transaction is the commands between MULTI and EXEC.
type transaction struct {
	queued []queuedCommand
	bytes  int
	failed bool // a command was refused, so EXEC refuses them all
}

type queuedCommand struct {
	command *catalog.Command
	args    [][]byte
}

// watched is what WATCH has said.
type watched struct {
	watch store.Watch
	keys  []store.Key
	bytes int // of their names
}

// queuedArgBytes is what an argument costs beside its bytes.
const queuedArgBytes = 24

func multi(s *Session, _ [][]byte) error {
	switch {
	case s.multi != nil:
		return errNestedMulti
	case s.engine.txs == nil:
		return errNoTransactions
	}
	s.multi = &transaction{}
	s.client.Change(func(i *clients.Info) { i.Queued = 0 })
	s.w.OK()
	return nil
}

// queue keeps a command for EXEC.
func (s *Session) queue(h held) {
	m := s.multi
	nowNs := s.now()
	s.client.Active(h.command, nowNs)
	if m.failed || s.watched != nil && s.watched.watch.Dirty(nowNs) { // it will not be executed
		s.w.Status("QUEUED")
		return
	}
	for _, arg := range h.args {
		m.bytes += len(arg) + queuedArgBytes
	}
	if limit := s.engine.config.Limits.MaxCommandBytes; m.bytes > limit {
		s.reject(h, reply.TooLong("transaction is", limit, "--max-command-bytes"))
		return
	}
	m.queued = append(m.queued, queuedCommand{h.command, argument.CloneAll(h.args)})
	s.client.Change(func(i *clients.Info) { i.Queued = len(m.queued) })
	s.w.Status("QUEUED")
}

func discardCommand(s *Session, _ [][]byte) error {
	if s.multi == nil {
		return reply.Error("ERR DISCARD without MULTI")
	}
	s.discard()
	s.w.OK()
	return nil
}

// discard forgets the transaction, and what was watched for it.
func (s *Session) discard() {
	s.multi = nil
	s.client.Change(func(i *clients.Info) { i.Queued = -1 })
	s.unwatch()
}

const maxWatched = 10_000 // keys of one client

func watch(s *Session, args [][]byte) error {
	switch {
	case s.multi != nil:
		return reply.Error("ERR WATCH inside MULTI is not allowed")
	case s.engine.watcher == nil:
		return errNoWatch
	}
	w := s.watched
	if w == nil {
		w = &watched{}
	}
	keys := make([]store.Key, len(args)-1)
	size := w.bytes
	for i, name := range args[1:] {
		keys[i] = store.Key{DB: s.db, Name: bytes.Clone(name)}
		size += len(name)
	}
	switch most := s.engine.config.Limits.MaxCommandBytes; {
	case len(w.keys)+len(keys) > maxWatched:
		return reply.Error("ERR more than " + strconv.Itoa(maxWatched) + " keys are watched; EXEC or UNWATCH first")
	case size > most:
		return reply.Error(reply.TooLong("the watched keys are", most, "--max-command-bytes").Error() + "; EXEC or UNWATCH first")
	}
	if s.watched == nil {
		w.watch = s.engine.watcher.Watch(s.now(), keys)
		s.watched = w
	} else {
		w.watch.Add(s.now(), keys)
	}
	w.keys, w.bytes = append(w.keys, keys...), size
	s.client.Change(func(i *clients.Info) { i.Watched = len(w.keys) })
	s.w.OK()
	return nil
}

func unwatchCommand(s *Session, _ [][]byte) error {
	s.unwatch()
	s.w.OK()
	return nil
}

func (s *Session) unwatch() {
	if s.watched == nil {
		return
	}
	s.watched.watch.Close()
	s.watched = nil
	s.client.Change(func(i *clients.Info) { i.Watched = 0 })
}
