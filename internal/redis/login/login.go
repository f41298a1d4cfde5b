// Package login makes guessing passwords slow: it counts the recent failures of each host, and says how long the reply
// to one more is delayed. Only time makes it forget them: if a right login did, whoever has one password could guess
// another at full speed. Failures is safe for concurrent use.
package login

import (
	"sync"
	"time"

	"cellserver/internal/wire/peer"
)

// Failures is the logins that failed. The zero value has seen none.
type Failures struct {
	mu     sync.Mutex // guards all below
	byHost map[string]host
	total  uint64
	recent int64 // since Reset
}

type host struct {
	failures int
	lastNs   int64
}

const (
	firstPause = 50 * time.Millisecond // doubled with each failure
	maxPause   = 1600 * time.Millisecond
	memory     = time.Minute // without a failure, after which a host's are forgotten
	maxHosts   = 1024        // remembered; beyond it some are forgotten early
)

// Add counts a failed login, and returns how long its reply is to be delayed.
func (f *Failures) Add(p peer.Peer, nowNs int64) (pause time.Duration) {
	name := p.Network() // whose addresses one machine can have by the million, in IPv6
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total++
	f.recent++
	h := f.byHost[name]
	if nowNs-h.lastNs > int64(memory) {
		h.failures = 0
	}
	if h.failures == 0 && len(f.byHost) >= maxHosts {
		f.forgetLocked(nowNs)
	}
	if f.byHost == nil {
		f.byHost = map[string]host{}
	}
	f.byHost[name] = host{h.failures + 1, nowNs}
	return min(firstPause<<min(h.failures, 10), maxPause)
}

// forgetLocked makes room for one more host.
func (f *Failures) forgetLocked(nowNs int64) {
	for name, h := range f.byHost {
		if nowNs-h.lastNs > int64(memory) {
			delete(f.byHost, name)
		}
	}
	for name := range f.byHost {
		if len(f.byHost) < maxHosts {
			return
		}
		delete(f.byHost, name)
	}
}

// Total counts the failures since the start, and those since Reset.
func (f *Failures) Total() (total uint64, recent int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total, f.recent
}

// Reset starts the count of recent failures from 0 again. Pauses do not change.
func (f *Failures) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recent = 0
}
