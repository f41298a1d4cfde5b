package command

import (
	"math"
	"sync/atomic"

	"cellserver/internal/shard"
)

// slowness is how long something may take before SLOWLOG or LATENCY wants to know of it.
type slowness struct {
	leastNs       atomic.Int64 // the lower of the two
	logFromUs     atomic.Int64 // negative: never
	latencyFromMs atomic.Int64 // 0: never
}

// weigh finds the lower bound anew.
func (l *slowness) weigh() {
	least := int64(math.MaxInt64)
	if us := l.logFromUs.Load(); us >= 0 && us <= math.MaxInt64/1000 {
		least = us * 1000
	}
	if ms := l.latencyFromMs.Load(); ms > 0 && ms <= math.MaxInt64/1_000_000 {
		least = min(least, ms*1_000_000)
	}
	l.leastNs.Store(least)
}

func (l *slowness) watches() bool { return l.leastNs.Load() < math.MaxInt64 }

// noteSlow is told how long a call took; unless that is long, it is one comparison.
func (s *Session) noteSlow(r *row, args [][]byte, ns int64) {
	if ns >= s.engine.slow.leastNs.Load() {
		s.keepSlow(r, shortArgs(redacted(r, args)), ns)
	}
}

// noteSlowBatch is noteSlow of a batch, which is one entry.
func (s *Session) noteSlowBatch(batch []shard.Request, ns int64) {
	if ns >= s.engine.slow.leastNs.Load() {
		s.keepSlow(s.engine.throttle, batchArgs(batch), ns)
	}
}

func (s *Session) keepSlow(r *row, args []string, ns int64) {
	e := s.engine
	nowNs := e.config.Now()
	if from := e.slow.logFromUs.Load(); from >= 0 && ns/1000 >= from {
		e.slowlog.add(slowEntry{
			unixSec: nowNs / 1e9, us: ns / 1000, args: args,
			addr: s.client.peer.Addr, name: s.Name(),
		})
	}
	event := "command"
	if r.flags&flagFast != 0 {
		event = "fast-command"
	}
	e.noteLatency(event, nowNs, ns)
}

// pendingCall is a command that goes on after its handler.
type pendingCall struct {
	row  *row
	args []string
	ns   int64 // that the handler took
}

// count counts a command that has run, or notes of one that goes on what is to be counted then.
func (s *Session) count(r *row, args [][]byte, beganNs int64) {
	if s.waiting == nil {
		ns := s.engine.config.Now() - beganNs
		s.scratch.tally.took(r, false, ns, ns)
		s.noteSlow(r, args, ns)
		return
	}
	s.scratch.tally.called(r, 1)
	s.beganNs, s.aheadNs = beganNs, 0
	s.pending = &pendingCall{row: r, ns: s.handedNs - beganNs}
	if s.engine.slow.watches() {
		s.pending.args = shortArgs(redacted(r, args))
	}
}

// countAhead is count for what went on and has ended. Its work is what is slow or not, and its waiting, too, is what
// the client has felt.
func (s *Session) countAhead() {
	p := s.pending
	if p == nil {
		return
	}
	s.pending = nil
	ns := p.ns + s.aheadNs
	s.scratch.tally.took(p.row, true, ns, s.engine.config.Now()-s.beganNs)
	if ns >= s.engine.slow.leastNs.Load() {
		s.keepSlow(p.row, p.args, ns)
	}
}
