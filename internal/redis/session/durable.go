package session

import (
	"bytes"
	"slices"
	"sync/atomic"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// Keeper is what sessions need of what keeps the store on a disk.
type Keeper interface {
	// Loading reports whether what was kept is still being read, so that nothing may be asked of the store.
	Loading() bool
	// Frozen reports whether nothing may be changed, for it could not be kept.
	Frozen() bool
	// Confirms reports whether a reply that tells of a change must wait for Confirm.
	Confirms() bool
	// Confirm calls done once, from any goroutine: with true when all that was changed before is on the disk,
	// and with false if that takes too long.
	Confirm(done func(kept bool))
}

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

// isFrozen says whether nothing can be kept now. Units that are given back are refused then whatever the key
// is, for their reply does not say whether it has changed, and would wait with those that tell of a change.
func (s *Session) isFrozen() bool {
	k := s.engine.config.Keeper
	return k != nil && k.Frozen()
}

// confirms reports whether replies that tell of a change wait for the disk.
func (s *Session) confirms() bool {
	k := s.engine.config.Keeper
	return k != nil && k.Confirms()
}

// told is replies in a row each of which tells of a change that is not on the disk yet.
type told struct{ from, to, replies int }

// noteTold notes that what was replied from a place on is one reply, and tells of a change.
func (s *Session) noteTold(from int) {
	x, to := s.scratch, len(s.w.Buf)
	switch n := len(x.told); {
	case !x.notesTold || from == to:
	case n > 0 && x.told[n-1].to == from:
		x.told[n-1].to, x.told[n-1].replies = to, x.told[n-1].replies+1
	default:
		x.told = append(x.told, told{from, to, 1})
	}
}

// untold does something whose replies are not wanted.
func (s *Session) untold(do func()) {
	notes := s.scratch.notesTold
	s.scratch.notesTold = false
	do()
	s.scratch.notesTold = notes
}

// unsynced is replies that tell of changes which are not on the disk yet.
type unsynced struct {
	state   atomic.Int32              // isUnsynced, and then one of the others for good
	conn    atomic.Pointer[peer.Conn] // nil once the client has gone: whoever syncs keeps nothing else of it
	replies []byte
	told    []told      // those of them that tell of a change
	status  peer.Status // of the Feed that they are from
	sent    int         // bytes of replies that were replied, or had an error in their place
}

// The states of unsynced replies.
const (
	isUnsynced int32 = iota
	isSynced
	isLate // the disk has not taken the changes in time
)

// end has the replies wait no longer.
func (u *unsynced) end(kept bool) {
	state := isLate
	if kept {
		state = isSynced
	}
	u.state.CompareAndSwap(isUnsynced, state)
	if conn := u.conn.Load(); conn != nil {
		(*conn).Wake()
	}
}

func (u *unsynced) abandon() {
	u.conn.Store(nil)
	u.replies, u.told = nil, nil
}

// confirm keeps the replies behind a place back, if they tell of a change, until that is on the disk.
func (s *Session) confirm(from int) {
	wrote := s.wrote
	s.wrote = false
	if !wrote || !s.confirms() || len(s.w.Buf) == from {
		return
	}
	u := &unsynced{replies: bytes.Clone(s.w.Buf[from:]), told: slices.Clone(s.scratch.told), status: s.status}
	for i := range u.told {
		u.told[i].from, u.told[i].to = u.told[i].from-from, u.told[i].to-from
	}
	s.w.Buf = s.w.Buf[:from]
	s.unsynced, s.status = u, peer.Waiting
	s.client.Hold(clients.Unsynced, len(u.replies))
	u.conn.Store(&s.client.Conn)
	s.engine.config.Keeper.Confirm(u.end)
}

// release replies what was kept back. It is false while that must wait, and where nothing is to come behind
// it.
func (s *Session) release(hasInput bool) bool {
	u := s.unsynced
	switch u.state.Load() {
	case isUnsynced:
		s.status = peer.Waiting
		return false
	case isLate:
		if !s.replyLate(u) {
			s.status = peer.More
			return false
		}
	}
	s.w.Buf = append(s.w.Buf, u.replies[u.sent:]...)
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

// replyLate replies an error in place of each reply that tells of a change, and what is in front of it. It is
// false where more of that is left: the errors may be much longer than the replies, and are sent in parts.
func (s *Session) replyLate(u *unsynced) (all bool) {
	most := len(s.w.Buf) + feedBytes
	for ; len(u.told) > 0; u.told = u.told[1:] {
		t := &u.told[0]
		if u.sent <= t.from {
			s.w.Buf = append(s.w.Buf, u.replies[u.sent:t.from]...)
			u.sent = t.to
		}
		for ; t.replies > 0; t.replies-- {
			if len(s.w.Buf) >= most {
				return false
			}
			s.fail(held{}, reply.ErrUnconfirmed)
		}
	}
	return true
}
