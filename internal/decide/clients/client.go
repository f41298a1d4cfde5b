// Package clients is the register of connected clients, and what each lets others know of itself: CLIENT LIST, INFO
// and the logs. All of it is safe for concurrent use.
package clients

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/decide/queue"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// Client is a connected client.
type Client struct {
	ID   int64
	Peer peer.Peer
	Conn peer.Conn

	createdNs int64
	last      atomic.Pointer[catalog.Command] // the command that it sent last
	activeNs  atomic.Int64                    // when that was

	awaits atomic.Pointer[queue.Waiter] // its turn, in a command that blocks; else nil

	register *Register               // nil before Add
	account  atomic.Pointer[account] // what it holds; nil as long as that was never much

	mu   sync.Mutex // guards info
	info Info
}

// Info is what can change of a client. Its session changes it, others read it.
type Info struct {
	Name, LibName, LibVersion, User string

	Queued   int // commands behind MULTI, -1 without it
	Watched  int // keys
	Tracking Tracking

	DB                                  uint16
	RESP3, NoEvict, NoTouch, Monitoring bool
}

// Tracking is what CLIENT TRACKING ON said. Its prefixes are never changed, only replaced.
type Tracking struct {
	On, BCast, OptIn, OptOut, NoLoop bool

	Prefixes []string // sorted
}

// Redirect is the client that is told of changes: itself, or -1 for none.
func (t *Tracking) Redirect() int64 {
	if t.On {
		return 0
	}
	return -1
}

// New returns a client that is not registered yet.
func New(p peer.Peer, conn peer.Conn, nowNs int64) *Client {
	return &Client{Peer: p, Conn: conn, createdNs: nowNs, info: Info{Queued: -1}}
}

// Addr is the client's address.
func (c *Client) Addr() string { return c.Peer.Addr }

// Name is what the client calls itself, empty at first.
func (c *Client) Name() string { return c.Info().Name }

// Sent notes that the client has sent a command; nil for one that does not exist.
func (c *Client) Sent(command *catalog.Command) {
	if c.last.Load() != command { // a store costs more than a look
		c.last.Store(command)
	}
}

// Active notes that the client has sent a command that is about to be executed.
func (c *Client) Active(command *catalog.Command, nowNs int64) {
	c.Sent(command)
	c.activeNs.Store(nowNs)
}

// Await notes which turn the client waits for; nil for none any more. The client is registered.
func (c *Client) Await(turn *queue.Waiter) {
	before := c.awaits.Swap(turn)
	switch {
	case before == nil && turn != nil:
		c.register.blocked.Add(1)
	case before != nil && turn == nil:
		c.register.blocked.Add(-1)
	}
}

// Awaits returns the turn that the client waits for, or nil.
func (c *Client) Awaits() *queue.Waiter { return c.awaits.Load() }

// Change changes what others know of the client.
func (c *Client) Change(do func(*Info)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(&c.info)
}

// Info returns what others know of the client.
func (c *Client) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

// flags are those of Redis's CLIENT LIST.
func (c *Client) flags(i *Info) string {
	var b strings.Builder
	for _, f := range []struct {
		on     bool
		letter byte
	}{{i.Monitoring, 'O'}, {c.Peer.Unix, 'U'}, {i.Queued >= 0, 'x'}, {c.Awaits() != nil, 'b'}, {i.Tracking.On, 't'}, {i.NoEvict, 'e'}, {i.NoTouch, 'T'}} {
		if f.on {
			b.WriteByte(f.letter)
		}
	}
	if b.Len() == 0 {
		return "N"
	}
	return b.String()
}

// Line describes the client in the fields of Redis 7.2 and in their order, for clients parse them. Those that mean
// nothing here are 0, or -1 for the descriptor.
func (c *Client) Line(nowNs int64) string {
	i := c.Info()
	protocol, lastName := 2, "NULL"
	if i.RESP3 {
		protocol = 3
	}
	if last := c.last.Load(); last != nil {
		lastName = last.FullName()
	}
	held, total := c.Memory()
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=%s db=%d sub=0 psub=0 ssub=0 "+
		"multi=%d watch=%d qbuf=%d qbuf-free=%d argv-mem=%d multi-mem=%d rbs=0 rbp=0 obl=0 oll=0 omem=%d tot-mem=%d events=r "+
		"cmd=%s user=%s redir=%d resp=%d lib-name=%s lib-ver=%s\n",
		c.ID, c.Peer.Addr, c.Peer.LocalAddr, i.Name, c.ageSec(nowNs), c.idleSec(nowNs),
		c.flags(&i), i.DB, i.Queued, i.Watched, held[Input], held[InputFree], held[Arguments], held[Queue],
		held[Output]+held[Unsynced]+held[MonitorLines], total, lastName, i.User, i.Tracking.Redirect(), protocol, i.LibName, i.LibVersion)
}

func (c *Client) ageSec(nowNs int64) int64 { return max(0, nowNs-c.createdNs) / int64(time.Second) }

func (c *Client) idleSec(nowNs int64) int64 {
	activeNs := c.activeNs.Load()
	if activeNs == 0 { // it has not said anything
		return c.ageSec(nowNs)
	}
	return max(0, nowNs-activeNs) / int64(time.Second)
}
