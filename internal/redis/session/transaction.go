package session

import (
	"strconv"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// ownHandlers returns the handlers of commands about the conversation.
func ownHandlers() map[string]execute.Handler {
	return map[string]execute.Handler{
		"multi":   own(beginMulti),
		"discard": own(discard),
		"exec":    own(exec),
		"watch":   own(watch),
		"unwatch": {Own: unwatch},
	}
}

// own returns the handler of an unqueued command for clients only.
func own(f func(s *Session, args [][]byte) error) execute.Handler {
	return execute.Handler{Own: func(x *execute.Executor, args [][]byte) error { return f((*Session)(x.Role.(*clientRole)), args) }}
}

func beginMulti(s *Session, _ [][]byte) error {
	switch {
	case s.multi != nil:
		return reply.ErrNestedMulti
	case !s.engine.Transacts():
		return reply.ErrNoTransactions
	}
	s.setMulti(&transact.Queue{})
	s.x.Client.Change(func(i *clients.Info) { i.Queued = 0 })
	s.x.W.OK()
	return nil
}

// setMulti sets or, with nil, clears the queue.
func (s *Session) setMulti(q *transact.Queue) {
	s.multi = q
	if q == nil {
		s.x.Forbidden = 0
	} else {
		s.x.Forbidden |= catalog.FlagNoMulti
	}
}

// queue keeps a command for EXEC.
func (s *Session) queue(h parsed) {
	m := s.multi
	nowNs := s.engine.Config.Now()
	s.x.Client.Active(h.command, nowNs)
	if m.Failed || s.watched != nil && s.watched.Watch.Dirty(nowNs) { // it will not be executed
		s.x.W.Status("QUEUED")
		return
	}
	size, limit := h.argsBytes(), s.engine.Config.Limits.MaxCommandBytes
	if m.Bytes()+size > limit {
		s.reject(h, reply.TooLong("transaction is", limit, "--max-command-bytes"))
		return
	}
	m.Add(h.command, h.kept(), size, h.bytes()-size)
	s.x.Client.Change(func(i *clients.Info) { i.Queued = int32(len(m.Steps)) })
	s.x.Client.Hold(clients.Queue, m.Memory())
	s.x.W.Status("QUEUED")
}

func discard(s *Session, _ [][]byte) error {
	if s.multi == nil {
		return reply.Error("ERR DISCARD without MULTI")
	}
	s.discard()
	s.x.W.OK()
	return nil
}

// discard drops the transaction and the watched keys.
func (s *Session) discard() {
	s.setMulti(nil)
	s.x.Client.Change(func(i *clients.Info) { i.Queued = -1 })
	s.x.Client.Hold(clients.Queue, 0)
	s.unwatch(&s.x)
}

func watch(s *Session, args [][]byte) error {
	switch {
	case s.multi != nil:
		return reply.Error("ERR WATCH inside MULTI is not allowed")
	case s.engine.Watcher == nil:
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
	keys, size := transact.Clone(s.x.DB, args[1:])
	if most := s.engine.Config.Limits.MaxCommandBytes; w.Bytes+size > most {
		return reply.Error(reply.TooLong("the watched keys are", most, "--max-command-bytes").Error() + "; EXEC or UNWATCH first")
	}
	s.watched = w
	w.Keys = append(w.Keys, keys...)
	w.Bytes += size
	s.x.Client.Hold(clients.WatchedKeys, w.Memory()) // before it is taken
	return s.watchOn(keys)
}

// watchStep is the number of keys watched or unwatched in one turn.
const watchStep = 1000

// watchOn watches keys in steps.
func (s *Session) watchOn(keys []store.Key) error {
	w, step := s.watched, keys[:min(len(keys), watchStep)]
	if w.Watch == nil {
		w.Watch = s.engine.Watcher.Watch(s.engine.Config.Now(), step)
	} else {
		w.Watch.Add(s.engine.Config.Now(), step)
	}
	if rest := keys[len(step):]; len(rest) > 0 {
		s.waitForTask(&s.x, func(*execute.Executor) error { return s.watchOn(rest) }).Finish()
		return nil
	}
	s.x.Client.Change(func(i *clients.Info) { i.Watched = int32(len(w.Keys)) })
	s.x.W.OK()
	noteWatched(&s.x, len(step))
	return nil
}

// noteWatched ends the session's turn after many watched or unwatched keys.
func noteWatched(x *execute.Executor, keys int) {
	if x.Scratch == nil { // the session ends
		return
	}
	if x.Scratch.WatchedKeys += keys; x.Scratch.WatchedKeys >= watchStep && x.Status == peer.NeedInput {
		x.Status = peer.More
	}
}

// unwatch is UNWATCH. In EXEC nothing is watched.
func unwatch(x *execute.Executor, _ [][]byte) error {
	if r, ok := x.Role.(*clientRole); ok {
		r.unwatch(x)
	}
	x.W.OK()
	return nil
}

// watching holds a session's watched keys.
type watching struct {
	watched *transact.Watched // nil without WATCH
}

func (w *watching) unwatch(x *execute.Executor) {
	if w.watched == nil {
		return
	}
	w.watched.Watch.Close()
	noteWatched(x, len(w.watched.Keys))
	w.watched = nil
	x.Client.Change(func(i *clients.Info) { i.Watched = 0 })
	x.Client.Hold(clients.WatchedKeys, 0)
}
