package session

import (
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/observe"
	"cellserver/internal/wire/peer"
)

func (r *clientRole) BeginMonitor() error {
	if r.monitor != nil { // no reply, as in Redis
		return nil
	}
	r.monitor = r.engine.Config.Records.Monitors.Begin(r.x.Client)
	r.x.Monitored = true
	r.x.Client.Change(func(i *clients.Info) { i.Monitoring = true })
	r.x.W.OK()
	return nil
}

// EndMonitor sends pending lines first.
func (r *clientRole) EndMonitor() {
	if r.monitor == nil {
		return
	}
	r.engine.Config.Records.Monitors.End(r.monitor)
	r.x.W.Buf, _ = r.monitor.Take(r.x.W.Buf, observe.MaxMonitorBytes)
	r.monitor = nil
}

// sendLines sends a Feed's worth of lines to a monitoring client.
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
