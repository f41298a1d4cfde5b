package ahead

import (
	"container/heap"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/recent"
	"cellserver/internal/keep/remote/timeline"
	"cellserver/internal/store"
)

// fleet is several processes that share one key of a server, on a virtual clock: what time it is truly. All other clocks differ
// from that and from each other.
type fleet struct {
	t       *testing.T
	rand    *rand.Rand
	limit   funnel.Limit
	nowNs   int64
	events  events
	server  server
	cells   []*cell
	delayNs func() int64 // of a message
	lost    func() bool  // whether a message is

	admitted  []admitted
	scripts   int
	decisions int
	denied    int
}

// server has the key.
type server struct {
	clock
	tatNs   int64
	stepped bool // the clock was set: what processes think of it may be wrong for a while
}

// admitted is so many units that were used at a time, by the server's clock.
type admitted struct{ atNs, units int64 }

// clock is what a clock shows, at true times.
type clock struct {
	aheadNs int64
	driftPP int64 // of so many in 10,000
}

func (c *clock) at(trueNs int64) int64 { return trueNs + c.aheadNs + trueNs/10_000*c.driftPP }

// tell is what the server's TIME says.
func (s *server) tell(trueNs int64) int64 { return s.at(trueNs) / 1000 * 1000 }

// cell is a process. What it cannot decide waits while one call of the key's script is under way, and is then looked at again.
type cell struct {
	clock
	*fleet
	line    timeline.Timeline
	table   *Table
	recent  *recent.Table
	waiting []int64 // quantities
	flying  int     // the call under way, by its number; 0 is none
	calls   int
}

type event struct {
	atNs int64
	do   func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].atNs < e[j].atNs }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

var key = []byte("key")

const (
	us  = int64(1_000)
	ms  = 1_000 * us
	sec = 1_000 * ms
)

func newFleet(t *testing.T, seed uint64, cells int, capacity, perSec int64, c Config) *fleet {
	l, err := funnel.NewLimit(funnel.Capacity, capacity, perSec, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, rand: rand.New(rand.NewPCG(seed, 15)), limit: l, nowNs: 1_000_000 * sec}
	f.delayNs = func() int64 { return 50*us + f.rand.Int64N(200*us) }
	f.lost = func() bool { return false }
	f.server.aheadNs = f.rand.Int64N(10*sec) - 5*sec
	for range cells {
		k := &cell{fleet: f, table: New(c), recent: recent.New(0)}
		k.aheadNs, k.driftPP = f.rand.Int64N(10*sec)-5*sec, f.rand.Int64N(9)-4
		f.cells = append(f.cells, k)
		f.sweep(k)
	}
	return f
}

// after does something when a time has passed.
func (f *fleet) after(ns int64, do func()) { heap.Push(&f.events, event{f.nowNs + ns, do}) }

// run goes on for a time.
func (f *fleet) run(ns int64) {
	endNs := f.nowNs + ns
	for len(f.events) > 0 && f.events[0].atNs <= endNs {
		e := heap.Pop(&f.events).(event)
		f.nowNs = e.atNs
		e.do()
	}
	f.nowNs = endNs
}

// demand has calls of one unit come to a process, at random, so many a second, while the function says so.
func (f *fleet) demand(k *cell, perSec float64, while func() bool) {
	f.after(int64(f.rand.ExpFloat64()/perSec*float64(sec)), func() {
		if while() {
			k.request(1)
			f.demand(k, perSec, while)
		}
	})
}

// sweep gives back what is due, all the time.
func (f *fleet) sweep(k *cell) {
	f.after(100*ms, func() {
		for _, c := range k.table.Return(k.at(f.nowNs)) {
			k.sendCut(c)
		}
		f.sweep(k)
	})
}

func (k *cell) sendCut(c Cut) {
	if k.lost() {
		return
	}
	k.after(k.delayNs(), func() { k.server.cut(c) })
}

// cut is the script that gives back.
func (s *server) cut(c Cut) {
	if s.tatNs == c.EndNs {
		s.tatNs = c.ToNs
	}
}

// request is a call.
func (k *cell) request(quantity int64) {
	k.decisions++
	if !k.answer(quantity) {
		k.waiting = append(k.waiting, quantity)
		k.flush()
	}
}

// answer decides a request here, if that can be done.
func (k *cell) answer(quantity int64) bool {
	localNs := k.at(k.nowNs)
	latestNs, ok := k.line.Latest(localNs)
	if !ok {
		return false
	}
	earliestNs, _ := k.line.Earliest(localNs)
	if told := k.server.at(k.nowNs); (told > latestNs || told < earliestNs) && !k.server.stepped {
		k.t.Fatalf("it is %d by the server, not from %d to %d", told, earliestNs, latestNs)
	}
	if r, ok := k.table.Take(key, k.limit, funnel.Seconds, quantity, latestNs, localNs); ok {
		if r.Limited || r.RetryAfter != -1 || r.Remaining < 0 || r.Remaining > r.Limit-quantity {
			k.t.Fatalf("a lease answered %+v", r)
		}
		k.admit(quantity)
		return true
	}
	if _, ok = k.recent.Denied(key, k.limit, funnel.Seconds, quantity, earliestNs, latestNs, localNs); ok {
		k.denied++
	}
	return ok
}

func (f *fleet) admit(units int64) {
	f.admitted = append(f.admitted, admitted{f.server.tell(f.nowNs), units})
}

// flush sends what waits.
func (k *cell) flush() {
	if k.flying != 0 {
		return
	}
	var batch []int64
	for _, quantity := range k.waiting {
		if !k.answer(quantity) {
			batch = append(batch, quantity)
		}
	}
	k.waiting = k.waiting[:0]
	if len(batch) == 0 {
		return
	}
	sentNs := k.at(k.nowNs)
	ask := k.table.Want(key, k.limit, len(batch), sentNs)
	k.calls++
	call := k.calls
	k.flying = call
	k.scripts++
	const timeout = 50 * ms
	k.after(timeout, func() { k.landed(call) })
	if !k.lost() {
		k.after(k.delayNs(), func() { k.execute(call, batch, ask, sentNs) })
	}
}

// landed lets the next call go.
func (k *cell) landed(call int) {
	if k.flying == call {
		k.flying = 0
		k.flush()
	}
}

// execute is the script.
func (k *cell) execute(call int, batch []int64, ask Ask, sentNs int64) {
	f := k.fleet
	nowNs := f.server.tell(f.nowNs)
	var full bool
	for _, quantity := range batch {
		tatNs, r := f.limit.Throttle(f.server.tatNs, nowNs, quantity)
		f.server.tatNs = tatNs
		if full = r.Remaining == 0; !r.Limited && quantity > 0 {
			f.admit(quantity)
		}
	}
	fromNs := max(f.server.tatNs, nowNs)
	var units int64
	for ; units < ask.Units; units++ {
		tatNs, r := f.limit.Throttle(f.server.tatNs, nowNs, 1)
		if r.Limited {
			break
		}
		f.server.tatNs = tatNs
	}
	tatNs := f.server.tatNs
	table := k.table
	if !f.lost() {
		f.after(f.delayNs(), func() {
			k.line.Note(sentNs, k.at(f.nowNs), nowNs)
			if table == k.table {
				k.table.Granted(key, ask, nowNs, fromNs, units)
			}
			if full || units < ask.Units {
				k.recent.Note(key, tatNs, sentNs)
			}
			k.landed(call)
		})
	}
}

// check looks at every window: the units used in it must not be more than the capacity, and so many above, and what leaks in it.
func (f *fleet) check(above int64) {
	f.t.Helper()
	levelNs, atNs := int64(0), int64(0)
	boundNs := int64(f.limit.ToleranceNs()) + above*int64(f.limit.IntervalNs())
	for _, a := range f.admitted {
		levelNs = max(levelNs-(a.atNs-atNs), 0) + a.units*int64(f.limit.IntervalNs())
		atNs = a.atNs
		if levelNs > boundNs {
			f.t.Fatalf("a window holds %.3f units too many", float64(levelNs-boundNs)/float64(f.limit.IntervalNs()))
		}
	}
}

func (f *fleet) units() (sum int64) {
	for _, a := range f.admitted {
		sum += a.units
	}
	return sum
}

// plainly is how many units one funnel admits of calls of one unit at random times, so many a second.
func (f *fleet) plainly(perSec float64, ns int64) (units int64) {
	tatNs, atNs := int64(0), int64(0)
	for {
		atNs += int64(f.rand.ExpFloat64() / perSec * float64(sec))
		if atNs > ns {
			return units
		}
		next, r := f.limit.Throttle(tatNs, atNs, 1)
		if tatNs = next; !r.Limited {
			units++
		}
	}
}

func (f *fleet) stats() (st store.LeaseStats) {
	for _, k := range f.cells {
		k.table.UpdateStats(&st)
	}
	return st
}
