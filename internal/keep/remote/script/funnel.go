package script

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// The funnels' script decides runs of equal requests on one key at one time. It returns the key's previous
// value and the time as decimal text, from which package funnel's arithmetic yields the results; or "!",
// without a change, if the value is no funnel's.
//
// The arguments of a run are the number of requests, each one's addition to the TAT, and the tolerance, as
// seconds and nanoseconds: Lua's numbers are doubles, exact to 2^53, and would lose 256 ns of a TAT. A number
// of -1 is a refund; a single request omits it. How many of n fit is found by doubling the addition while it
// fits, then adding the largest parts that do: in logarithmic steps and without a division.
//
// A table as the reply would cost the server a tenth more time, and a number for PX a twentieth.

const MaxRuns = 64

// run is consecutive equal requests, or one refund.
type run struct {
	n                   int64 // 0 for none
	addsNs, toleranceNs uint64
}

const refund = -1

// IsRun reports whether the script decides a request. One with AtMost is a run of single units.
func IsRun(q *store.Request) bool {
	r := &q.Rule
	return r.Kind == limiter.Funnel && (r.Flags == 0 || r.Flags == limiter.AtMost && r.Funnel.Capacity() < NativeMost)
}

// runOf returns the run of one request, none if it cannot change anything.
func runOf(q *store.Request) run {
	l := q.Rule.Funnel
	switch {
	case q.Quantity < 0:
		hi, ns := bits.Mul64(l.IntervalNs(), -uint64(q.Quantity))
		if hi != 0 {
			ns = math.MaxUint64
		}
		return run{n: refund, addsNs: min(ns, math.MaxInt64)}
	case q.Rule.Flags == limiter.AtMost && l.Fits(1):
		return run{n: min(q.Quantity, l.Capacity()), addsNs: l.IntervalNs(), toleranceNs: l.ToleranceNs()}
	case q.Quantity == 0 || !l.Fits(q.Quantity):
		return run{}
	}
	return run{n: 1, addsNs: l.DebitNs(q.Quantity), toleranceNs: l.ToleranceNs()}
}

// Runs joins requests into runs and encodes their arguments.
type Runs struct {
	args []any
	runs int // including last
	last run
}

// Begin empties the runs, for the caller's time if the scripts use it. It reuses the arguments' array.
func (w *Runs) Begin(s *Scripts, nowNs int64) {
	*w = Runs{args: w.args[:0]}
	if s.callersTime {
		w.args = append(w.args, nowNs/nsPerSec, nowNs%nsPerSec)
	}
}

// Clear drops the arguments' references.
func (w *Runs) Clear() {
	clear(w.args)
	*w = Runs{args: w.args[:0]}
}

func (w *Runs) joins(r run) bool {
	return r.n > 0 && w.last.n > 0 && r.n <= math.MaxInt64-w.last.n && r.addsNs == w.last.addsNs && r.toleranceNs == w.last.toleranceNs
}

func (w *Runs) Fits(q *store.Request) bool {
	if w.runs < MaxRuns {
		return true
	}
	r := runOf(q)
	return r.n == 0 || w.joins(r)
}

func (w *Runs) Add(q *store.Request) {
	switch r := runOf(q); {
	case r.n == 0:
	case w.joins(r):
		w.last.n += r.n
	default:
		w.write()
		w.last = r
		w.runs++
	}
}

func (w *Runs) write() {
	if w.last.n != 0 {
		w.args = append(w.args, w.last.n)
		w.writePairs()
	}
}

func (w *Runs) writePairs() {
	r := &w.last
	w.args = append(w.args, r.addsNs/nsPerSec, r.addsNs%nsPerSec, r.toleranceNs/nsPerSec, r.toleranceNs%nsPerSec)
}

// Args returns all arguments. It is called once.
func (w *Runs) Args() []any {
	if w.runs == 1 && w.last.n == 1 {
		w.writePairs()
	} else {
		w.write()
	}
	return w.args
}

type FunnelReply struct {
	TATNs    int64 // previous one; 0 without a key
	NowNs    int64 // by the server's clock
	NoFunnel bool  // the value is of another kind
}

// FunnelReplyOf reads a reply, and returns false if the script cannot have made it.
func (s *Scripts) FunnelReplyOf(reply any) (r FunnelReply, ok bool) {
	text, ok := reply.(string)
	if !ok || text == "!" {
		return FunnelReply{NoFunnel: ok}, ok
	}
	tat, at, ok := strings.Cut(text, " ")
	sec, rest, both := strings.Cut(at, " ")
	if !ok || !both {
		return FunnelReply{}, false
	}
	if tat != "" {
		var err error
		if r.TATNs, err = strconv.ParseInt(tat, 10, 64); err != nil {
			return FunnelReply{}, false
		}
	}
	seconds, err := strconv.ParseInt(sec, 10, 64)
	part, err2 := strconv.ParseInt(rest, 10, 64)
	if !s.callersTime {
		part *= 1000
	}
	r.NowNs = seconds*nsPerSec + part
	return r, err == nil && err2 == nil
}
