package storetest

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(1_000_000_000)
)

func limit(maxBurst, count, periodSec int64) funnel.Limit {
	l, err := funnel.NewLimit(funnel.Burst, maxBurst, count, periodSec)
	if err != nil {
		panic(err) // a mistake in this package
	}
	return l
}

func key(db uint16, name string) store.Key { return store.Key{DB: db, Name: []byte(name)} }

func numbered(db uint16, prefix string, n int) []store.Key {
	keys := make([]store.Key, n)
	for i := range keys {
		keys[i] = key(db, prefix+strconv.Itoa(i))
	}
	return keys
}

var errStale = errors.New("an error of the request's last use")

// decide is answersTo for requests without errors.
func decide(t reporter, ks store.Keys, nowNs int64, batch []store.Request) []store.Request {
	t.Helper()
	answered := answersTo(t, ks, nowNs, batch)
	for i, a := range answered {
		if a.Err != nil {
			t.Fatalf("request %d of %d: %v", i, len(answered), a.Err)
		}
	}
	return answered
}

// answersTo returns the answers to a batch of reused requests, immediate or later.
func answersTo(t reporter, ks store.Keys, nowNs int64, batch []store.Request) []store.Request {
	t.Helper()
	for i := range batch {
		batch[i].Result, batch[i].Err = funnel.Result{Limit: -1, Remaining: -1, RetryAfter: -2}, errStale
	}
	requested, answered := slices.Clone(batch), batch
	if p := ks.Throttle(nowNs, batch); p != nil {
		answered = wait(t, p)
	}
	if len(answered) != len(requested) {
		t.Fatalf("%d requests, %d answers", len(requested), len(answered))
	}
	for i := range answered {
		a, q := &answered[i], &requested[i]
		if a.Key.DB != q.Key.DB || !bytes.Equal(a.Key.Name, q.Key.Name) || a.Rule != q.Rule ||
			a.Quantity != q.Quantity && q.Rule.Flags&limiter.AtMost == 0 {
			t.Fatalf("request %d of %d is another in the answer", i, len(answered))
		}
		if a.Result == q.Result && (a.Err == nil || errors.Is(a.Err, errStale)) {
			t.Fatalf("request %d of %d was left without a result", i, len(answered))
		}
	}
	return answered
}

func wait(t reporter, p store.Pending) []store.Request {
	t.Helper()
	woken := make(chan struct{}, 1)
	p.Notify(func() {
		select {
		case woken <- struct{}{}:
		default: // one wake too many; pendingChecks count
		}
	})
	<-woken
	answered, ok := p.Answers()
	if !ok {
		t.Fatalf("no answers after the wake")
	}
	return answered
}

// throttle is decide for one request.
func throttle(t reporter, ks store.Keys, nowNs int64, k store.Key, l funnel.Limit, quantity int64) funnel.Result {
	t.Helper()
	return decide(t, ks, nowNs, []store.Request{{Key: k, Rule: limiter.OfFunnel(l), Quantity: quantity}})[0].Result
}

// put makes a key live for ttlSec by one unit.
func put(t reporter, ks store.Keys, nowNs int64, k store.Key, ttlSec int64) {
	t.Helper()
	if throttle(t, ks, nowNs, k, limit(99, 1, ttlSec), 1).Limited {
		t.Fatalf("%.40q was limited", k.Name)
	}
}

// tatOf returns a key's TAT, nowNs if it is absent.
func tatOf(t reporter, ks store.Keys, nowNs int64, k store.Key) int64 {
	t.Helper()
	tatNs, ok, err := tatIn(ks, nowNs, k)
	if err != nil {
		t.Fatalf("TAT of %.40q: %v", k.Name, err)
	}
	if !ok {
		return nowNs
	}
	if tatNs <= nowNs {
		t.Fatalf("TAT of %.40q: a live key with a TAT of %d, %d ns before now", k.Name, tatNs, nowNs-tatNs)
	}
	return tatNs
}

func wantTAT(t reporter, ks store.Keys, nowNs int64, k store.Key, wantNs int64) {
	t.Helper()
	if got := tatOf(t, ks, nowNs, k); got != max(wantNs, nowNs) {
		t.Fatalf("TAT of %.40q: got %d ns from now, want %d", k.Name, got-nowNs, max(wantNs-nowNs, 0))
	}
}

func wantDeleted(t reporter, ks store.Keys, nowNs int64, keys []store.Key, want int) {
	t.Helper()
	if got, err := ks.Delete(nowNs, keys); got != want || err != nil {
		t.Fatalf("Delete of %d keys: got %d, %v, want %d", len(keys), got, err, want)
	}
}

func remove(t reporter, ks store.Keys, nowNs int64, keys ...store.Key) {
	t.Helper()
	if _, err := ks.Delete(nowNs, keys); err != nil {
		t.Fatalf("Delete of %d keys: %v", len(keys), err)
	}
}

func setTAT(t reporter, tx store.Keys, k store.Key, tatNs int64) {
	t.Helper()
	if _, _, err := store.SetIf(tx, t0, k, limiter.State{ExpiresNs: tatNs}, store.Always); err != nil {
		t.Fatalf("SetIf of %.40q: %v", k.Name, err)
	}
}

// tatIn returns a key's TAT, and false if it is absent.
func tatIn(ks store.Keys, nowNs int64, k store.Key) (tatNs int64, ok bool, err error) {
	s, ok, err := ks.State(nowNs, k)
	return s.ExpiresNs, ok, err
}

type id struct {
	db   uint16
	name string
}

func idOf(k store.Key) id { return id{k.DB, string(k.Name)} }

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

func (r source) quantity() int64 {
	if extremes := []int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64, 0}; r.IntN(50) == 0 {
		return extremes[r.IntN(len(extremes))]
	}
	return r.Int64N(8) - 2
}

func (r source) request() store.Request {
	q := store.Request{Key: r.key(), Rule: limiter.OfFunnel(r.limits[r.IntN(len(r.limits))]), Quantity: r.quantity()}
	if r.IntN(10) == 0 {
		q.Rule.Flags, q.Quantity = limiter.AtMost, 1+r.Int64N(9)
	}
	return q
}

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
