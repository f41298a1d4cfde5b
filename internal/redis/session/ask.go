package session

import (
	"cellserver/internal/decide"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// Ask is Feed for a client that asks by values. The status is that of Feed: while it is More, or Waiting and
// the connection has been woken, the client asks again for the same; then all of it is decided. A session is
// either fed or asked.
func (s *Session) Ask(a decide.Ask) peer.Status {
	x := &s.x
	x.Asked = a
	s.begin()
	defer s.finish()
	before := a.Decided()
	if s.isBlocked() && !s.drainHeld(a.Left(), before) {
		return x.Status
	}
	x.Monitored = x.Engine.Config.Records.Monitors.Any() // read late: the background uses it
	x.Continue()
	s.release(before)
	return x.Status
}

// Become sets the user of later calls; nil is that of a new client.
func (s *Session) Become(user *acl.User) {
	if user == nil {
		if user = s.engine.Config.Users.Default(); user.NeedsPassword() || !user.Enabled() {
			s.x.Greet()
			return
		}
	}
	if user != s.x.User {
		s.x.Become(user)
	}
}
