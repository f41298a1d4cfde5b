package command

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"cellserver/internal/peer"
)

// monitors is the clients that see every command. It is safe for concurrent use.
type monitors struct {
	any atomic.Bool // whether there are some; all that a Feed looks at while there are none

	mu  sync.Mutex // guards all
	all map[*monitor]struct{}
}

// monitor is what a client in MONITOR has still to be sent.
type monitor struct {
	client *client

	mu     sync.Mutex // guards all below
	lines  []byte
	coming bool // a Feed will take the lines
}

// maxMonitorBytes is how far a MONITOR may fall behind, beside what its connection holds.
const maxMonitorBytes = 8 << 20

// maxToldBytes is how much is told of a script, and of an EXEC: what comes at once is to drop no MONITOR that reads.
const maxToldBytes = 1 << 20

func (ms *monitors) add(m *monitor) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.all == nil {
		ms.all = map[*monitor]struct{}{}
	}
	ms.all[m] = struct{}{}
	ms.any.Store(true)
}

func (ms *monitors) remove(m *monitor) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.removeLocked(m)
}

func (ms *monitors) removeLocked(m *monitor) {
	delete(ms.all, m)
	ms.any.Store(len(ms.all) > 0)
}

// tell gives all monitors some lines, and returns those that it has dropped because they are too far behind.
func (ms *monitors) tell(lines []byte) (dropped []*monitor) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for m := range ms.all {
		if !m.add(lines) {
			ms.removeLocked(m)
			dropped = append(dropped, m)
		}
	}
	return dropped
}

// add is false if the lines are too many.
func (m *monitor) add(lines []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.lines)+len(lines) > maxMonitorBytes {
		m.lines = nil
		return false
	}
	m.lines = append(m.lines, lines...)
	if !m.coming {
		m.coming = true
		m.client.conn.Wake()
	}
	return true
}

// take appends about up to most bytes of lines to b, whole ones, and reports whether there are more.
func (m *monitor) take(b []byte, most int) (_ []byte, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.lines)
	if n > most {
		n = most + bytes.IndexByte(m.lines[most:], '\n') + 1
	}
	b = append(b, m.lines[:n]...)
	if m.lines = m.lines[n:]; len(m.lines) == 0 {
		m.lines = nil // the array may have grown large
	}
	m.coming = len(m.lines) > 0
	return b, m.coming
}

func monitorCommand(s *Session, _ [][]byte) error {
	if s.inner != outer {
		return replyError("ERR MONITOR isn't allowed for DENY BLOCKING client")
	}
	if s.monitor != nil { // which is not replied to, as in Redis
		return nil
	}
	s.monitor = &monitor{client: s.client}
	s.monitored = true
	s.engine.monitors.add(s.monitor)
	s.client.change(func(i *clientInfo) { i.monitor = true })
	s.w.OK()
	return nil
}

// Monitors reports whether the client is in MONITOR, and so need not say anything.
func (s *Session) Monitors() bool { return s.monitor != nil }

// endMonitor ends MONITOR; what it has seen comes before anything else.
func (s *Session) endMonitor() {
	if s.monitor == nil {
		return
	}
	s.engine.monitors.remove(s.monitor)
	s.w.Buf, _ = s.monitor.take(s.w.Buf, maxMonitorBytes)
	s.monitor = nil
}

// sendLines replies with what the client's MONITOR has seen, as much as is good for one Feed.
func (s *Session) sendLines() {
	if s.monitor == nil {
		return
	}
	var more bool
	s.w.Buf, more = s.monitor.take(s.w.Buf, feedBytes)
	if more && s.status == peer.NeedInput {
		s.status = peer.More
	}
}

// callMonitored is call while somebody watches. As in Redis, what a script or a transaction executes is told behind
// EVAL, and before EXEC; all other commands are told when they have been executed.
func (s *Session) callMonitored(r *row, args [][]byte) {
	told := r.flags&flagScript != 0
	if told {
		s.tell(r, args)
	}
	told = told || r.name == "exec" && s.multi != nil && !s.multi.failed // tells when it is done
	s.call(r, args)
	if !told {
		s.tell(r, args)
	}
}

// tell tells the monitors of a call.
func (s *Session) tell(r *row, args [][]byte) {
	if r.flags&flagAdmin == 0 { // those are nobody else's business, as in Redis
		s.tellLines(s.appendLine(nil, s.inner == inScript, redacted(r, args)))
	}
}

// tellLines tells the monitors now, or keeps lines for when EXEC or the script is done: not all of its attempts count,
// and nobody is to be held up under the locks of its keys.
func (s *Session) tellLines(lines []byte) {
	if s.inner != outer {
		s.keepTold(lines)
		return
	}
	for _, m := range s.engine.monitors.tell(lines) {
		m.client.conn.Kill()
		if count := s.engine.slowMonitors.Due(s.engine.config.Now()); count > 0 {
			s.engine.config.Log.Warn("a client in MONITOR is too slow for what it sees; connection closed", "client", m.client.peer.Addr,
				"pending_bytes", maxMonitorBytes, "count", count, "hint", "have it read faster, or watch with SLOWLOG, CL.TOP and /metrics instead")
		}
	}
}

func (s *Session) keepTold(lines []byte) {
	if len(s.told) >= maxToldBytes {
		return
	}
	if s.told = append(s.told, lines...); len(s.told) >= maxToldBytes {
		s.told = s.appendLine(s.told, s.inner == inScript, [][]byte{[]byte("... (more commands)")})
	}
}

// A line shows so much of a call.
const (
	maxLineArgBytes = 8 << 10
	maxLineArgs     = 1 << 10
	maxLineBytes    = 64 << 10 // of the arguments, as they came
)

// appendLine appends a call as Redis's MONITOR shows it.
func (s *Session) appendLine(b []byte, byScript bool, args [][]byte) []byte {
	us := s.now() / 1000
	b = strconv.AppendInt(append(b, '+'), us/1e6, 10)
	b = append(b, '.')
	for digit := int64(1e5); digit > 0; digit /= 10 {
		b = append(b, '0'+byte(us/digit%10))
	}
	b = append(strconv.AppendUint(append(b, " ["...), uint64(s.db), 10), ' ')
	p := &s.client.peer
	switch {
	case byScript:
		b = append(b, "lua"...)
	case p.Unix:
		b = append(append(b, "unix:"...), strings.TrimSuffix(p.Addr, ":0")...)
	default:
		b = append(b, p.Addr...)
	}
	b = append(b, ']')
	left := maxLineBytes
	for i, arg := range args {
		if i == maxLineArgs || left <= 0 {
			b = append(b, ` "... (`...)
			b = append(strconv.AppendInt(b, int64(len(args)-i), 10), ` more arguments)"`...)
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

// tellExec tells of what EXEC has executed, and of itself.
func (s *Session) tellExec(x *execution) {
	var lines []byte
	if x.inner != nil {
		lines = x.inner.told
	}
	s.tellLines(s.appendLine(lines, false, [][]byte{[]byte(x.name)}))
}
