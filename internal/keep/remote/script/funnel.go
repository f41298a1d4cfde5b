package script

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"cellserver/internal/store"
)

// The funnels' script decides runs of equal requests on one key, at one time. It returns the key's value as
// it was and the time, both as decimal text, from which the results follow by the arithmetic of package
// funnel; or "!" if the value is no funnel's, and then nothing has changed.
//
// Its arguments are, of each run: how many requests, what each adds to the TAT, and the tolerance, the two of
// these as seconds and nanoseconds; for Lua's numbers are doubles, which are exact to 2^53 and would lose 256
// ns of a TAT. How many are -1 gives back what it says. A run of one request alone has no number of them. How
// many of n fit is found by doubling what they add while that fits, and then adding the largest parts that
// do: in steps of the logarithm of n, and without a division.
//
// A table as the reply would have the server take a tenth longer, and a number for PX a twentieth.

// MaxRuns is how many runs of equal requests a script decides at most.
const MaxRuns = 64

// run is equal requests that follow each other, or one refund.
type run struct {
	n                   int64 // 0 for none, refund for a refund
	addsNs, toleranceNs uint64
}

const refund = -1

// runOf returns the run of one request. It is none for what changes nothing whatever the TAT is.
func runOf(q *store.Request) run {
	l := q.Rule.Funnel
	switch {
	case q.Quantity < 0:
		hi, ns := bits.Mul64(l.IntervalNs(), -uint64(q.Quantity))
		if hi != 0 {
			ns = math.MaxUint64
		}
		return run{n: refund, addsNs: min(ns, math.MaxInt64)}
	case q.Quantity == 0 || !l.Fits(q.Quantity):
		return run{}
	}
	return run{n: 1, addsNs: l.DebitNs(q.Quantity), toleranceNs: l.ToleranceNs()}
}

// Runs joins requests of funnels to runs, and writes these as arguments.
type Runs struct {
	args []any
	runs int // with last
	last run
}

// Begin has no requests yet, decided at a caller's time if that is the scripts'. The array of the arguments
// is used again.
func (w *Runs) Begin(s *Scripts, nowNs int64) {
	*w = Runs{args: w.args[:0]}
	if s.callersTime {
		w.args = append(w.args, nowNs/nsPerSec, nowNs%nsPerSec)
	}
}

// Clear lets go of what the arguments refer to.
func (w *Runs) Clear() {
	clear(w.args)
	*w = Runs{args: w.args[:0]}
}

// joins reports whether a request goes into the last run.
func (w *Runs) joins(r run) bool {
	return r.n > 0 && w.last.n > 0 && r.addsNs == w.last.addsNs && r.toleranceNs == w.last.toleranceNs
}

// Fits reports whether there is room for a request.
func (w *Runs) Fits(q *store.Request) bool {
	if w.runs < MaxRuns {
		return true
	}
	r := runOf(q)
	return r.n == 0 || w.joins(r)
}

// Add adds a request.
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

// write writes the last run.
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

// Args returns all arguments, once.
func (w *Runs) Args() []any {
	if w.runs == 1 && w.last.n == 1 {
		w.writePairs()
	} else {
		w.write()
	}
	return w.args
}

// FunnelReply is what the funnels' script has returned.
type FunnelReply struct {
	TATNs    int64 // before; 0 if there was no key
	NowNs    int64 // by the server's clock
	NoFunnel bool  // the value is another's
}

// FunnelReplyOf reads a reply. It is false if the script cannot have made it.
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
