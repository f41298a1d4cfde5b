// Package lua runs Redis's Lua scripts against a small host. It knows no sessions and no store. An Engine is safe for
// concurrent use; each run has an interpreter of its own while it lasts. Scripts are not trusted: what a run may take
// of time and memory is bounded, and nothing is left of it for the next one.
package lua

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	vm "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/message"
	"cellserver/internal/resp"
)

// Host is what a script can reach.
type Host interface {
	// Call executes a command and appends its reply to buf, in RESP3 if that is asked for. An error reply is a reply.
	// The arguments are valid during the call only.
	Call(args [][]byte, resp3 bool, buf []byte) []byte
	// Log takes a line of redis.log; the level is one of Redis's, 0 (debug) to 3 (warning).
	Log(level int, message string)
}

// Config bounds an Engine. A zero means the default, except for the clock, which is required.
type Config struct {
	Now            func() int64  // monotonic nanoseconds
	TimeLimit      time.Duration // of a run; 50 ms
	MaxMemoryBytes int           // what a run may allocate in all, garbage included; 16 MiB
	MaxReplyBytes  int           // of a run's reply; 8 MiB
	MaxSourceBytes int           // of a script's source; 64 KiB
	MaxScripts     int           // that only EVAL has seen and the cache holds; 500
	MaxCacheBytes  int           // of all cached scripts; 64 MiB
}

// Engine compiles, caches and runs scripts.
type Engine struct {
	now            func() int64
	timeLimit      time.Duration
	maxMemoryBytes int
	maxReplyBytes  int
	cache          cache
	idle           sync.Pool // of *state

	mu      sync.Mutex // guards running
	running map[*state]struct{}
}

// New returns an engine with an empty cache.
func New(c Config) *Engine {
	const mib = 1 << 20
	orDefault := func(n *int, value int) {
		if *n <= 0 {
			*n = value
		}
	}
	orDefault(&c.MaxMemoryBytes, 16*mib)
	orDefault(&c.MaxReplyBytes, 8*mib)
	orDefault(&c.MaxSourceBytes, 64<<10)
	orDefault(&c.MaxScripts, 500)
	orDefault(&c.MaxCacheBytes, 64*mib)
	if c.TimeLimit <= 0 {
		c.TimeLimit = 50 * time.Millisecond
	}
	e := &Engine{
		now:            c.Now,
		timeLimit:      c.TimeLimit,
		maxMemoryBytes: c.MaxMemoryBytes,
		maxReplyBytes:  c.MaxReplyBytes,
		running:        map[*state]struct{}{},
	}
	e.cache.scripts = map[scriptKey]*Script{}
	e.cache.maxSourceBytes, e.cache.maxEvaluated, e.cache.maxBytes = c.MaxSourceBytes, c.MaxScripts, c.MaxCacheBytes
	return e
}

// TimeLimit is how long a run may take.
func (e *Engine) TimeLimit() time.Duration { return e.timeLimit }

// NotBusyError is what Kill answers when no script runs, in Redis's words.
type NotBusyError struct{}

func (NotBusyError) Error() string { return "NOTBUSY No scripts in execution right now." }

// Kill ends the scripts that run, at their next look at the clock.
func (e *Engine) Kill() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.running) == 0 {
		return NotBusyError{}
	}
	for st := range e.running {
		st.meter.Kill()
	}
	return nil
}

// EndError says why a run was cut short. Nothing that such a run wrote may be kept.
type EndError struct{ Reason string }

func (e *EndError) Error() string { return e.Reason }

// Run runs a script and appends its reply to buf, in RESP3 if that is asked for. There is a reply in every case. The
// error is nil or an *EndError: the run was cut short, and what the script wrote must not be kept. When ctx is
// cancelled, the run is ended at its next look at the clock.
func (e *Engine) Run(ctx context.Context, s *Script, keys, argv [][]byte, host Host, resp3 bool, buf []byte) (reply []byte, err error) {
	st, _ := e.idle.Get().(*state)
	if st == nil {
		st = newState(e.now)
	}
	st.begin(ctx, e, s, host, resp3, buf)
	e.enter(st)
	problem := st.protect(keys, argv)
	e.leave(st)
	switch reason, line := st.meter.Ended(); {
	case reason != "":
		reply, err = appendError(buf, message.InScript(reason, s.SHA1, line), resp3), &EndError{reason}
	case problem != nil:
		reply = appendError(buf, errorText(problem, s), resp3)
	default:
		reply = st.reply.Buf
	}
	if st.reusable() {
		st.forget()
		e.idle.Put(st)
	}
	return reply, err
}

func (e *Engine) enter(st *state) {
	e.mu.Lock()
	e.running[st] = struct{}{}
	e.mu.Unlock()
}

func (e *Engine) leave(st *state) {
	e.mu.Lock()
	delete(e.running, st)
	e.mu.Unlock()
}

// protect runs the script. A panic of the interpreter ends the run, and its state is not used again; the stack goes
// to the log, as the script's author cannot help.
func (st *state) protect(keys, argv [][]byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			st.fail(fmt.Sprintf("%v\n%s", r, debug.Stack()))
		}
	}()
	err = st.run(keys, argv)
	if api, ok := err.(*vm.ApiError); ok && api.Type == vm.ApiErrorPanic { //nolint:errorlint // as it is
		st.fail(api.Error())
	}
	return err
}

func (st *state) fail(stack string) {
	if reason, _ := st.meter.Ended(); reason == "" {
		st.meter.Fail("ERR script was ended by an internal error")
		st.host.Log(logWarning, "panic in script "+st.script.SHA1+": "+stack)
	}
}

func appendError(buf []byte, text string, resp3 bool) []byte {
	w := resp.Writer{Buf: buf, RESP3: resp3}
	w.Error(text)
	return w.Buf
}
