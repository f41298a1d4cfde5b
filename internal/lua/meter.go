package lua

import (
	"strconv"
	"sync/atomic"
	"time"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/message"
)

const (
	// lookEvery is how many instructions run between two looks at the clock: some 30 microseconds.
	lookEvery = 1000
	// yieldEvery is the longest that a script keeps its processor from the event loops.
	yieldEvery = 50 * time.Microsecond
	// politeAfter is what a run may take before it lets the system's other threads go first, too. From then on it gets a
	// processor only when nobody else has a use for it, which would make many a short script late for nothing.
	politeAfter = 300 * time.Microsecond
	// longestLook is the most that counts between two looks. If more has passed, others had the processor: a busy
	// machine must not end scripts that have hardly begun.
	longestLook = 10 * time.Millisecond
	// wallFactor is how much longer than its limit a run may last if others had the processor.
	wallFactor = 20
)

// EndError says why a run was cut short. Nothing that such a run wrote may be kept.
type EndError struct{ Reason string }

func (e *EndError) Error() string { return e.Reason }

// A meter counts what a run costs and ends it when that is too much. It is the context of the interpreter, which asks
// it for Done before every instruction: the one hook that gopher-lua has.
type meter struct {
	left  int // what may be spent until the next look
	step  int // the price of one instruction: more while single instructions can be long
	holes int // array slots that are nil, over which the length operator walks

	usedBytes, maxBytes int

	start     time.Time
	ran       time.Duration // what counts against limit
	lastLook  time.Duration // after start, as the rest
	lastYield time.Duration
	limit     time.Duration
	kill      atomic.Bool
	ended     *EndError
	killedAt  int // the line, or 0
	l         *vm.LState
}

func (m *meter) reset(limit time.Duration, maxBytes int) {
	m.left, m.step, m.holes = lookEvery, 1, 0
	m.usedBytes, m.maxBytes = 0, maxBytes
	m.start, m.lastYield, m.limit = time.Now(), 0, limit
	m.ran, m.lastLook = 0, 0
	m.kill.Store(false)
	m.ended, m.killedAt = nil, 0
}

// Done never tells by its channel that the run is over, for a script could catch that: it ends the run itself.
func (m *meter) Done() <-chan struct{} {
	m.left -= m.step
	if m.left <= 0 {
		m.look()
	}
	return nil
}

// The rest of context.Context.

func (m *meter) Deadline() (time.Time, bool) { return time.Time{}, false }
func (m *meter) Err() error                  { return nil }
func (m *meter) Value(any) any               { return nil }

// spend accounts for work inside a native function, in units of one instruction: some 30 nanoseconds.
func (m *meter) spend(n int) {
	m.left -= n
	if m.left <= 0 {
		m.look()
	}
}

func (m *meter) look() {
	m.left = lookEvery
	if m.ended != nil {
		panic(endSignal(m.ended))
	}
	if m.kill.Load() {
		m.killedAt = message.CurrentLine(m.l)
		m.end("ERR Script killed by user with SCRIPT KILL...")
	}
	now := time.Since(m.start)
	m.ran += min(now-m.lastLook, longestLook)
	if m.ran > m.limit || now > wallFactor*m.limit {
		m.end("ERR script ran longer than " + strconv.FormatFloat(float64(m.limit)/1e6, 'f', -1, 64) +
			" ms and was ended; see --lua-time-limit")
	}
	if now-m.lastYield >= yieldEvery {
		yield(m.ran > politeAfter && now-m.ran < m.limit)
		now = time.Since(m.start)
		m.lastYield = now
	}
	m.lastLook = now
}

// charge accounts for n bytes before they are allocated. Nothing is ever credited: what a run allocates in all bounds
// what it holds at any time, and needs no knowledge of the garbage collector.
func (m *meter) charge(n int) {
	if n < 0 || n > m.maxBytes-m.usedBytes {
		m.end("ERR script used more than " + strconv.Itoa(m.maxBytes) + " bytes of memory and was ended")
	}
	m.usedBytes += n
	m.widen(n)
	m.spend(n >> 6)
}

// elapsed is how long the run has lasted.
func (m *meter) elapsed() time.Duration { return time.Since(m.start) }

// widen raises the price of an instruction when something of n bytes is about: to compare, hash or copy it is one
// instruction, too.
func (m *meter) widen(n int) {
	if step := 1 + n>>10; step > m.step {
		m.step = step
	}
}

// hole counts n more array slots without a value.
func (m *meter) hole(n int) {
	m.holes += n
	m.widen(m.holes)
}

func (m *meter) end(reason string) {
	m.ended = &EndError{reason}
	panic(endSignal(m.ended))
}

// endSignal is the panic that unwinds a run. The trace is filled in so that gopher-lua does not compute one.
func endSignal(e *EndError) *vm.ApiError {
	return &vm.ApiError{Type: vm.ApiErrorError, Object: vm.LString(e.Reason), StackTrace: message.NoTrace}
}
