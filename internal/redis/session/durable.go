package session

import (
	"bytes"
	"slices"
	"sync/atomic"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/peer"
)

// confirms reports whether replies that tell of a change wait for the disk.
func confirms(x *execute.Executor) bool {
	k := x.Engine.Config.Keeper
	return k != nil && k.Confirms()
}

// untold does something whose replies are not wanted.
func untold(x *execute.Executor, do func()) {
	notes := x.Scratch.NotesTold
	x.Scratch.NotesTold = false
	do()
	x.Scratch.NotesTold = notes
}

// unsynced is replies that tell of changes which are not on the disk yet.
type unsynced struct {
	state   atomic.Int32              // isUnsynced, and then one of the others for good
	conn    atomic.Pointer[peer.Conn] // nil once the client has gone: whoever syncs keeps nothing else of it
	replies []byte
	answers []reply.Answer // in place of replies, to a door that has them as values
	told    []execute.Told // those of them that tell of a change
	status  peer.Status    // of the Feed that they are from
	sent    int            // bytes of replies, or answers, that were replied, or had an error in their place
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
	u.replies, u.answers, u.told = nil, nil, nil
}

// confirming is a session's place for the replies that wait for the disk.
type confirming struct {
	unsynced *unsynced // nil where there are none
}

// confirm keeps the replies behind a place back, if they tell of a change, until that is on the disk.
func (c *confirming) confirm(x *execute.Executor, from int) {
	wrote := x.Wrote
	x.Wrote = false
	if !wrote || !confirms(x) || x.Replied() == from {
		return
	}
	u := &unsynced{told: slices.Clone(x.Scratch.Told), status: x.Status}
	for i := range u.told {
		u.told[i].From, u.told[i].To = u.told[i].From-from, u.told[i].To-from
	}
	if x.Valued {
		u.answers, x.Scratch.Answers = slices.Clone(x.Scratch.Answers[from:]), x.Scratch.Answers[:from]
	} else {
		u.replies, x.W.Buf = bytes.Clone(x.W.Buf[from:]), x.W.Buf[:from]
	}
	c.unsynced, x.Status = u, peer.Waiting
	x.Client.Hold(clients.Unsynced, u.bytes())
	u.conn.Store(&x.Client.Conn)
	x.Engine.Config.Keeper.Confirm(u.end)
}

// answerBytes is what an Answer takes.
const answerBytes = 72

// bytes is what the replies take.
func (u *unsynced) bytes() int { return len(u.replies) + len(u.answers)*answerBytes }

// release replies what was kept back. It is false while that must wait, and where nothing is to come behind
// it.
func (c *confirming) release(x *execute.Executor, hasInput bool) bool {
	u := c.unsynced
	switch u.state.Load() {
	case isUnsynced:
		x.Status = peer.Waiting
		return false
	case isLate:
		if !u.replyLate(x) {
			x.Status = peer.More
			return false
		}
	}
	u.replyTo(x, len(u.replies)+len(u.answers))
	c.unsynced = nil
	x.Client.Hold(clients.Unsynced, 0)
	if u.status == peer.Close || u.status == peer.Abort {
		x.Status = u.status
		return false
	}
	if hasInput { // or these replies would wait for what that changes, too
		x.Status = peer.More
	}
	return !hasInput
}

// replyTo replies what was kept back, up to a place.
func (u *unsynced) replyTo(x *execute.Executor, to int) {
	if x.Valued {
		x.Scratch.Answers = append(x.Scratch.Answers, u.answers[u.sent:to]...)
	} else {
		x.W.Buf = append(x.W.Buf, u.replies[u.sent:to]...)
	}
}

// replyLate replies an error in place of each reply that tells of a change, and what is in front of it. It is
// false where more of that is left: the errors may be much longer than the replies, and are sent in parts.
func (u *unsynced) replyLate(x *execute.Executor) (all bool) {
	most := x.Replied() + feedBytes
	for ; len(u.told) > 0; u.told = u.told[1:] {
		t := &u.told[0]
		if u.sent <= t.From {
			u.replyTo(x, t.From)
			u.sent = t.To
		}
		for ; t.Replies > 0; t.Replies-- {
			if x.Replied() >= most {
				return false
			}
			x.Fail(nil, nil, reply.ErrUnconfirmed)
		}
	}
	return true
}
