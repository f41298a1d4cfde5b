package session

import (
	"strconv"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
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

		"script|load": {own: scriptLoad},
	}
}

func multi(s *Session, _ [][]byte) error {
	switch {
	case s.multi != nil:
		return reply.ErrNestedMulti
	case s.engine.txs == nil && s.engine.remote == nil:
		return reply.ErrNoTransactions
	}
	s.multi = &transact.Queue{}
	s.client.Change(func(i *clients.Info) { i.Queued = 0 })
	s.w.OK()
	return nil
}

// queue keeps a command for EXEC.
func (s *Session) queue(h held) {
	m := s.multi
	nowNs := s.now()
	s.client.Active(h.command, nowNs)
	if m.Failed || s.watched != nil && s.watched.Watch.Dirty(nowNs) { // it will not be executed
		s.w.Status("QUEUED")
		return
	}
	size, limit := h.argsBytes(), s.engine.config.Limits.MaxCommandBytes
	if m.Bytes()+size > limit {
		s.reject(h, reply.TooLong("transaction is", limit, "--max-command-bytes"))
		return
	}
	m.Add(h.command, h.kept(), size, h.bytes()-size)
	s.client.Change(func(i *clients.Info) { i.Queued = len(m.Steps) })
	s.client.Hold(clients.Queue, m.Memory())
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
	s.client.Hold(clients.Queue, 0)
	s.unwatch()
}

func watch(s *Session, args [][]byte) error {
	switch {
	case s.multi != nil:
		return reply.Error("ERR WATCH inside MULTI is not allowed")
	case s.engine.watcher == nil:
		return reply.ErrNoWatch
	}
	w := s.watched
	if w == nil {
		w = &transact.Watched{}
	}
	if len(w.Keys)+len(args)-1 > catalog.MaxWatched {
		most := strconv.Itoa(catalog.MaxWatched)
		return reply.Error("ERR more than " + most + " keys are watched; EXEC or UNWATCH first")
	}
	keys, size := transact.Clone(s.db, args[1:])
	if most := s.engine.config.Limits.MaxCommandBytes; w.Bytes+size > most {
		return reply.Error(reply.TooLong("the watched keys are", most, "--max-command-bytes").Error() + "; EXEC or UNWATCH first")
	}
	s.watched = w
	w.Keys = append(w.Keys, keys...)
	w.Bytes += size
	s.client.Hold(clients.WatchedKeys, w.Memory()) // before it is taken
	return s.watchOn(keys)
}

// watchStep is how many keys are watched, or no longer, before others have their turn.
const watchStep = 1000

// watchOn watches keys, a step at a time.
func (s *Session) watchOn(keys []store.Key) error {
	w, step := s.watched, keys[:min(len(keys), watchStep)]
	if w.Watch == nil {
		w.Watch = s.engine.watcher.Watch(s.now(), step)
	} else {
		w.Watch.Add(s.now(), step)
	}
	if rest := keys[len(step):]; len(rest) > 0 {
		s.waitForTask(func(s *Session) error { return s.watchOn(rest) }).Finish()
		return nil
	}
	s.client.Change(func(i *clients.Info) { i.Watched = len(w.Keys) })
	s.w.OK()
	s.noteWatched(len(step))
	return nil
}

// noteWatched has others served before the client's next command once it has had many keys watched, or no longer.
func (s *Session) noteWatched(keys int) {
	if s.scratch == nil { // the session ends
		return
	}
	if s.scratch.watchedKeys += keys; s.scratch.watchedKeys >= watchStep && s.status == peer.NeedInput {
		s.status = peer.More
	}
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
	s.watched.Watch.Close()
	s.noteWatched(len(s.watched.Keys))
	s.watched = nil
	s.client.Change(func(i *clients.Info) { i.Watched = 0 })
	s.client.Hold(clients.WatchedKeys, 0)
}
