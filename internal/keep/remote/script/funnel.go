package remote

import (
	_ "embed"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// The funnels' script decides runs of equal requests on one key, at one time. It returns the key's value as it was and the time, both as
// decimal text, from which the results follow by the arithmetic of package funnel; or "!" if the value is no funnel's, and then
// nothing has changed.
//
// Its arguments are, of each run: how many requests, what each adds to the TAT, and the tolerance, the two of these as seconds and
// nanoseconds; for Lua's numbers are doubles, which are exact to 2^53 and would lose 256 ns of a TAT. How many are -1 gives back what
// it says. A run of one request alone has no number of them. How many of n fit is found by doubling what they add while that
// fits, and then adding the largest parts that do: in steps of the logarithm of n, and without a division.
//
// A table as the reply would have the server take a tenth longer, and a number for PX a twentieth.
//
//go:embed funnel.lua
var funnelScript string

const (
	serversTime = "local t=call('TIME')\nlocal S,N=t[1]+0,t[2]*1000"
	callersTime = "local S,N=ARGV[1]+0,ARGV[2]+0"
	// hourMs is how much longer than it should a key lives whose time is not the servers'.
	hourMs = 3_600_000
)

// maxRuns is how many runs of equal requests a script decides at most.
const maxRuns = 64

const nsPerSec = 1_000_000_000

type scripts struct{ funnel, cut *servers.Script }

func newScripts(ofCallers bool) scripts {
	text := strings.NewReplacer("--TIME", serversTime, "FIRST+3", "4", "FIRST+2", "3", "FIRST+1", "2", "FIRST", "1", "+LONGER", "",
		"AT", "' '..t[1]..' '..t[2]")
	if ofCallers {
		text = strings.NewReplacer("--TIME", callersTime, "FIRST+3", "6", "FIRST+2", "5", "FIRST+1", "4", "FIRST", "3",
			"LONGER", strconv.Itoa(hourMs), "AT", "' '..ARGV[1]..' '..ARGV[2]")
	}
	return scripts{funnel: servers.NewScript(text.Replace(funnelScript)), cut: servers.NewScript(cutScript)}
}

// run is equal requests that follow each other, or one refund.
type run struct {
	n                   int64 // 0 for none, refund for a refund
	addsNs, toleranceNs uint64
}

const refund = -1

// runWriter joins requests of funnels to runs, and writes these as arguments.
type runWriter struct {
	args []any
	runs int // with last
	last run
}

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

// joins reports whether a request goes into the last run.
func (w *runWriter) joins(r run) bool {
	return r.n > 0 && w.last.n > 0 && r.addsNs == w.last.addsNs && r.toleranceNs == w.last.toleranceNs
}

// fits reports whether there is room for a request.
func (w *runWriter) fits(q *store.Request) bool {
	if w.runs < maxRuns {
		return true
	}
	r := runOf(q)
	return r.n == 0 || w.joins(r)
}

func (w *runWriter) add(q *store.Request) { w.addRun(runOf(q)) }

func (w *runWriter) addRun(r run) {
	switch {
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
func (w *runWriter) write() {
	if w.last.n != 0 {
		w.args = append(w.args, w.last.n)
		w.writePairs()
	}
}

func (w *runWriter) writePairs() {
	r := &w.last
	w.args = append(w.args, r.addsNs/nsPerSec, r.addsNs%nsPerSec, r.toleranceNs/nsPerSec, r.toleranceNs%nsPerSec)
}

// finish returns all arguments.
func (w *runWriter) finish() []any {
	if w.runs == 1 && w.last.n == 1 {
		w.writePairs()
	} else {
		w.write()
	}
	return w.args
}

// answer is what the script has returned.
type answer struct {
	tatNs int64 // before; 0 if there was no key
	nowNs int64 // by the server's clock
	apart bool  // the value is no funnel's

	failed *servers.Failed // why there is no answer
}

// parse reads a reply. It is false if the script cannot have made it.
func (s *Store) parse(reply any) (a answer, ok bool) {
	text, ok := reply.(string)
	if !ok || text == "!" {
		return answer{apart: ok}, ok
	}
	tat, at, ok := strings.Cut(text, " ")
	sec, rest, both := strings.Cut(at, " ")
	if !ok || !both {
		return answer{}, false
	}
	if tat != "" {
		var err error
		if a.tatNs, err = strconv.ParseInt(tat, 10, 64); err != nil {
			return answer{}, false
		}
	}
	seconds, err := strconv.ParseInt(sec, 10, 64)
	part, err2 := strconv.ParseInt(rest, 10, 64)
	if !s.CallersTime {
		part *= 1000
	}
	a.nowNs = seconds*nsPerSec + part
	return a, err == nil && err2 == nil
}

// replay decides what was taken of a group as the script has. The store learns of the key before anybody
// has an answer.
func (s *Store) replay(g *group, a answer, sentNs int64) {
	if s.knowsAny() {
		s.learnOf(g, a, sentNs)
	}
	state := limiter.State{ExpiresNs: a.tatNs}
	for it := g.taken.first; it != nil; it = it.next {
		q := it.request()
		result, _, err := q.Rule.Decide(&state, a.nowNs, q.Quantity)
		it.decided(result, err)
	}
}

// learnOf has the store learn what an answer tells of a group's key.
func (s *Store) learnOf(g *group, a answer, sentNs int64) {
	state := limiter.State{ExpiresNs: a.tatNs}
	full, refunded := false, false
	for it := g.taken.first; it != nil; it = it.next {
		q := it.request()
		result, _, _ := q.Rule.Decide(&state, a.nowNs, q.Quantity)
		full, refunded = result.Limited || result.Remaining == 0, refunded || q.Quantity < 0
	}
	var some bool
	state.ExpiresNs, some = s.granted(g, max(state.ExpiresNs, a.nowNs), a.nowNs)
	switch {
	case refunded:
		s.learn(g.key, lowered, nil, sentNs)
	case full || some:
		s.recent.Note(g.taken.last.request().Key.Name, state.ExpiresNs, sentNs)
	default:
		s.learn(g.key, raised, &state, sentNs)
	}
}

// learnFailed has the store learn that a group may have been executed although it has failed.
func (s *Store) learnFailed(g *group) {
	for it := g.taken.first; it != nil; it = it.next {
		if it.request().Quantity < 0 {
			s.learn(g.key, lowered, nil, 0)
			return
		}
	}
}
