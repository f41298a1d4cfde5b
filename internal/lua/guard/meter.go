package guard

import (
	"strconv"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
)

const (
	// lookEvery is how many instructions run between two looks at the clock: some 30 microseconds.
	lookEvery = 1000
	// yieldEveryNs is the longest that a script keeps its processor from the event loops.
	yieldEveryNs = int64(50 * time.Microsecond)
	// politeAfterNs is what a run may take before it lets the system's other threads go first, too. From then on it gets
	// a processor only when nobody else has a use for it, which would make many a short script late for nothing.
	politeAfterNs = int64(300 * time.Microsecond)
	// longestLookNs is the most that counts between two looks where it is not known how long the run had a processor. If
	// more has passed, others had it: a busy machine must not end scripts that have hardly begun.
	longestLookNs = int64(10 * time.Millisecond)
	// heldLookNs is that for a run that others wait for, whose limit is less than the time for which a busy machine may
	// take its processor away.
	heldLookNs = int64(time.Millisecond)
	// movedNs is the most that counts between two looks on different threads: the run was taken off one of them meanwhile.
	movedNs = int64(time.Millisecond)
	// clocksDifferNs is how much later the thread's clock may be read than the other one.
	clocksDifferNs = int64(50 * time.Microsecond)
	// wallFactor is how much longer than its limit a run may last if others had the processor.
	wallFactor = 20
)

// A Meter counts what a run costs and ends it when that is too much. It is the context of the interpreter,
// which asks it for Done before every instruction: the one hook that gopher-lua has. It belongs to the
// goroutine that runs the script, except for Kill, which may be called by any other.
type Meter struct {
	left  int // what may be spent until the next look
	step  int // the price of one instruction: more while single instructions can be long
	holes int // array slots that are nil, over which the length operator walks

	usedBytes, maxBytes int

	now         func() int64
	threadNow   func() int64 // the processor time of the calling thread; nil where that is not known
	startNs     int64
	ranNs       int64 // what counts against limitNs
	threadNs    int64 // by threadNow, at the last look; or unknown
	lastLookNs  int64 // after startNs, as the next
	lastYieldNs int64
	limitNs     int64
	held        bool  // others wait for the run
	toldNs      int64 // the limit that the error names which ends the run, and behind it:
	hint        string

	kill    atomic.Bool
	gone    <-chan struct{} // closed when nobody waits for the run any more; nil if that cannot be
	ended   string          // why, as the text of a reply; empty while the run goes on
	endedAt int             // the line, or 0
	l       *lua.LState
}

// Attach returns a meter that the interpreter asks from now on. The clocks give monotonic nanoseconds, the second one the
// processor time of the calling thread; it may be nil.
func Attach(l *lua.LState, now, threadNow func() int64) *Meter {
	m := &Meter{l: l, now: now, threadNow: threadNow}
	l.SetContext(m)
	return m
}

// Begin starts the count for a run, which is ended when gone is closed.
func (m *Meter) Begin(gone <-chan struct{}, limit time.Duration, maxBytes int) {
	m.left, m.step, m.holes = lookEvery, 1, 0
	m.usedBytes, m.maxBytes = 0, maxBytes
	m.startNs, m.limitNs = m.now(), int64(limit)
	m.ranNs, m.lastLookNs, m.lastYieldNs = 0, 0, 0
	m.threadNs = unknown // reading it costs a third of what a short run takes
	m.kill.Store(false)
	m.gone = gone
	m.ended, m.endedAt = "", 0
	m.Terms(false, limit, "see --lua-time-limit")
}

// Terms says of the run that has just begun whether others wait for it, so that it keeps its processor, and which limit
// and hint the error names that ends it: the run's own limit is what others have left of that.
func (m *Meter) Terms(held bool, limit time.Duration, hint string) {
	m.held, m.toldNs, m.hint = held, int64(limit), hint
}

// Ran is how much the run has taken of its limit.
func (m *Meter) Ran() time.Duration {
	nowNs := m.now() - m.startNs
	if m.threadNs == unknown { // a short run, for which reading it would cost too much
		return time.Duration(m.ranNs + min(nowNs-m.lastLookNs, m.longestNs()))
	}
	return time.Duration(m.ranNs + m.sinceLook(nowNs))
}

// Kill ends the run at its next look at the clock.
func (m *Meter) Kill() { m.kill.Store(true) }

// Ended returns why the run was ended, as the text of a reply, and at which line or 0. The reason is empty if the run
// was not ended.
func (m *Meter) Ended() (reason string, line int) { return m.ended, m.endedAt }

// Fail notes that the run is over for a reason that the meter does not know of.
func (m *Meter) Fail(reason string) { m.ended = reason }

// Rethrow panics again if the run has ended. Whoever recovers from a panic in a script calls it.
func (m *Meter) Rethrow() {
	if m.ended != "" {
		panic(m.signal())
	}
}

// UsedBytes is what the run has allocated.
func (m *Meter) UsedBytes() int { return m.usedBytes }

// Elapsed is how long the run has lasted.
func (m *Meter) Elapsed() time.Duration { return time.Duration(m.now() - m.startNs) }

// Done implements context.Context. It never tells by its channel that the run is over, for a script could catch that:
// it ends the run itself.
func (m *Meter) Done() <-chan struct{} {
	m.left -= m.step
	if m.left <= 0 {
		m.look()
	}
	return nil
}

func (m *Meter) Deadline() (time.Time, bool) { return time.Time{}, false }

func (m *Meter) Err() error { return nil }

func (m *Meter) Value(any) any { return nil }

// Spend accounts for work inside a native function, in units of one instruction: some 30 nanoseconds.
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
		m.End("ERR script ran longer than " + strconv.FormatFloat(float64(m.toldNs)/1e6, 'f', -1, 64) +
			" ms and was ended; " + m.hint)
	}
	if nowNs-m.lastYieldNs >= yieldEveryNs && !m.held {
		yield(m.ranNs > politeAfterNs && nowNs-m.ranNs < m.limitNs)
		nowNs = m.now() - m.startNs
		m.lastYieldNs = nowNs
		m.readThread()
	}
	m.lastLookNs = nowNs
}

// unknown is a thread's time that was not read.
const unknown = -1

func (m *Meter) readThread() {
	if m.threadNow != nil {
		m.threadNs = m.threadNow()
	}
}

// sinceLook is what the run has had of a processor since the last look: as much as its thread, as long as that is the same
// one. Of another one the figure is about something else, which shows where it is negative or longer than the time that
// has passed; and it is never more than that.
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
			return min(passedNs, movedNs)
		}
	}
	return min(passedNs, m.longestNs())
}

// longestNs is the most that counts of a time in which it is not known how long the run had a processor.
func (m *Meter) longestNs() int64 {
	if m.held {
		return heldLookNs
	}
	return longestLookNs
}

// Charge accounts for n bytes before they are allocated. Nothing is ever credited: what a run allocates in all bounds
// what it holds at any time, and needs no knowledge of the garbage collector.
func (m *Meter) Charge(n int) {
	if n < 0 || n > m.maxBytes-m.usedBytes {
		m.End("ERR script used more than " + strconv.Itoa(m.maxBytes) + " bytes of memory and was ended")
	}
	m.usedBytes += n
	m.Widen(n)
	m.Spend(n >> 6)
}

// Widen raises the price of an instruction once there is a value of n bytes, as a single instruction may compare, hash
// or copy it.
func (m *Meter) Widen(n int) {
	if step := 1 + n>>10; step > m.step {
		m.step = step
	}
}

// AddHoles counts n more array slots without a value.
func (m *Meter) AddHoles(n int) {
	m.holes += n
	m.Widen(m.holes)
}

// Holes returns how many array slots without a value were made.
func (m *Meter) Holes() int { return m.holes }

// stop ends the run for somebody else's reason, and notes the line that it has reached.
func (m *Meter) stop(reason string) {
	m.endedAt = CurrentLine(m.l)
	m.End(reason)
}

// End ends the run. The reason is the text of a reply.
func (m *Meter) End(reason string) {
	m.ended = reason
	panic(m.signal())
}

// signal is the panic that unwinds a run.
func (m *Meter) signal() *lua.ApiError {
	return &lua.ApiError{Type: lua.ApiErrorError, Object: lua.LString(m.ended), StackTrace: NoTrace}
}
