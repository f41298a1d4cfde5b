package window

import (
	"bytes"
	"math/big"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/test/racetest"
)

// model is a window without bounds of any kind.
type model interface {
	// count returns how many units count now, rounded up.
	count(nowNs int64) int64
	add(nowNs, units int64)
	refund(nowNs, units int64)
}

// fixedModel is Redis's counter that expires.
type fixedModel struct{ endNs, units, periodNs int64 }

func (m *fixedModel) count(nowNs int64) int64 {
	if m.endNs <= nowNs {
		return 0
	}
	return m.units
}

func (m *fixedModel) add(nowNs, units int64) {
	if m.endNs <= nowNs {
		m.endNs, m.units = nowNs+m.periodNs, 0
	}
	m.units += units
}

func (m *fixedModel) refund(_, units int64) { m.units = max(0, m.units-units) }

// slidingModel is the time of each unit, in order.
type slidingModel struct {
	units    []int64
	periodNs int64
}

func (m *slidingModel) count(nowNs int64) (n int64) {
	for _, atNs := range m.units {
		if atNs > nowNs-m.periodNs {
			n++
		}
	}
	return n
}

func (m *slidingModel) add(nowNs, units int64) {
	for range units {
		m.units = append(m.units, nowNs)
	}
}

func (m *slidingModel) refund(nowNs, units int64) {
	m.units = m.units[:int64(len(m.units))-min(units, m.count(nowNs))]
}

// approxModel has the weighted sum in fractions.
type approxModel struct {
	startNs, previous, current int64
	periodNs                   int64
}

func (m *approxModel) count(nowNs int64) int64 {
	if m.previous+m.current == 0 {
		m.startNs = nowNs
	}
	for ; nowNs-m.startNs >= m.periodNs; m.startNs += m.periodNs {
		m.previous, m.current = m.current, 0
		if m.previous == 0 {
			m.startNs = nowNs - m.periodNs
		}
	}
	share := new(big.Rat).SetFrac64(m.startNs+m.periodNs-nowNs, m.periodNs)
	share.Mul(share, new(big.Rat).SetInt64(m.previous))
	up := new(big.Int).Add(share.Num(), new(big.Int).Sub(share.Denom(), big.NewInt(1)))
	return m.current + up.Quo(up, share.Denom()).Int64()
}

func (m *approxModel) add(nowNs, units int64) {
	m.count(nowNs)
	m.current += units
}

func (m *approxModel) refund(nowNs, units int64) {
	m.count(nowNs)
	fromCurrent := min(m.current, units)
	m.current -= fromCurrent
	m.previous = max(0, m.previous-(units-fromCurrent))
}

var kinds = []struct {
	name    string
	request func(l Limit, payload []byte, expiresNs, nowNs, quantity int64, o Options) ([]byte, int64, funnel.Result, bool)
	model   func(periodNs int64) model
}{
	{"fixed", Limit.Fixed, func(periodNs int64) model { return &fixedModel{periodNs: periodNs} }},
	{"sliding", Limit.Sliding, func(periodNs int64) model { return &slidingModel{periodNs: periodNs} }},
	{"approximate", Limit.Approx, func(periodNs int64) model { return &approxModel{periodNs: periodNs} }},
}

// TestWindowsAgreeWithModels runs random traces in milliseconds.
func TestWindowsAgreeWithModels(t *testing.T) {
	racetest.SkipAlone(t)
	t.Parallel()
	for _, kind := range kinds {
		for seed := range uint64(150) {
			rng := rand.New(rand.NewPCG(seed, 2))
			o := Options{Unit: funnel.Milliseconds, CountDenied: seed%3 == 0}
			maxCount, periodSec := 1+rng.Int64N(40), 1+rng.Int64N(10)
			w, m := window{request: kind.request}, kind.model(periodSec*sec)
			nowNs, paceMs := t0, 1+rng.Int64N(2*periodSec*1000/maxCount)
			for step := range 400 {
				nowNs += rng.Int64N(paceMs) * ms
				if rng.IntN(50) == 0 {
					nowNs += rng.Int64N(3*periodSec*sec/ms) * ms
				}
				if !o.CountDenied && rng.IntN(20) == 0 {
					maxCount = 1 + rng.Int64N(40)
				}
				quantity := rng.Int64N(4)
				switch rng.IntN(12) {
				case 0:
					quantity = rng.Int64N(maxCount + 3)
				case 1:
					quantity = 1 - rng.Int64N(4)
					if o.CountDenied { // for only so many are kept that they could be taken back
						quantity = 0
					}
				}
				l := mustLimit(t, maxCount, periodSec)
				count := m.count(nowNs)
				limited := quantity >= 0 && count+quantity > maxCount
				if o.CountDenied && kind.name == "sliding" && quantity == 0 {
					limited = false // for no more than maxCount are kept
				}
				if quantity < 0 {
					m.refund(nowNs, -quantity)
				} else if quantity > 0 && (!limited || o.CountDenied) {
					m.add(nowNs, quantity)
				}
				got, _ := w.ask(l, nowNs, quantity, o)
				if remaining := max(0, maxCount-m.count(nowNs)); got.Limited != limited || got.Remaining != remaining || got.Limit != maxCount {
					t.Fatalf("%s, seed %d, step %d, quantity %d: got %+v, want limited %v and %d remaining", kind.name, seed, step, quantity, got, limited, remaining)
				}
				checkTimes(t, kind.name, &w, l, nowNs, quantity, got)
			}
		}
	}
}

// checkTimes: a call is allowed at RetryAfter and no millisecond before; the window is empty at ResetAfter.
func checkTimes(t *testing.T, name string, w *window, l Limit, nowNs, quantity int64, r funnel.Result) {
	t.Helper()
	at := func(afterMs, quantity int64) funnel.Result {
		later := window{w.request, bytes.Clone(w.payload), w.expiresNs}
		r, _ := later.ask(l, nowNs+afterMs*ms, quantity, Options{Unit: funnel.Milliseconds})
		return r
	}
	switch {
	case !r.Limited || quantity > r.Limit:
		if r.RetryAfter != -1 {
			t.Fatalf("%s: retry after %d ms, of %+v", name, r.RetryAfter, r)
		}
	case r.RetryAfter < 1 || at(r.RetryAfter, quantity).Limited || !at(r.RetryAfter-1, quantity).Limited:
		t.Fatalf("%s: not right to retry %d after %+v", name, quantity, r)
	}
	if at(r.ResetAfter, 0).Remaining != r.Limit || r.Remaining < r.Limit && at(r.ResetAfter-1, 0).Remaining == r.Limit {
		t.Fatalf("%s: not right to call it empty after %+v", name, r)
	}
}

// validEach is the distance of calls with a full check of a large payload.
const validEach = 16

// TestSlidingKeepsLittle: a payload's capacity is a power of two, more than a quarter used, and shrinks in
// quiet times.
func TestSlidingKeepsLittle(t *testing.T) {
	racetest.SkipAlone(t)
	t.Parallel()
	l := mustLimit(t, MaxExact, 1)
	w, nowNs := window{request: Limit.Sliding}, t0
	most := 0
	for _, paceNs := range []int64{sec / 100, sec / 5000, sec / 1000, sec / 10} {
		for i := range 10_000 {
			nowNs += paceNs
			w.ask(l, nowNs, 1, Options{})
			g := openRing(w.payload)
			most = max(most, len(w.payload))
			if g.capacity > leastRecords && g.length <= g.capacity/4 {
				t.Fatalf("%d records in room for %d", g.length, g.capacity)
			}
			if i%validEach == 0 && !ValidSliding(w.payload, w.expiresNs) {
				t.Fatalf("not a payload that can be: %+v", g)
			}
		}
	}
	if want := ringHeader + MaxExact*recordBytes; most != want {
		t.Errorf("the largest payload has %d bytes, want %d", most, want)
	}
	if want := ringHeader + 32*recordBytes; len(w.payload) > want {
		t.Errorf("a payload of 10 records has %d bytes, want at most %d", len(w.payload), want)
	}
}

// TestUnchangedIsUntouched: without a change, a payload is at most shortened in place.
func TestUnchangedIsUntouched(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := window{request: kind.request}
		l := mustLimit(t, 3, 10)
		w.ask(l, t0, 1, Options{})
		w.ask(l, t0+6*sec, 2, Options{})
		for _, quantity := range []int64{0, 4, 1} {
			before := window{w.request, bytes.Clone(w.payload), w.expiresNs}
			_, changed := w.ask(l, t0+7*sec, quantity, Options{})
			if changed || before.expiresNs != w.expiresNs || !bytes.Equal(before.payload, w.payload) {
				t.Errorf("%s: a request for %d has changed %+v to %+v", kind.name, quantity, before, w)
			}
		}
	}
}

func TestWindowsDoNotAllocate(t *testing.T) {
	for _, kind := range kinds {
		for _, countDenied := range []bool{false, true} {
			l := mustLimit(t, 100, 1)
			w, nowNs := window{request: kind.request}, t0
			call := func() {
				nowNs += 5 * ms
				w.ask(l, nowNs, 1, Options{CountDenied: countDenied})
			}
			for range 300 {
				call()
			}
			if n := testing.AllocsPerRun(1000, call); n != 0 {
				t.Errorf("%s: %v allocations a call, want 0", kind.name, n)
			}
		}
	}
}
