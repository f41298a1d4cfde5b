// Package clients is the register of connected clients and their public data: CLIENT LIST, INFO and the logs,
// and sends lines to those who listen. It is safe for concurrent use.
package clients

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/decide/queue"
	"cellserver/internal/store/replicas"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

type Client struct {
	ID   int64
	Peer peer.Peer
	Conn peer.Conn

	createdNs int64
	last      atomic.Pointer[catalog.Command] // the last one sent
	activeNs  atomic.Int64                    // time of the last command

	awaits atomic.Pointer[queue.Waiter] // its turn in a blocking command, or nil

	register *Register               // nil before Add
	account  atomic.Pointer[account] // nil while it holds little

	mu   sync.Mutex // rank 80: guards info
	info Info
}

// Info is a client's changeable data, written by its session and read by others.
type Info struct {
	Name, LibName, LibVersion, User string

	Queued  int32 // commands after MULTI, -1 without it
	Watched int32 // keys

	ReplicaAt *replicas.Address // where a replica's clients are, by REPLCONF; nil if it has not said so

	DB                                  uint16
	RESP3, NoEvict, NoTouch, Monitoring bool
	Tracking                            bool // CLIENT TRACKING ON OPTIN
	Subscribed                          int8 // number of channels
	Replica                             bool // the connection is a replica's
}

// Type is a kind of client of CLIENT LIST and CLIENT KILL.
type Type uint8

// The types. No client is Redis's master: a replica connects to its leader as a client.
const (
	Normal Type = iota
	PubSub
	Replica
)

// Type returns the client's type. A client in MONITOR is normal, though Redis flags it as a replica.
func (i *Info) Type() Type {
	switch {
	case i.Replica && !i.Monitoring:
		return Replica
	case i.Subscribed > 0:
		return PubSub
	}
	return Normal
}

// Redirect returns the ID of the client notified of changes: 0 for itself, -1 for none.
func (i *Info) Redirect() int64 {
	if i.Tracking {
		return 0
	}
	return -1
}

// New returns an unregistered client.
func New(p peer.Peer, conn peer.Conn, nowNs int64) *Client {
	return &Client{Peer: p, Conn: conn, createdNs: nowNs, info: Info{Queued: -1, Name: p.Door.String()}}
}

func (c *Client) Addr() string { return c.Peer.Addr }

// Name returns the client's chosen name, initially its door.
func (c *Client) Name() string { return c.Info().Name }

// Sent records the last command, nil for an unknown one.
func (c *Client) Sent(command *catalog.Command) {
	if c.last.Load() != command { // a load is cheaper than a store
		c.last.Store(command)
	}
}

// Active records a command about to be executed.
func (c *Client) Active(command *catalog.Command, nowNs int64) {
	c.Sent(command)
	c.activeNs.Store(nowNs)
}

// Await records the turn that a registered client waits for, or nil.
func (c *Client) Await(turn *queue.Waiter) {
	before := c.awaits.Swap(turn)
	switch {
	case before == nil && turn != nil:
		c.register.blocked.Add(1)
	case before != nil && turn == nil:
		c.register.blocked.Add(-1)
	}
}

func (c *Client) Awaits() *queue.Waiter { return c.awaits.Load() }

func (c *Client) Change(do func(*Info)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(&c.info)
}

func (c *Client) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

func (c *Client) flags(i *Info) string {
	var b strings.Builder
	for _, f := range []struct {
		on     bool
		letter byte
	}{
		{i.Monitoring, 'O'}, {i.Type() == Replica, 'S'}, {i.Subscribed > 0, 'P'}, {c.Peer.Unix, 'U'}, {i.Queued >= 0, 'x'},
		{c.Awaits() != nil, 'b'}, {i.Tracking, 't'}, {i.NoEvict, 'e'}, {i.NoTouch, 'T'},
	} {
		if f.on {
			b.WriteByte(f.letter)
		}
	}
	if b.Len() == 0 {
		return "N"
	}
	return b.String()
}

// Line describes the client in the fields and order of Redis 7.2, which clients parse. Fields without a
// meaning here are 0, or -1 for the descriptor.
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
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=0 ssub=0 "+
		"multi=%d watch=%d qbuf=%d qbuf-free=%d argv-mem=%d multi-mem=%d rbs=0 rbp=0 obl=0 oll=0 omem=%d tot-mem=%d events=r "+
		"cmd=%s user=%s redir=%d resp=%d lib-name=%s lib-ver=%s\n",
		c.ID, c.Peer.Addr, c.Peer.LocalAddr, i.Name, c.ageSec(nowNs), c.idleSec(nowNs),
		c.flags(&i), i.DB, i.Subscribed, i.Queued, i.Watched, held[Input], held[InputFree], held[Arguments], held[Queue],
		held[Output]+held[Unsynced]+held[Pieces]+held.lines(), total, lastName, i.User, i.Redirect(), protocol, i.LibName, i.LibVersion)
}

func (c *Client) ageSec(nowNs int64) int64 { return max(0, nowNs-c.createdNs) / int64(time.Second) }

func (c *Client) idleSec(nowNs int64) int64 {
	activeNs := c.activeNs.Load()
	if activeNs == 0 { // no command yet
		return c.ageSec(nowNs)
	}
	return max(0, nowNs-activeNs) / int64(time.Second)
}
