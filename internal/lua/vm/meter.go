package vm

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
)

const (
	// lookEvery is the number of instructions between looks at the clock, some 30 microseconds.
	lookEvery = 1000
	// yieldEveryNs is the longest time without yielding to the event loops.
	yieldEveryNs = int64(50 * time.Microsecond)
	// politeAfterNs is the age at which a run also yields to other threads. From then on it runs only on idle
	// processors, which would delay short scripts needlessly.
	politeAfterNs = int64(300 * time.Microsecond)
	// longestLookNs bounds the time counted between looks if processor time is unknown, so that a busy
	// machine does not end scripts that have hardly begun.
	longestLookNs = int64(10 * time.Millisecond)
	// suspendedNs is that bound for a run that changed its thread, as it was suspended meanwhile, and for
	// runs that others wait for: their limit is below the delays of a busy machine.
	suspendedNs = int64(time.Millisecond)
	// clocksDifferNs bounds the delay between readings of the two clocks.
	clocksDifferNs = int64(50 * time.Microsecond)
	// wallFactor is the longest duration of a run on a busy machine, in time limits.
	wallFactor = 20
)

// Meter counts a run's cost and ends it beyond its bounds. It is the interpreter's context: Done is called
// before every instruction, gopher-lua's only hook. It belongs to the run's goroutine, except for
// Kill.
type Meter struct {
	context.Context // for its other methods

	left  int // until the next look
	step  int // price of an instruction, raised while instructions may be long
	holes int // nil array slots, which the length operator walks over

	usedBytes, maxBytes int

	now         func() int64
	threadNow   func() int64 // of the calling thread; may be nil
	startNs     int64
	ranNs       int64 // counted against limitNs
	threadNs    int64 // threadNow's last reading, or unknown
	lastLookNs  int64 // since startNs, as the next
	lastYieldNs int64
	limitNs     int64
	held        bool  // others wait for the run
	toldNs      int64 // limit named by the error, followed by:
	hint        string

	kill    atomic.Bool
	gone    <-chan struct{} // closed when nobody waits for the run; may be nil
	ended   string          // reason as a reply; empty during the run
	endedAt int             // line, or 0
	l       *lua.LState
}

// Attach makes a new meter the interpreter's context. now and threadNow, which may be nil, return monotonic
// nanoseconds and the calling thread's processor time.
func Attach(l *lua.LState, now, threadNow func() int64) *Meter {
	m := &Meter{Context: context.Background(), l: l, now: now, threadNow: threadNow}
	l.SetContext(m)
	return m
}

// Begin starts a run, which ends when gone is closed.
func (m *Meter) Begin(gone <-chan struct{}, limit time.Duration, maxBytes int) {
	m.left, m.step, m.holes = lookEvery, 1, 0
	m.usedBytes, m.maxBytes = 0, maxBytes
	m.startNs, m.limitNs = m.now(), int64(limit)
	m.ranNs, m.lastLookNs, m.lastYieldNs = 0, 0, 0
	m.threadNs = unknown // reading it would take a third of a short run
	m.kill.Store(false)
	m.gone = gone
	m.ended, m.endedAt = "", 0
	m.Terms(false, limit, "see --lua-time-limit")
}

// Terms sets whether others wait for the run, which then keeps its processor. The error of a run that takes
// too long tells limit and hint: the run's own limit may be what earlier runs have left of it.
func (m *Meter) Terms(held bool, limit time.Duration, hint string) {
	m.held, m.toldNs, m.hint = held, int64(limit), hint
}

// Ran returns the used part of the run's limit.
func (m *Meter) Ran() time.Duration {
	nowNs := m.now() - m.startNs
	if m.threadNs == unknown { // too expensive for a short run
		return time.Duration(m.ranNs + min(nowNs-m.lastLookNs, m.longestNs()))
	}
	return time.Duration(m.ranNs + m.sinceLook(nowNs))
}

// Kill ends the run at its next look at the clock.
func (m *Meter) Kill() { m.kill.Store(true) }

// Ended returns the reason as a reply, empty if the run was not ended, and the line or 0.
func (m *Meter) Ended() (reason string, line int) { return m.ended, m.endedAt }

// Fail ends the run for an external reason.
func (m *Meter) Fail(reason string) { m.ended = reason }

// Rethrow panics again if the run has ended. Every recover in a script must call it.
func (m *Meter) Rethrow() {
	if m.ended != "" {
		panic(m.signal())
	}
}

// UsedBytes returns the run's total allocation.
func (m *Meter) UsedBytes() int { return m.usedBytes }

// Elapsed returns the run's duration.
func (m *Meter) Elapsed() time.Duration { return time.Duration(m.now() - m.startNs) }

// Done implements context.Context. It ends the run by a panic instead of its channel, as a script could catch
// that.
func (m *Meter) Done() <-chan struct{} {
	m.left -= m.step
	if m.left <= 0 {
		m.look()
	}
	return nil
}

// Spend charges work of a native function, in instructions of some 30 nanoseconds.
func (m *Meter) Spend(n int) {
	m.left -= n
	if m.left <= 0 {
		m.look()
	}
}

func (m *Meter) look() {
	m.left = lookEvery
	m.Rethrow()
	if m.kill.Load() {
		m.stop("ERR Script killed by user with SCRIPT KILL...")
	}
	select {
	case <-m.gone:
		m.stop("ERR script was ended: its client has gone, or the server is shutting down")
	default:
	}
	nowNs := m.now() - m.startNs
	m.ranNs += m.sinceLook(nowNs)
	if m.ranNs > m.limitNs || nowNs > wallFactor*m.limitNs {
		m.ranNs = max(m.ranNs, m.limitNs) // all is used, also where others had the processor
		m.End("ERR script ran longer than " + strconv.FormatFloat(float64(m.toldNs)/1e6, 'f', -1, 64) +
			" ms and was ended; " + m.hint)
	}
	if nowNs-m.lastYieldNs >= yieldEveryNs && !m.held {
		Yield(m.ranNs > politeAfterNs && nowNs-m.ranNs < m.limitNs)
		nowNs = m.now() - m.startNs
		m.lastYieldNs = nowNs
		m.readThread()
	}
	m.lastLookNs = nowNs
}

const unknown = -1

func (m *Meter) readThread() {
	if m.threadNow != nil {
		m.threadNs = m.threadNow()
	}
}

// sinceLook returns the processor time since the last look: the thread's, if it is still the same one.
// Another thread's is recognized by a negative or excessive difference.
func (m *Meter) sinceLook(nowNs int64) int64 {
	passedNs := nowNs - m.lastLookNs
	if m.threadNow != nil {
		threadNs := m.threadNow()
		ranNs := threadNs - m.threadNs
		known := m.threadNs != unknown
		m.threadNs = threadNs
		switch {
		case known && 0 <= ranNs && ranNs <= passedNs+clocksDifferNs:
			return min(ranNs, passedNs)
		case known:
			return min(passedNs, suspendedNs)
		}
	}
	return min(passedNs, m.longestNs())
}

// longestNs bounds the counted time when processor time is unknown.
func (m *Meter) longestNs() int64 {
	if m.held {
		return suspendedNs
	}
	return longestLookNs
}

// Charge charges n bytes before their allocation. There are no credits: the total bounds what is held at any
// time, independent of the garbage collector.
func (m *Meter) Charge(n int) {
	if n < 0 || n > m.maxBytes-m.usedBytes {
		m.End("ERR script used more than " + strconv.Itoa(m.maxBytes) + " bytes of memory and was ended")
	}
	m.usedBytes += n
	m.Widen(n)
	m.Spend(n >> 6)
}

// Widen raises the price of an instruction, as one may compare, hash or copy a value of n bytes.
func (m *Meter) Widen(n int) {
	if step := 1 + n>>10; step > m.step {
		m.step = step
	}
}

// AddHoles counts nil array slots.
func (m *Meter) AddHoles(n int) {
	m.holes += n
	m.Widen(m.holes)
}

// Holes returns the number of nil array slots.
func (m *Meter) Holes() int { return m.holes }

// stop ends the run for an external reason at the current line.
func (m *Meter) stop(reason string) {
	m.endedAt = currentLine(m.l)
	m.End(reason)
}

// End ends the run with a reason as a reply.
func (m *Meter) End(reason string) {
	m.ended = reason
	panic(m.signal())
}

// signal is the panic value that unwinds a run.
func (m *Meter) signal() *lua.ApiError {
	return &lua.ApiError{Type: lua.ApiErrorError, Object: lua.LString(m.ended), StackTrace: noTrace}
}
