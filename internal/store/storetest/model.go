package storetest

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

type id struct {
	db   uint16
	name string
}

func idOf(k store.Key) id { return id{k.DB, string(k.Name)} }

// model is a store as a plain map.
type model map[id]int64

func (m model) tat(nowNs int64, k store.Key) int64 { return max(m[idOf(k)], nowNs) }

func (m model) throttle(nowNs int64, q *store.Request) funnel.Result {
	tatNs, r := q.Rule.Funnel.Throttle(m.tat(nowNs, q.Key), nowNs, q.Quantity)
	m[idOf(q.Key)] = tatNs
	return r
}

func (m model) delete(nowNs int64, keys []store.Key) (deleted int) {
	for _, k := range keys {
		if m.tat(nowNs, k) > nowNs {
			deleted++
		}
		delete(m, idOf(k))
	}
	return deleted
}

// setIf returns the TAT that there was, or nowNs.
func (m model) setIf(nowNs int64, k store.Key, tatNs int64, when store.Condition) (foundNs int64) {
	if foundNs = m.tat(nowNs, k); when.Holds(foundNs > nowNs) {
		m[idOf(k)] = tatNs
	}
	return foundNs
}

// decide has a batch decided by keys, and holds the results to those of the model.
func (m model) decide(t reporter, ks store.Keys, nowNs int64, batch []store.Request) {
	t.Helper()
	for i, q := range decide(t, ks, nowNs, batch) {
		if want := m.throttle(nowNs, &q); q.Result != want {
			t.Fatalf("request %d of %d, quantity %d: got %+v, want %+v", i, len(batch), q.Quantity, q.Result, want)
		}
	}
}

// source picks what random operations are about.
type source struct {
	*rand.Rand
	limits []funnel.Limit
}

func newSource(seed uint64) source {
	return source{rand.New(rand.NewPCG(seed, 1)), []funnel.Limit{
		limit(0, 1, 1), limit(15, 30, 60), limit(3, 1000, 1), limit(99, 1, 600), limit(4, 999_999_937, 1),
	}}
}

// key picks one of 600.
func (r source) key() store.Key {
	i := r.IntN(200)
	return key(uint16(r.IntN(3)), strings.Repeat(strconv.Itoa(i)+"-", i%13))
}

func (r source) keys(most int) []store.Key {
	keys := make([]store.Key, r.IntN(most+1))
	for i := range keys {
		keys[i] = r.key()
	}
	return keys
}

func (r source) condition() store.Condition {
	return [...]store.Condition{store.Always, store.IfAbsent, store.IfFound}[r.IntN(3)]
}

func (r source) quantity() int64 {
	if extremes := []int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64, 0}; r.IntN(50) == 0 {
		return extremes[r.IntN(len(extremes))]
	}
	return r.Int64N(8) - 2
}

func (r source) request() store.Request {
	return store.Request{Key: r.key(), Rule: limiter.OfFunnel(r.limits[r.IntN(len(r.limits))]), Quantity: r.quantity()}
}

// stepNs is how long it takes until the next operation.
func (r source) stepNs() int64 {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return r.Int64N(3)
	case 2:
		return r.Int64N(sec)
	default:
		return r.Int64N(sec / 500)
	}
}

func checkModel(t reporter, s store.Store) {
	r, m, nowNs := newSource(1), model{}, t0
	var batch []store.Request
	for range 10_000 {
		nowNs += r.stepNs()
		m.step(t, s, nowNs, r, &batch)
	}
}

// step does something to keys and to the model. The batch is used again.
func (m model) step(t reporter, ks store.Keys, nowNs int64, r source, batch *[]store.Request) {
	switch n := r.IntN(10); {
	case n < 7:
		*batch = (*batch)[:0]
		for range 1 + r.IntN(1+r.IntN(12)) {
			*batch = append(*batch, r.request())
		}
		m.decide(t, ks, nowNs, *batch)
	case n < 8 && r.IntN(2) == 0:
		k, tatNs, when := r.key(), nowNs+r.Int64N(4*sec)-sec, r.condition()
		wantSetIf(t, ks, nowNs, k, tatNs, when, m.setIf(nowNs, k, tatNs, when))
	case n < 8:
		keys := r.keys(5)
		wantDeleted(t, ks, nowNs, keys, m.delete(nowNs, keys))
	default:
		k := r.key()
		wantTAT(t, ks, nowNs, k, m.tat(nowNs, k))
	}
}
