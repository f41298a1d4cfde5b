package session

import (
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/observe"
	"cellserver/internal/wire/peer"
)

// BeginMonitor implements execute.Conversation.
func (r *clientRole) BeginMonitor() error {
	if r.monitor != nil { // which is not replied to, as in Redis
		return nil
	}
	r.monitor = r.engine.Config.Records.Monitors.Begin(r.x.Client)
	r.x.Monitored = true
	r.x.Client.Change(func(i *clients.Info) { i.Monitoring = true })
	r.x.W.OK()
	return nil
}

// EndMonitor implements execute.Conversation. What it has still to be sent comes before anything else.
func (r *clientRole) EndMonitor() {
	if r.monitor == nil {
		return
	}
	r.engine.Config.Records.Monitors.End(r.monitor)
	r.x.W.Buf, _ = r.monitor.Take(r.x.W.Buf, observe.MaxMonitorBytes)
	r.monitor = nil
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
