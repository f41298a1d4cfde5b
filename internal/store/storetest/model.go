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

// model is a store of funnels as a plain map.
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

// decide compares a batch's results with the model's.
func (m model) decide(t reporter, ks store.Keys, nowNs int64, batch []store.Request) {
	t.Helper()
	for i, q := range decide(t, ks, nowNs, batch) {
		if want := m.throttle(nowNs, &q); q.Result != want {
			t.Fatalf("request %d of %d, quantity %d: got %+v, want %+v", i, len(batch), q.Quantity, q.Result, want)
		}
	}
}

// source picks random operations.
type source struct {
	*rand.Rand
	funnels bool // on many funnels; else on a few keys of every kind
	limits  []funnel.Limit
}

func newSource(seed uint64, funnels bool) source {
	return source{rand.New(rand.NewPCG(seed, 1)), funnels, []funnel.Limit{
		limit(0, 1, 1), limit(15, 30, 60), limit(3, 1000, 1), limit(99, 1, 600), limit(4, 999_999_937, 1),
	}}
}

// key picks one of 600 for funnels, else one of 40, so that payloads grow.
func (r source) key() store.Key {
	if r.funnels {
		i := r.IntN(200)
		return key(uint16(r.IntN(3)), strings.Repeat(strconv.Itoa(i)+"-", i%13))
	}
	i := r.IntN(40)
	return key(uint16(i%3), strings.Repeat(strconv.Itoa(i)+"-", []int{1, 2, 4, 5, 30, 60, 300, 1000}[i%8]))
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

// stepNs returns the time until the next operation.
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
