package session

import (
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/observe"
	"cellserver/internal/wire/peer"
)

// BeginMonitor implements execute.Conversation.
func (s *Session) BeginMonitor() error {
	if s.monitor != nil { // which is not replied to, as in Redis
		return nil
	}
	s.monitor = s.engine.Config.Records.Monitors.Begin(s.x.Client)
	s.x.Monitored = true
	s.x.Client.Change(func(i *clients.Info) { i.Monitoring = true })
	s.x.W.OK()
	return nil
}

// EndMonitor implements execute.Conversation. What it has still to be sent comes before anything else.
func (s *Session) EndMonitor() {
	if s.monitor == nil {
		return
	}
	s.engine.Config.Records.Monitors.End(s.monitor)
	s.x.W.Buf, _ = s.monitor.Take(s.x.W.Buf, observe.MaxMonitorBytes)
	s.monitor = nil
}

// sendLines replies with the lines that the client in MONITOR is to be sent, as many as are good for one Feed.
func (s *Session) sendLines() {
	if s.monitor == nil {
		return
	}
	var more bool
	s.x.W.Buf, more = s.monitor.Take(s.x.W.Buf, feedBytes)
	if more && s.x.Status == peer.NeedInput {
		s.x.Status = peer.More
	}
}
