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

// Monitors are the clients in MONITOR. It is safe for concurrent use.
type Monitors struct {
	any atomic.Bool // checked by every command

	pool buffers.Pool // of the lines

	mu  sync.Mutex // guards all
	all map[*Monitor]struct{}
}

// Monitor holds the lines to send to a monitoring client.
type Monitor struct {
	Client *clients.Client

	pool *buffers.Pool

	mu    sync.Mutex // guards all below
	lines buffers.Queue
	woken bool // the session has been woken
}

// MaxMonitorBytes bounds the backlog of a monitoring client, in addition to its connection's buffers.
const MaxMonitorBytes = 8 << 20

// Any reports whether any client is monitoring.
func (ms *Monitors) Any() bool { return ms.any.Load() }

// Begin starts sending all commands to a client.
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

// End stops sending; the backlog can still be taken.
func (ms *Monitors) End(m *Monitor) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.removeLocked(m)
}

// Abandon is End for a disconnected client.
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

// Send adds lines for all monitoring clients, and returns those dropped for their backlog.
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

// add reports an excessive backlog, and whether the client is already being closed: its memory is not counted
// then.
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

// Take appends whole lines of about most bytes to b, and reports whether more remain.
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

// Bounds of a line:
const (
	maxLineArgBytes = 8 << 10
	maxLineArgs     = 1 << 10
	maxLineBytes    = 64 << 10 // of all arguments, unquoted
)

// Line is a call as shown by MONITOR.
type Line struct {
	NowNs    int64
	DB       uint16
	Peer     *peer.Peer
	ByScript bool
	Args     [][]byte
}

// Append appends the line in Redis's format.
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
	case l.Peer.Door != peer.RESP:
		b = append(append(append(b, l.Peer.Door.String()...), ':'), l.Peer.Addr...)
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

// appendQuoted appends an argument with Redis's escapes, truncated.
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
