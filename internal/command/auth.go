package command

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/acl"
	"cellserver/internal/peer"
)

const defaultUser = "default"

func auth(s *Session, args [][]byte) error {
	user := []byte(defaultUser)
	switch len(args) {
	case 2:
		if !s.engine.config.Users.Default().NeedsPassword() {
			return errNoPassword
		}
	case 3:
		user = args[1]
	default:
		return errSyntax
	}
	if !s.login(args[0], user, args[len(args)-1]) {
		s.delayed(errWrongPass)
		return nil
	}
	s.w.OK()
	return nil
}

// login makes the client the user, if the password is right. The command is what it was given to, for the log.
func (s *Session) login(command, name, password []byte) bool {
	e := s.engine
	user, ok := e.config.Users.Authenticate(name, password)
	if !ok {
		s.noteDenial(acl.Denial{Reason: acl.DeniedAuth, Object: string(command), Username: string(name)})
		return false
	}
	e.logins.succeeded(s.client.peer)
	s.become(user)
	return true
}

// become makes the client the user, or nobody.
func (s *Session) become(user *acl.User) {
	s.user = user
	s.authenticated = user != nil
	s.decoder.Unauthenticated = user == nil
	name := defaultUser // what Redis calls nobody
	if user != nil {
		name = user.Name()
	}
	s.client.change(func(i *clientInfo) { i.user = name })
}

// greet makes a client what it is before it has said anything: the user that its certificate names, or the default
// user if that has no password.
func (s *Session) greet() {
	users := s.engine.config.Users
	if name := s.client.peer.CertName; name != "" {
		if user := users.Lookup(name); user != nil && user.Enabled() {
			s.become(user)
			return
		}
	}
	if user := users.Default(); !user.NeedsPassword() && user.Enabled() {
		s.become(user)
	} else {
		s.become(nil)
	}
}

// delayed replies with an error of a login, after a pause that gets longer with each failure from the client's host.
func (s *Session) delayed(err error) {
	pause := s.engine.logins.failed(s.client.peer)
	if count := s.engine.failedLogins.Due(s.engine.config.Now()); count > 0 {
		s.engine.config.Log.Warn("a client gave a wrong user name or password", "client", s.client.peer.Addr, "count", count,
			"hint", "ACL LOG tells who they were")
	}
	s.after(pause, func(s *Session) { s.failCommand(err) })
}

// logins makes guessing passwords slow: it counts the failures of each host of late. It is safe for concurrent use.
type logins struct {
	total    atomic.Int64  // since CONFIG RESETSTAT
	allTotal atomic.Uint64 // since the start

	mu     sync.Mutex // guards byHost
	byHost map[string]failures
}

type failures struct {
	n    int
	last time.Time
}

const (
	firstLoginPause = 50 * time.Millisecond // doubled with each failure
	maxLoginPause   = 1600 * time.Millisecond
	loginMemory     = time.Minute // after which a host's failures are forgotten
	maxLoginHosts   = 1024        // remembered; beyond it some are forgotten early
)

func hostOf(p peer.Peer) string {
	if host, _, err := net.SplitHostPort(p.Addr); err == nil && !p.Unix {
		return host
	}
	return p.Addr
}

// failed returns how long a failed login is to be held up.
func (l *logins) failed(p peer.Peer) time.Duration {
	l.total.Add(1)
	l.allTotal.Add(1)
	host, now := hostOf(p), time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.byHost[host]
	if now.Sub(f.last) > loginMemory {
		f.n = 0
	}
	if f.n == 0 && len(l.byHost) >= maxLoginHosts {
		l.forgetLocked(now)
	}
	pause := min(firstLoginPause<<min(f.n, 10), maxLoginPause)
	if l.byHost == nil {
		l.byHost = map[string]failures{}
	}
	l.byHost[host] = failures{f.n + 1, now}
	return pause
}

// forgetLocked makes room for one host more.
func (l *logins) forgetLocked(now time.Time) {
	for host, f := range l.byHost {
		if now.Sub(f.last) > loginMemory {
			delete(l.byHost, host)
		}
	}
	for host := range l.byHost {
		if len(l.byHost) < maxLoginHosts {
			return
		}
		delete(l.byHost, host)
	}
}

func (l *logins) succeeded(p peer.Peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byHost, hostOf(p))
}
