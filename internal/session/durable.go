package session

import (
	"bytes"
	"sync/atomic"

	"cellserver/internal/catalog"
	"cellserver/internal/clients"
	"cellserver/internal/peer"
	"cellserver/internal/reply"
)

// mayUseStore refuses what must wait until the store is loaded, and what could not be kept.
func (s *Session) mayUseStore(c *catalog.Command) error {
	k := s.engine.config.Keeper
	switch {
	case k == nil:
		return nil
	case c.Flags&catalog.FlagLoading == 0 && k.Loading():
		return reply.ErrLoading
	case c.Flags&catalog.FlagWrite != 0 && !c.Batches && k.Frozen(): // the store itself knows which calls of a batch change nothing
		return reply.ErrMisconf
	}
	return nil
}

// isFrozen says whether nothing can be kept now. Units that are given back are refused then whatever the key is, for their reply does
// not say whether it has changed, and would wait with those that tell of a change.
func (s *Session) isFrozen() bool {
	k := s.engine.config.Keeper
	return k != nil && k.Frozen()
}

// unsynced is replies that tell of changes which are not on the disk yet.
type unsynced struct {
	synced  atomic.Bool
	conn    atomic.Pointer[peer.Conn] // nil once the client has gone: whoever syncs keeps nothing else of it
	replies []byte
	status  peer.Status // of the Feed that they are from
}

func (u *unsynced) sync() {
	u.synced.Store(true)
	if conn := u.conn.Load(); conn != nil {
		(*conn).Wake()
	}
}

func (u *unsynced) abandon() {
	u.conn.Store(nil)
	u.replies = nil
}

// confirm keeps the replies behind a place back, if they tell of a change, until that is on the disk.
func (s *Session) confirm(from int) {
	wrote := s.wrote
	s.wrote = false
	k := s.engine.config.Keeper
	if !wrote || k == nil || !k.Confirms() || len(s.w.Buf) == from {
		return
	}
	u := &unsynced{replies: bytes.Clone(s.w.Buf[from:]), status: s.status}
	s.w.Buf = s.w.Buf[:from]
	s.unsynced, s.status = u, peer.Waiting
	s.client.Hold(clients.Unsynced, len(u.replies))
	u.conn.Store(&s.client.Conn)
	k.Sync(u.sync)
}

// release replies what was kept back. It is false while that must wait, and where nothing is to come behind it.
func (s *Session) release(hasInput bool) bool {
	u := s.unsynced
	if !u.synced.Load() {
		s.status = peer.Waiting
		return false
	}
	s.w.Buf = append(s.w.Buf, u.replies...)
	s.unsynced = nil
	s.client.Hold(clients.Unsynced, 0)
	if u.status == peer.Close || u.status == peer.Abort {
		s.status = u.status
		return false
	}
	if hasInput { // or these replies would wait for what that changes, too
		s.status = peer.More
	}
	return !hasInput
}
