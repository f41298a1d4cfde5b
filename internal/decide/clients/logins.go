package clients

import (
	"sync"
	"time"

	"cellserver/internal/wire/peer"
)

// Logins slows down password guessing: it counts each host's recent failures and delays further replies. Only
// time clears them: clearing on success would let a user with one password guess another at full speed. The
// zero value is empty. It is safe for concurrent use.
type Logins struct {
	mu     sync.Mutex // rank 90: guards all below
	byHost map[string]loginHost
	total  uint64
	recent int64 // since Reset
}

type loginHost struct {
	failures int
	lastNs   int64
}

const (
	firstPause    = 50 * time.Millisecond // doubled by each failure
	maxPause      = 1600 * time.Millisecond
	loginMemory   = time.Minute // after which failures are forgotten
	maxLoginHosts = 1024        // some are forgotten early beyond it
)

// Add counts a failed login and returns the delay of its reply.
func (f *Logins) Add(p peer.Peer, nowNs int64) (pause time.Duration) {
	name := p.Network() // an IPv6 host may have millions of addresses
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total++
	f.recent++
	h := f.byHost[name]
	if nowNs-h.lastNs > int64(loginMemory) {
		h.failures = 0
	}
	if h.failures == 0 && len(f.byHost) >= maxLoginHosts {
		f.forgetLocked(nowNs)
	}
	if f.byHost == nil {
		f.byHost = map[string]loginHost{}
	}
	f.byHost[name] = loginHost{h.failures + 1, nowNs}
	return min(firstPause<<min(h.failures, 10), maxPause)
}

// forgetLocked frees an entry.
func (f *Logins) forgetLocked(nowNs int64) {
	for name, h := range f.byHost {
		if nowNs-h.lastNs > int64(loginMemory) {
			delete(f.byHost, name)
		}
	}
	for name := range f.byHost {
		if len(f.byHost) < maxLoginHosts {
			return
		}
		delete(f.byHost, name)
	}
}

// Total returns the failures since the start and since Reset.
func (f *Logins) Total() (total uint64, recent int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total, f.recent
}

// Reset clears the recent count. Delays remain.
func (f *Logins) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recent = 0
}
