package queue

import (
	"slices"
	"sync"
	"testing"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// funnels is a store that applies operations only.
type funnels struct {
	mu     sync.Mutex // guards all below
	states map[string]limiter.State
	err    error // of all operations
}

func (f *funnels) at(key store.Key) string { return string(rune('0'+key.DB)) + string(key.Name) }

func (f *funnels) Apply(nowNs int64, key store.Key, step store.Step) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	s := f.states[f.at(key)]
	_, err := step.Do(&s, nowNs)
	f.states[f.at(key)] = s
	return err
}

// set gives a key another TAT.
func (f *funnels) set(key store.Key, to func(tatNs int64) int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.states[f.at(key)]
	s.ExpiresNs = to(s.ExpiresNs)
	f.states[f.at(key)] = s
}

// emptyNs is when a key's funnel is empty.
func (f *funnels) emptyNs(key store.Key) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states[f.at(key)].ExpiresNs
}

// harness is a Queue on the bubble's clock that records wakes.
type harness struct {
	*Queue
	funnels funnels
	mu      sync.Mutex
	woken   []int // the numbers of those who were woken, in their order
}

func newHarness() *harness {
	r := &harness{funnels: funnels{states: map[string]limiter.State{}}}
	r.Queue = New(&r.funnels, now)
	return r
}

func now() int64 { return time.Now().UnixNano() }

// wokenAs wakes by noting a number.
type wokenAs struct {
	harness *harness
	number  int
}

func (w wokenAs) Wake() {
	w.harness.mu.Lock()
	defer w.harness.mu.Unlock()
	w.harness.woken = append(w.harness.woken, w.number)
}

// taken returns the numbers woken since the last call.
func (r *harness) taken() (woken []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	woken, r.woken = r.woken, nil
	return woken
}

func limitOf(t testing.TB, maxBurst, count, periodSec int64) funnel.Limit {
	t.Helper()
	l, err := funnel.NewLimit(funnel.Burst, maxBurst, count, periodSec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func keyOf(text string) store.Key { return store.Key{Name: []byte(text)} }

// enter enters a waiter; it returns nil for one answered at once.
func (r *harness) enter(t testing.TB, key store.Key, l funnel.Limit, quantity int64, atMost time.Duration, number int) (*Waiter, funnel.Result) {
	t.Helper()
	o := limiter.Operation{Verb: limiter.Wait, Funnel: l, Quantity: quantity, TTLNs: int64(atMost)}
	w, err := r.Enter(now(), key, &o, wokenAs{r, number})
	if err != nil {
		t.Fatal(err)
	}
	return w, o.Result
}

// checkWoken compares the order of wakes.
func (r *harness) checkWoken(t *testing.T, want ...int) {
	t.Helper()
	if got := r.taken(); !slices.Equal(got, want) {
		t.Errorf("after %s: woken %v, want %v", time.Duration(now()-began), got, want)
	}
}

// began is when every bubble does.
const began = 946_684_800_000_000_000

// checkEmpty expects no remains.
func (r *harness) checkEmpty(t *testing.T) {
	t.Helper()
	if n := r.Waiting(); n != 0 {
		t.Errorf("%d wait", n)
	}
	for i := range r.parts {
		r.parts[i].mu.Lock()
		n := len(r.parts[i].lines)
		r.parts[i].mu.Unlock()
		if n != 0 {
			t.Errorf("%d lines are left", n)
		}
	}
}
