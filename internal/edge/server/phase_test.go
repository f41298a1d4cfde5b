package server

import (
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/randtest"
)

// facts describes a connection by what is true of it, where a phase has one name for all.
type facts struct {
	begun          bool // it has a session
	more           bool // there may be more to execute
	waiting        bool
	blocked        bool
	ending, gently bool
	lingering      bool
	closed         bool
	handedOver     bool
	deadline       effect // that was set last
}

// after returns the facts after an event, unless it cannot happen.
func (f facts) after(e event) (_ facts, legal bool) {
	open := f.begun && !f.ending && !f.closed
	switch e {
	case onAdmitted:
		legal = !f.begun && !f.ending && !f.closed
		f.begun = true
	case onInput:
		legal = open && !f.more && !f.waiting && !f.blocked
		f.more = true
	case onNeedInput, onMore, onWaiting:
		legal = open && !f.waiting && (f.more || f.blocked)
		f.more, f.waiting = e == onMore, e == onWaiting
	case onHandOver:
		legal = open && !f.waiting && (f.more || f.blocked)
		f.closed, f.handedOver = true, true
	case onWoken:
		legal = f.begun || f.ending || f.closed
		if open {
			f.more, f.waiting = true, false
		}
	case onBlocked:
		legal = open && f.more && !f.blocked
		f.blocked = true
	case onResumed:
		legal = open && f.blocked
		f.blocked, f.more = false, !f.waiting
	case onReset:
		legal = open && f.waiting
		f.blocked = false
	case onEnd, onEndGently:
		legal = open && !f.waiting && (!f.blocked || e == onEndGently) || !f.begun && !f.ending && !f.closed && e == onEndGently
		f.ending, f.gently = true, e == onEndGently
	case onFlushed:
		legal = f.ending && !f.lingering && !f.closed
		f.lingering, f.closed = f.gently, !f.gently
	default: // onClose
		legal, f.closed = true, true
	}
	return f, legal
}

func (f facts) phase() phase {
	switch {
	case f.closed:
		return phaseClosed
	case f.lingering:
		return phaseLingering
	case f.ending && f.gently:
		return phaseFinishing
	case f.ending:
		return phaseFlushing
	case !f.begun:
		return phaseStarting
	case f.blocked && f.waiting:
		return phaseBlockedWaiting
	case f.blocked:
		return phaseBlocked
	case f.waiting:
		return phaseWaiting
	case f.more:
		return phaseExecuting
	}
	return phaseIdle
}

// due returns the deadline that there must be.
func (f facts) due() effect {
	switch f.phase() {
	case phaseIdle, phaseExecuting:
		return awaitInput
	case phaseWaiting:
		return awaitWake
	case phaseLingering:
		return awaitHangup
	case phaseClosed:
		if f.handedOver {
			return handOver
		}
		return release
	case phaseStarting:
		return illegal
	default:
		return awaitReader
	}
}

// TestPhases follows every sequence of events that can happen: the table allows as much as the facts do, and
// keeps the deadline right. A connection is released once.
func TestPhases(t *testing.T) {
	seen, left := map[facts]bool{}, []facts{{}}
	for len(left) > 0 {
		f := left[0]
		if left = left[1:]; seen[f] {
			continue
		}
		seen[f] = true
		for e := range events {
			next, legal := f.after(e)
			step := f.phase().on(e)
			if (step.do != illegal) != legal {
				t.Errorf("event %d in %+v: %+v, want legal: %t", e, f, step, legal)
			}
			if !legal || step.do == illegal {
				continue
			}
			if step.do != keepDeadline {
				next.deadline = step.do
			}
			if step.to != next.phase() || next.deadline != next.due() || step.do == release && f.closed {
				t.Errorf("event %d in %+v: %+v, want %+v", e, f, step, next)
			}
			left = append(left, next)
		}
	}
	reached := map[phase]bool{}
	for f := range seen {
		reached[f.phase()] = true
	}
	if len(reached) != int(phases) {
		t.Errorf("reached %v of %d phases", reached, phases)
	}
}

// TestIllegalEvent checks that it is no silent move.
func TestIllegalEvent(t *testing.T) {
	l := life{phase: phaseWaiting}
	defer func() {
		if recover() == nil || l.phase != phaseWaiting {
			t.Errorf("in phase %d, want a panic in %d", l.phase, phaseWaiting)
		}
	}()
	l.move(onInput)
}

// TestRandomLives has clients and the server do what they like, and expects no event that cannot happen,
// which would be a panic, and each session to be closed once.
func TestRandomLives(t *testing.T) {
	onEachServer(t, func(c *Config) { c.Limits.MaxOutputBytes = 1 << 20 }, func(t *testing.T, s *testServer) {
		random := randtest.New(t)
		var clients sync.WaitGroup
		for range 12 {
			nc := s.greet(t)
			all := s.all()
			w, own := all[len(all)-1], rand.New(rand.NewPCG(random.Uint64(), 0))
			clients.Go(func() {
				defer nc.Close()
				for range 1 + own.IntN(20) {
					s.liveAtRandom(own, nc, w)
				}
			})
		}
		clients.Wait()
		s.await(t, func(st Stats) bool {
			for _, w := range s.all() {
				w.release()
			}
			return st.Connected == 0
		})
		if panics := s.Stats().Panics; panics > 0 {
			t.Errorf("%d panics", panics)
		}
	})
}

func (s *testServer) liveAtRandom(random *rand.Rand, nc net.Conn, w *observed) {
	lines := []string{"a\n", "half", "stay\n", "wait\n", "monitor\n", strings.Repeat("long\n", 30), "slow\n", "a\na\n", "stay\na\n", "wait\nlong\n"}
	switch n := random.IntN(40); {
	case n < 16:
		_, _ = io.WriteString(nc, lines[random.IntN(len(lines))])
	case n < 20:
		w.release()
	case n < 22:
		w.conn.Wake()
	case n < 26:
		go func() { _, _ = io.CopyN(io.Discard, nc, 4<<20) }()
	case n < 28:
		s.SetLimits(Limits{MaxClients: 100, MaxOutputBytes: 1 << 20, OutputTimeout: patience.Forever, IdleTimeout: patience.Forever * time.Duration(n-26)})
	case n < 29:
		_ = nc.(interface{ CloseWrite() error }).CloseWrite()
	case n < 30:
		_, _ = io.WriteString(nc, []string{"close\n", "quit\n", "abort\n"}[random.IntN(3)])
	case n < 31:
		[]func(){w.conn.Kill, w.conn.Evict}[random.IntN(2)]()
	default:
		time.Sleep(time.Duration(random.IntN(300)) * time.Microsecond)
	}
}
