package command

import (
	"strings"
	"sync"
	"sync/atomic"
)

// rowStats is what INFO commandstats tells of a command.
type rowStats struct {
	calls    atomic.Int64 // also those that failed
	ns       atomic.Int64 // spent in them
	failed   atomic.Int64 // replied an error
	rejected atomic.Int64 // replied an error before they ran

	histogram histogram
}

// took notes how long calls took together.
func (st *rowStats) took(calls, ns int64) {
	st.ns.Add(ns)
	st.histogram.add(ns/calls, calls)
}

func (st *rowStats) reset() {
	for _, n := range []*atomic.Int64{&st.calls, &st.ns, &st.failed, &st.rejected} {
		n.Store(0)
	}
	st.histogram.reset()
}

// errorStats counts error replies by their codes.
type errorStats struct {
	mu     sync.Mutex // guards all below
	byCode map[string]int64
	total  int64
}

// maxErrorCodes bounds the codes counted: those that scripts make up are the client's.
const (
	maxErrorCodes     = 128
	maxErrorCodeBytes = 64
)

func (e *errorStats) count(text string) {
	code, _, _ := strings.Cut(text[:min(len(text), maxErrorCodeBytes)], " ")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.total++
	if _, known := e.byCode[code]; known || len(e.byCode) < maxErrorCodes {
		if e.byCode == nil {
			e.byCode = map[string]int64{}
		}
		e.byCode[strings.Clone(code)]++
	}
}

// each visits the counts by code.
func (e *errorStats) each(visit func(code string, n int64)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for code, n := range e.byCode {
		visit(code, n)
	}
}

func (e *errorStats) sum() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.total
}

func (e *errorStats) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byCode, e.total = nil, 0
}

// executed counts the calls of all commands.
func (t *table) executed() (n int64) {
	t.each(func(r *row) { n += r.stats.calls.Load() })
	return n
}

func (t *table) resetStats() { t.each(func(r *row) { r.stats.reset() }) }

// each visits all commands and their subcommands, in the order of their names.
func (t *table) each(visit func(*row)) {
	for _, r := range t.rows {
		visit(r)
		for _, sub := range r.subs {
			visit(sub)
		}
	}
}
