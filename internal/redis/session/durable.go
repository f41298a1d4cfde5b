package session

import (
	"bytes"
	"slices"
	"sync/atomic"

	"cellserver/internal/decide"
	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/peer"
)

// confirms reports whether replies to changes wait for the disk.
func confirms(x *execute.Executor) bool {
	k := x.Engine.Config.Keeper
	return k != nil && k.Confirms()
}

// untold runs do where a client gets no reply, so that none waits for the disk.
func untold(x *execute.Executor, do func()) {
	notes := x.Scratch.NotesTold
	x.Scratch.NotesTold = false
	do()
	x.Scratch.NotesTold = notes
}

// unsynced holds replies that report changes not yet on disk.
type unsynced struct {
	state   atomic.Int32              // isUnsynced, then finally another
	conn    atomic.Pointer[peer.Conn] // nil after the client's end, as the log keeps u
	replies []byte
	asked   decide.Ask     // whose decisions wait, instead of replies; else nil
	from    int            // of those decisions
	told    []execute.Told // those that report a change
	status  peer.Status    // of their Feed
	sent    int            // bytes sent, or replaced by an error
	// toTheEnd is set if the last reply reports a change.
	toTheEnd bool
}

// States of unsynced replies:
const (
	isUnsynced int32 = iota
	isSynced
	isLate // beyond the disk's time
)

// end releases the replies.
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
	u.replies, u.asked, u.told = nil, nil, nil
}

// confirming holds a session's unconfirmed replies.
type confirming struct {
	unsynced *unsynced // nil without any
}

// confirm holds back the replies after from that report a change, until it is on disk.
func (c *confirming) confirm(x *execute.Executor, from int) {
	wrote := x.Wrote
	x.Wrote = false
	if !wrote || !confirms(x) || x.Replied() == from {
		return
	}
	u := &unsynced{told: slices.Clone(x.Scratch.Told), status: x.Status}
	if n := len(u.told); n > 0 {
		u.toTheEnd = u.told[n-1].To == x.Replied()
	}
	for i := range u.told {
		u.told[i].From, u.told[i].To = u.told[i].From-from, u.told[i].To-from
	}
	if u.asked = x.Asked; u.asked != nil {
		u.from = from
	} else {
		u.replies, x.W.Buf = bytes.Clone(x.W.Buf[from:]), x.W.Buf[:from]
	}
	c.unsynced, x.Status = u, peer.Waiting
	x.Client.Hold(clients.Unsynced, u.bytes())
	u.conn.Store(&x.Client.Conn)
	x.Engine.Config.Keeper.Confirm(u.end)
}

func (u *unsynced) bytes() int {
	if u.asked != nil {
		return u.asked.Bytes()
	}
	return len(u.replies)
}

// unhold sends the held replies. It returns false while they must wait, and if nothing may follow them.
func (c *confirming) unhold(x *execute.Executor, hasInput bool) bool {
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
	u.replyTo(x, len(u.replies))
	c.unsynced = nil
	x.Client.Hold(clients.Unsynced, 0)
	if u.status == peer.Close || u.status == peer.Abort {
		x.Status = u.status
		return false
	}
	if hasInput { // else these would wait for its changes, too
		x.Status = peer.More
	}
	return !hasInput
}

// replyTo sends the held replies up to a position.
func (u *unsynced) replyTo(x *execute.Executor, to int) {
	if u.asked == nil {
		x.W.Buf = append(x.W.Buf, u.replies[u.sent:to]...)
	}
}

// replyLate replaces replies that report a change by errors. It returns false if more remain: errors may be
// much longer, and are sent in parts.
func (u *unsynced) replyLate(x *execute.Executor) (all bool) {
	if u.asked != nil {
		for _, t := range u.told {
			x.FailLate(u.from+t.From, u.from+t.To)
		}
		return true
	}
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
