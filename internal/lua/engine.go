// Package lua runs Redis's Lua scripts against a small host, without sessions or a store. An Engine is safe
// for concurrent use; each run has its own interpreter. Its library is Lua's, with prices, LuaJIT's bit,
// cjson, and the table redis. Scripts are not trusted: time and memory of a run are bounded, and it leaves
// nothing to the next.
package lua

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"sync"
	"time"

	"cellserver/internal/lua/vm"
	"cellserver/internal/resp"
)

// ThreadClock returns a clock for Config.ThreadNow, or nil if the system has none.
func ThreadClock() func() int64 { return vm.ThreadClock() }

// Config bounds an Engine. Zeros are the defaults, except for the required clock.
type Config struct {
	Now            func() int64  // monotonic nanoseconds
	ThreadNow      func() int64  // processor time of the calling thread in nanoseconds; estimated without it
	TimeLimit      time.Duration // of a run; 50 ms
	MaxMemoryBytes int           // total allocation of a run, garbage included; 16 MiB
	MaxReplyBytes  int           // of a run's reply; 8 MiB
	MaxSourceBytes int           // of a script's source; 64 KiB
	MaxScripts     int           // cached, by EVAL only; 500
	MaxLoaded      int           // cached, by SCRIPT LOAD; 10,000
	MaxCacheBytes  int           // of all cached scripts; 64 MiB, a quarter for EVAL's
	Native         []string      // full names of commands that reply arrays of integers, for Script.Native
	Version        string        // REDIS_VERSION: three numbers up to 255
}

// Engine compiles, caches and runs scripts.
type Engine struct {
	*cache
	config Config
	idle   sync.Pool // of *interpreter

	mu      sync.Mutex // rank 90: guards running
	running map[*interpreter]struct{}
}

func New(c Config) *Engine {
	const mib = 1 << 20
	c.TimeLimit = cmp.Or(max(c.TimeLimit, 0), 50*time.Millisecond)
	c.MaxMemoryBytes = cmp.Or(max(c.MaxMemoryBytes, 0), 16*mib)
	c.MaxReplyBytes = cmp.Or(max(c.MaxReplyBytes, 0), 8*mib)
	c.MaxSourceBytes = cmp.Or(max(c.MaxSourceBytes, 0), 64<<10)
	c.MaxScripts = cmp.Or(max(c.MaxScripts, 0), 500)
	c.MaxLoaded = cmp.Or(max(c.MaxLoaded, 0), 10_000)
	c.MaxCacheBytes = cmp.Or(max(c.MaxCacheBytes, 0), 64*mib)
	return &Engine{config: c, cache: newCache(c), running: map[*interpreter]struct{}{}}
}

// TimeLimit returns the time limit of a run.
func (e *Engine) TimeLimit() time.Duration { return e.config.TimeLimit }

// Load compiles a script for EVALSHA and caches it. Beyond the bounds, unused scripts are dropped, then the
// least recently used. It may take milliseconds. Error texts are replies.
func (e *Engine) Load(source []byte) (*Script, error) { return e.get(source, true) }

// Evaluate compiles an unknown script. Scripts that are not loaded are cached in their own partition. It may
// take milliseconds. Error texts are replies.
func (e *Engine) Evaluate(source []byte) (*Script, error) { return e.get(source, false) }

// Cached returns the script if Evaluate need not compile it, else nil.
func (e *Engine) Cached(source []byte) *Script { return e.lookup(sha1.Sum(source)) }

// Loaded returns the script if Load need not compile it, else nil.
func (e *Engine) Loaded(source []byte) *Script { return e.isLoaded(sha1.Sum(source)) }

// Lookup returns the script with a SHA-1 in 40 hexadecimal digits of any case, or nil.
func (e *Engine) Lookup(sha []byte) *Script {
	var key scriptKey
	if len(sha) != hex.EncodedLen(len(key)) {
		return nil
	}
	if _, err := hex.Decode(key[:], sha); err != nil {
		return nil
	}
	return e.lookup(key)
}

// LookupAgain is Lookup, faster if it returns the same as last time.
func (e *Engine) LookupAgain(last *Script, sha []byte) *Script {
	if last == nil || last.SHA1 != string(sha) || last.gone.Load() {
		return e.Lookup(sha)
	}
	e.use(last)
	return last
}

// NotBusyError is Kill's answer without a running script, in Redis's words.
type NotBusyError struct{}

func (NotBusyError) Error() string { return "NOTBUSY No scripts in execution right now." }

// Kill ends running scripts at their next look at the clock.
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

// EndError is the reason why a run was ended early; its writes must be dropped.
type EndError struct{ Reason string }

func (e *EndError) Error() string { return e.Reason }

// Allowance is the common time of the attempts of a script, or of the scripts of a transaction.
type Allowance struct {
	Limit time.Duration
	Spent time.Duration // the used part
	// Held says that others wait for the runs, which then keep their processor.
	Held bool
	Hint string // advice after the error about the limit
}

// Left is negative or 0 when all is spent.
func (a *Allowance) Left() time.Duration { return a.Limit - a.Spent }

// Allowance returns the time of all runs of a command.
func (e *Engine) Allowance() Allowance {
	return Allowance{Limit: e.config.TimeLimit, Hint: "see --lua-time-limit"}
}

// RunWithin runs a script in the allowance and appends its reply, in RESP3 on request, to buf. There is
// always a reply. The error is nil or an *EndError, after which the script's writes must be dropped. After
// the end of ctx, the run ends at its next look at the clock.
func (e *Engine) RunWithin(ctx context.Context, a *Allowance, s *Script, keys, argv [][]byte, host Host, resp3 bool, buf []byte) (reply []byte, err error) {
	in, _ := e.idle.Get().(*interpreter)
	if in == nil {
		in = newInterpreter(e.config.Now, e.config.ThreadNow, e.config.Version)
	}
	in.begin(ctx, e, *a, s, host, resp3, buf)
	e.mu.Lock()
	e.running[in] = struct{}{}
	e.mu.Unlock()
	problem := in.run(keys, argv)
	e.mu.Lock()
	delete(e.running, in)
	e.mu.Unlock()
	a.Spent += in.Meter.Ran()
	reason, line := in.Meter.Ended()
	switch {
	case reason != "":
		reply, err = appendError(buf, vm.InScript(reason, s.SHA1, line), resp3), &EndError{reason}
	case problem != nil:
		reply = appendError(buf, vm.ErrorText(problem, s.SHA1), resp3)
	default:
		reply = in.reply.Buf
	}
	if reason == "" && in.Meter.UsedBytes() <= maxIdleBytes {
		in.forget()
		e.idle.Put(in)
	}
	return reply, err
}

func appendError(buf []byte, text string, resp3 bool) []byte {
	w := resp.Writer{Buf: buf, RESP3: resp3}
	w.Error(text)
	return w.Buf
}
