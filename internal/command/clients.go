package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/peer"
)

// client is what others may know of a session: CLIENT LIST, INFO. All its methods are safe for concurrent use.
type client struct {
	id      int64
	peer    peer.Peer
	conn    peer.Conn
	created time.Time

	last     atomic.Pointer[row] // the command that it sent last
	activeNs atomic.Int64        // when that was, by the engine's clock

	mu   sync.Mutex // guards info
	info clientInfo
}

// clientInfo is what of a session can change. Its session changes it, others read it.
type clientInfo struct {
	name, libName, libVersion, user string

	db       int
	resp3    bool
	queued   int // commands behind MULTI, -1 without it
	watching int // keys
	noEvict  bool
	noTouch  bool
	tracking tracking
	monitor  bool
}

// touch notes that the client has sent a command.
func (c *client) touch(r *row, nowNs int64) {
	if c.last.Load() != r { // a store costs more than a look
		c.last.Store(r)
	}
	c.activeNs.Store(nowNs)
}

func (c *client) change(do func(*clientInfo)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(&c.info)
}

func (c *client) snapshot() clientInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

// flags are those of Redis's CLIENT LIST.
func (c *client) flags(i *clientInfo) string {
	var b strings.Builder
	for _, f := range []struct {
		on     bool
		letter byte
	}{{i.monitor, 'O'}, {c.peer.Unix, 'U'}, {i.queued >= 0, 'x'}, {i.tracking.on, 't'}, {i.noEvict, 'e'}, {i.noTouch, 'T'}} {
		if f.on {
			b.WriteByte(f.letter)
		}
	}
	if b.Len() == 0 {
		return "N"
	}
	return b.String()
}

// line describes the client in the fields of Redis 7.2 and in their order, for clients parse them. Those that mean
// nothing here are 0, or -1 for the descriptor.
func (c *client) line(nowNs int64) string {
	i := c.snapshot()
	protocol, lastName := 2, "NULL"
	if i.resp3 {
		protocol = 3
	}
	if last := c.last.Load(); last != nil {
		lastName = last.fullName()
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=%s db=%d sub=0 psub=0 ssub=0 "+
		"multi=%d watch=%d qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r "+
		"cmd=%s user=%s redir=%d resp=%d lib-name=%s lib-ver=%s\n",
		c.id, c.peer.Addr, c.peer.LocalAddr, i.name, int(time.Since(c.created).Seconds()), c.idleSec(nowNs),
		c.flags(&i), i.db, i.queued, i.watching, lastName, i.user, i.tracking.redirect(), protocol, i.libName, i.libVersion)
}

func (c *client) idleSec(nowNs int64) int64 {
	activeNs := c.activeNs.Load()
	if activeNs == 0 { // it has not said anything
		return int64(time.Since(c.created).Seconds())
	}
	return max(0, nowNs-activeNs) / int64(time.Second)
}

// clients is the sessions that are connected. It is safe for concurrent use.
type clients struct {
	mu   sync.Mutex // guards all below
	byID map[int64]*client
	last int64
}

func (cs *clients) add(c *client) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.last++
	c.id = cs.last
	cs.byID[c.id] = c
}

func (cs *clients) remove(c *client) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.byID, c.id)
}

// all returns the clients that are wanted, the oldest first.
func (cs *clients) all(wanted func(*client) bool) []*client {
	cs.mu.Lock()
	found := make([]*client, 0, len(cs.byID))
	for _, c := range cs.byID {
		found = append(found, c)
	}
	cs.mu.Unlock()
	found = slices.DeleteFunc(found, func(c *client) bool { return !wanted(c) })
	slices.SortFunc(found, func(a, b *client) int { return cmp.Compare(a.id, b.id) })
	return found
}

// those returns the clients that have one of the numbers, in the order of the numbers. A number counts once, or a
// command could ask for hundreds of times its length.
func (cs *clients) those(ids []int64) (found []*client) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	listed := make(map[int64]bool)
	for _, id := range ids {
		if c := cs.byID[id]; c != nil && !listed[id] {
			listed[id] = true
			found = append(found, c)
		}
	}
	return found
}
