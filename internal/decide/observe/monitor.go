package observe

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"cellserver/internal/base/buffers"
	"cellserver/internal/decide/clients"
	"cellserver/internal/wire/peer"
)

// Monitors is the clients in MONITOR, which are sent every command. It is safe for concurrent use.
type Monitors struct {
	any atomic.Bool // whether there are some; all that is looked at while there are none

	pool buffers.Pool // of the lines

	mu  sync.Mutex // guards all
	all map[*Monitor]struct{}
}

// Monitor is what a client in MONITOR has still to be sent.
type Monitor struct {
	Client *clients.Client

	pool *buffers.Pool

	mu    sync.Mutex // guards all below
	lines buffers.Queue
	woken bool // the client's session has been woken for the lines
}

// MaxMonitorBytes is how far a client in MONITOR may fall behind, in addition to what its connection buffers.
const MaxMonitorBytes = 8 << 20

// Any reports whether any client is in MONITOR.
func (ms *Monitors) Any() bool { return ms.any.Load() }

// Begin has a client sent every command from now on.
func (ms *Monitors) Begin(c *clients.Client) *Monitor {
	m := &Monitor{Client: c, pool: &ms.pool}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.all == nil {
		ms.all = map[*Monitor]struct{}{}
	}
	ms.all[m] = struct{}{}
	ms.any.Store(true)
	return m
}

// End sends the client no more commands; what it has not taken yet can still be taken.
func (ms *Monitors) End(m *Monitor) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.removeLocked(m)
}

// Abandon is End for a client that has gone.
func (ms *Monitors) Abandon(m *Monitor) {
	ms.End(m)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines.Clear(m.pool)
}

func (ms *Monitors) removeLocked(m *Monitor) {
	delete(ms.all, m)
	ms.any.Store(len(ms.all) > 0)
}

// Send sends lines to all clients in MONITOR, and returns those that it has dropped because they are too far behind.
func (ms *Monitors) Send(lines []byte) (dropped []*Monitor) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for m := range ms.all {
		behind, gone := m.add(lines)
		if behind || gone {
			ms.removeLocked(m)
		}
		if behind {
			dropped = append(dropped, m)
		}
	}
	return dropped
}

// add reports whether the lines are too many, and whether the client is being closed: until that is done, what it would
// hold would be counted nowhere.
func (m *Monitor) add(lines []byte) (behind, gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if behind = m.lines.Len()+len(lines) > MaxMonitorBytes; !behind {
		m.lines.Add(m.pool, lines)
		gone = !m.Client.Hold(clients.MonitorLines, m.lines.Held())
	}
	if behind || gone {
		m.lines.Clear(m.pool)
		return behind, gone
	}
	if !m.woken {
		m.woken = true
		m.Client.Conn.Wake()
	}
	return false, false
}

// Take appends about up to most bytes of lines to b, whole ones, and reports whether there are more.
func (m *Monitor) Take(b []byte, most int) (_ []byte, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for left, whole := most, false; !whole && m.lines.Len() > 0; {
		front := m.lines.Front()
		if len(front) > left {
			if end := bytes.IndexByte(front[left:], '\n'); end >= 0 {
				front, whole = front[:left+end+1], true
			}
		}
		b = append(b, front...)
		left = max(0, left-len(front))
		m.lines.Take(m.pool, len(front))
	}
	m.Client.Hold(clients.MonitorLines, m.lines.Held())
	m.woken = m.lines.Len() > 0
	return b, m.woken
}

// A line shows so much of a call.
const (
	maxLineArgBytes = 8 << 10
	maxLineArgs     = 1 << 10
	maxLineBytes    = 64 << 10 // of the arguments, as they came
)

// Line is a call as it is shown to clients in MONITOR.
type Line struct {
	NowNs    int64
	DB       uint16
	Peer     *peer.Peer
	ByScript bool
	Args     [][]byte
}

// Append appends the line as Redis writes it.
func (l *Line) Append(b []byte) []byte {
	us := l.NowNs / 1000
	b = strconv.AppendInt(append(b, '+'), us/1e6, 10)
	b = append(b, '.')
	for digit := int64(1e5); digit > 0; digit /= 10 {
		b = append(b, '0'+byte(us/digit%10))
	}
	b = append(strconv.AppendUint(append(b, " ["...), uint64(l.DB), 10), ' ')
	switch {
	case l.ByScript:
		b = append(b, "lua"...)
	case l.Peer.Unix:
		b = append(append(b, "unix:"...), strings.TrimSuffix(l.Peer.Addr, ":0")...)
	default:
		b = append(b, l.Peer.Addr...)
	}
	b = append(b, ']')
	left := maxLineBytes
	for i, arg := range l.Args {
		if i == maxLineArgs || left <= 0 {
			b = append(b, ` "... (`...)
			b = append(strconv.AppendInt(b, int64(len(l.Args)-i), 10), ` more arguments)"`...)
			break
		}
		b = appendQuoted(append(b, ' '), arg)
		left -= min(len(arg), maxLineArgBytes)
	}
	return append(b, '\r', '\n')
}

// appendQuoted writes an argument in quotes, with Redis's escapes, and cut where it is long.
func appendQuoted(b, arg []byte) []byte {
	const hex = "0123456789abcdef"
	cut := len(arg) - maxLineArgBytes
	if cut > 0 {
		arg = arg[:maxLineArgBytes]
	}
	b = append(b, '"')
	for _, c := range arg {
		if at := strings.IndexByte("\\\"\n\r\t\a\b", c); at >= 0 {
			b = append(b, '\\', `\"nrtab`[at])
		} else if c < ' ' || c > '~' {
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	if cut > 0 {
		b = append(strconv.AppendInt(append(b, "... ("...), int64(cut), 10), " more bytes)"...)
	}
	return append(b, '"')
}
