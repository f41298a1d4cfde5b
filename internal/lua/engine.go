// Package lua runs Redis's Lua scripts against a small host. It knows no sessions and no store. An Engine is safe for
// concurrent use; each run has an interpreter of its own while it lasts. Scripts are not trusted: what a run may take
// of time and memory is bounded, and nothing is left of it for the next one.
package lua

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"sync"
	"time"

	"cellserver/internal/lua/guard"
	"cellserver/internal/lua/vm"

	"cellserver/internal/lua/lib"
	"cellserver/internal/resp"
)

// Host is what a script can reach.
type Host = lib.Host

// ThreadClock returns what Config needs to hold a run to the processor time that it has had, and nil where the system does
// not tell.
func ThreadClock() func() int64 { return guard.ThreadClock() }

// Config bounds an Engine. A zero means the default, except for the clock, which is required.
type Config struct {
	Now            func() int64  // monotonic nanoseconds
	ThreadNow      func() int64  // nanoseconds of processor time that the calling thread has had; without it, a run's are estimated
	TimeLimit      time.Duration // of a run; 50 ms
	MaxMemoryBytes int           // what a run may allocate in all, garbage included; 16 MiB
	MaxReplyBytes  int           // of a run's reply; 8 MiB
	MaxSourceBytes int           // of a script's source; 64 KiB
	MaxScripts     int           // that only EVAL has seen and the cache holds; 500
	MaxLoaded      int           // that SCRIPT LOAD has loaded and the cache holds; 10,000
	MaxCacheBytes  int           // of all cached scripts; 64 MiB, of which a quarter is for those of EVAL
	Native         []string      // the full names of commands that reply arrays of integers: of a script that is one call of them, Script.Native is set
}

// Engine compiles, caches and runs scripts.
type Engine struct {
	now, threadNow func() int64
	timeLimit      time.Duration
	maxMemoryBytes int
	maxReplyBytes  int
	cache          *cache
	idle           sync.Pool // of *interpreter

	mu      sync.Mutex // guards running
	running map[*interpreter]struct{}
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
	orDefault(&c.MaxLoaded, 10_000)
	orDefault(&c.MaxCacheBytes, 64*mib)
	if c.TimeLimit <= 0 {
		c.TimeLimit = 50 * time.Millisecond
	}
	return &Engine{
		now:            c.Now,
		threadNow:      c.ThreadNow,
		timeLimit:      c.TimeLimit,
		maxMemoryBytes: c.MaxMemoryBytes,
		maxReplyBytes:  c.MaxReplyBytes,
		cache:          newCache(c),
		running:        map[*interpreter]struct{}{},
	}
}

// TimeLimit is how long a run may take.
func (e *Engine) TimeLimit() time.Duration { return e.timeLimit }

// Load compiles a script for EVALSHA, unless it is loaded, and keeps it. When there are too many, those are forgotten that
// were not used, or not for the longest time. It may take milliseconds. The text of an error is that of the reply.
func (e *Engine) Load(source []byte) (*Script, error) { return e.cache.get(source, true) }

// Evaluate compiles a script, unless it is known. Scripts that were not loaded are forgotten as those that were, but have
// a room of their own. It may take milliseconds. Errors are as Load's.
func (e *Engine) Evaluate(source []byte) (*Script, error) { return e.cache.get(source, false) }

// Known returns the script of a source if Evaluate needs not compile it, and nil otherwise.
func (e *Engine) Known(source []byte) *Script { return e.cache.lookup(sha1.Sum(source)) }

// Loaded returns the script of a source if Load needs not compile it, and nil otherwise.
func (e *Engine) Loaded(source []byte) *Script { return e.cache.isLoaded(sha1.Sum(source)) }

// Lookup returns the script with a SHA-1 in 40 hexadecimal digits of any case, or nil.
func (e *Engine) Lookup(sha []byte) *Script {
	var key scriptKey
	if len(sha) != hex.EncodedLen(len(key)) {
		return nil
	}
	if _, err := hex.Decode(key[:], sha); err != nil {
		return nil
	}
	return e.cache.lookup(key)
}

// Flush forgets all scripts. Runs go on.
func (e *Engine) Flush() { e.cache.flush() }

// CacheStats returns how many scripts are cached, and what they take.
func (e *Engine) CacheStats() (scripts, bytes int) { return e.cache.stats() }

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
	for in := range e.running {
		in.Meter.Kill()
	}
	return nil
}

// EndError says why a run was cut short. Nothing that such a run wrote may be kept.
type EndError struct{ Reason string }

func (e *EndError) Error() string { return e.Reason }

// RunWithin runs a script and appends its reply to buf, in RESP3 if that is asked for. There is a reply in every case. The
// error is nil or an *EndError: the run was cut short, and what the script wrote must not be kept. When ctx is
// cancelled, the run is ended at its next look at the clock. What it takes is taken from the allowance.
func (e *Engine) RunWithin(ctx context.Context, a *Allowance, s *Script, keys, argv [][]byte, host Host, resp3 bool, buf []byte) (reply []byte, err error) {
	in, _ := e.idle.Get().(*interpreter)
	if in == nil {
		in = newInterpreter(e.now, e.threadNow)
	}
	in.begin(ctx, e, *a, s, host, resp3, buf)
	e.enter(in)
	problem := in.run(keys, argv)
	e.leave(in)
	a.Spent += in.Meter.Ran()
	switch reason, line := in.Meter.Ended(); {
	case reason != "":
		reply, err = appendError(buf, guard.InScript(reason, s.SHA1, line), resp3), &EndError{reason}
	case problem != nil:
		reply = appendError(buf, vm.ErrorText(problem, s.SHA1), resp3)
	default:
		reply = in.reply.Buf
	}
	if in.reusable() {
		in.forget()
		e.idle.Put(in)
	}
	return reply, err
}

func (e *Engine) enter(in *interpreter) {
	e.mu.Lock()
	e.running[in] = struct{}{}
	e.mu.Unlock()
}

func (e *Engine) leave(in *interpreter) {
	e.mu.Lock()
	delete(e.running, in)
	e.mu.Unlock()
}

func appendError(buf []byte, text string, resp3 bool) []byte {
	w := resp.Writer{Buf: buf, RESP3: resp3}
	w.Error(text)
	return w.Buf
}
