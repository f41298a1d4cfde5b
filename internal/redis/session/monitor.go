package session

import (
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/observe"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// maxInnerLineBytes is how much of a script, and of an EXEC, is sent to those in MONITOR: all of it comes at once, and
// is not to disconnect a client that reads as fast as it can.
const maxInnerLineBytes = 1 << 20

func (s *Session) beginMonitor() error {
	if s.inner != nil {
		return reply.ErrMonitorInMulti
	}
	if s.monitor != nil { // which is not replied to, as in Redis
		return nil
	}
	s.monitor = s.engine.config.Records.Monitors.Begin(s.client)
	s.monitored = true
	s.client.Change(func(i *clients.Info) { i.Monitoring = true })
	s.w.OK()
	return nil
}

// endMonitor ends MONITOR; what it has still to be sent comes before anything else.
func (s *Session) endMonitor() {
	if s.monitor == nil {
		return
	}
	s.engine.config.Records.Monitors.End(s.monitor)
	s.w.Buf, _ = s.monitor.Take(s.w.Buf, observe.MaxMonitorBytes)
	s.monitor = nil
}

// sendLines replies with the lines that the client in MONITOR is to be sent, as many as are good for one Feed.
func (s *Session) sendLines() {
	if s.monitor == nil {
		return
	}
	var more bool
	s.w.Buf, more = s.monitor.Take(s.w.Buf, feedBytes)
	if more && s.status == peer.NeedInput {
		s.status = peer.More
	}
}

// callMonitored is call while a client is in MONITOR. As in Redis, what a script or a transaction executes is shown
// behind EVAL, and before EXEC; all other commands are shown when they have been executed.
func (s *Session) callMonitored(h held) {
	if h.command.Flags&catalog.FlagScript != 0 {
		s.tell(h)
		s.call(h)
		return
	}
	m := s.multi
	s.call(h)
	if h.command.Name != "exec" || m == nil || m.Failed { // else EXEC tells when it is done
		s.tell(h)
	}
}

// tell shows a call to those in MONITOR.
func (s *Session) tell(h held) {
	if h.command.Flags&catalog.FlagAdmin == 0 { // those are nobody else's business, as in Redis
		s.sendMonitored(s.appendLine(nil, s.role == inScript, observe.Redacted(h.command, h.args)))
	}
}

func (s *Session) appendLine(b []byte, byScript bool, args [][]byte) []byte {
	line := observe.Line{NowNs: s.now(), DB: s.db, Peer: &s.client.Peer, ByScript: byScript, Args: args}
	return line.Append(b)
}

// sendMonitored sends lines to those in MONITOR now, or keeps them for when EXEC or the script is done: not all of its
// attempts count, and nobody is to be held up while it holds keys.
func (s *Session) sendMonitored(lines []byte) {
	if s.inner != nil {
		s.keepMonitored(lines)
		return
	}
	if len(lines) == 0 {
		return
	}
	for _, m := range s.engine.config.Records.Monitors.Send(lines) {
		m.Client.Conn.Kill()
		if count := s.engine.slowMonitors.Due(s.engine.config.Now()); count > 0 {
			s.engine.config.Log.Warn("a client in MONITOR is too slow for what it is sent; connection closed", "client", m.Client.Addr(),
				"pending_bytes", observe.MaxMonitorBytes, "count", count, "hint", "have it read faster, or use SLOWLOG, CL.TOP and /metrics instead")
		}
	}
}

func (s *Session) keepMonitored(lines []byte) {
	in := s.inner
	if len(in.monitored) >= maxInnerLineBytes {
		return
	}
	if in.monitored = append(in.monitored, lines...); len(in.monitored) >= maxInnerLineBytes {
		in.monitored = s.appendLine(in.monitored, s.role == inScript, [][]byte{[]byte("... (more commands)")})
	}
}
