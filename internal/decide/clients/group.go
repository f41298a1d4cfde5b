package clients

import (
	"bytes"
	"sync"
	"sync/atomic"

	"cellserver/internal/base/buffers"
)

// Group is the clients that get the same lines: those of MONITOR, or of a channel.
type Group struct {
	Held Holding // the kind of memory of the lines

	listening atomic.Int64 // checked by every command

	pool buffers.Pool // of the lines

	mu  sync.Mutex // rank 60: guards all
	all map[*Listener]struct{}
}

// Listener holds the lines to send to a client.
type Listener struct {
	Client *Client

	group *Group

	mu    sync.Mutex // rank 65: guards all below
	lines buffers.Queue
	woken bool // the session has been woken
}

// Channel is the subscribers to a name. A message is a line.
type Channel struct {
	Name string
	Group
}

// NewChannels returns at most maxChannels channels without subscribers.
func NewChannels(names ...string) []*Channel {
	all := make([]*Channel, len(names))
	for i, name := range names {
		all[i] = &Channel{name, Group{Held: Messages + Holding(i)}}
	}
	return all
}

// MaxBacklogBytes bounds the backlog of a client, in addition to its connection's buffers.
const MaxBacklogBytes = 8 << 20

func (g *Group) Any() bool { return g.listening.Load() > 0 }

func (g *Group) Len() int { return int(g.listening.Load()) }

// Begin starts sending all lines to a client.
func (g *Group) Begin(c *Client) *Listener {
	l := &Listener{Client: c, group: g}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil {
		g.all = map[*Listener]struct{}{}
	}
	g.all[l] = struct{}{}
	g.listening.Store(int64(len(g.all)))
	return l
}

// End stops sending; the backlog can still be taken.
func (l *Listener) End() {
	l.group.mu.Lock()
	defer l.group.mu.Unlock()
	l.group.removeLocked(l)
}

// Abandon is End for a disconnected client.
func (l *Listener) Abandon() {
	l.End()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines.Clear(&l.group.pool)
}

func (g *Group) removeLocked(l *Listener) {
	delete(g.all, l)
	g.listening.Store(int64(len(g.all)))
}

// Send adds lines for all listening clients, and returns those dropped for their backlog.
func (g *Group) Send(lines []byte) (dropped []*Listener) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for l := range g.all {
		behind, gone := l.add(lines)
		if behind || gone {
			g.removeLocked(l)
		}
		if behind {
			dropped = append(dropped, l)
		}
	}
	return dropped
}

// add reports an excessive backlog, and whether the client is already being closed: its memory is not counted
// then.
func (l *Listener) add(lines []byte) (behind, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pool := &l.group.pool
	if behind = l.lines.Len()+len(lines) > MaxBacklogBytes; !behind {
		l.lines.Add(pool, lines)
		gone = !l.Client.Hold(l.group.Held, l.lines.Held())
	}
	if behind || gone {
		l.lines.Clear(pool)
		return behind, gone
	}
	if !l.woken {
		l.woken = true
		l.Client.Conn.Wake()
	}
	return false, false
}

// Take appends whole lines of about most bytes to b, and reports whether more remain.
func (l *Listener) Take(b []byte, maxBytes int) (_ []byte, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for left, whole := maxBytes, false; !whole && l.lines.Len() > 0; {
		front := l.lines.Front()
		if len(front) > left {
			if end := bytes.IndexByte(front[left:], '\n'); end >= 0 {
				front, whole = front[:left+end+1], true
			}
		}
		b = append(b, front...)
		left = max(0, left-len(front))
		l.lines.Take(&l.group.pool, len(front))
	}
	l.Client.Hold(l.group.Held, l.lines.Held())
	l.woken = l.lines.Len() > 0
	return b, l.woken
}
