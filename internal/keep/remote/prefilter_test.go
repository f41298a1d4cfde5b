package remote

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestPrefilter: a key in debt is read once a second, and at once after a refund.
func TestPrefilter(t *testing.T) {
	s, _ := onServer(t, Config{})
	l := mustLimit(t, 9, 1, 3600)
	want := func(quantity int64, limited bool, remaining int64) {
		t.Helper()
		q := decide(s, s.Now(), ask("k", l, quantity))[0]
		if q.Err != nil || q.Result.Limited != limited || q.Result.Remaining != remaining || q.Result.Limit != 10 {
			t.Fatalf("%d: got %+v, %v", quantity, q.Result, q.Err)
		}
	}
	want(10, false, 0)
	for range 10_000 {
		want(1, true, 0)
	}
	st := s.Stats()
	if st.Prefiltered < 9000 || st.Prefiltered+st.Asked != 10_001 {
		t.Errorf("got %+v", st)
	}
	var counted store.Stats
	if s.UpdateStats(&counted); counted.Limited != 10_000 || counted.Allowed != 1 || counted.Requested != 10_010 || counted.Granted != 10 {
		t.Errorf("got %+v", counted)
	}
	want(0, false, 0) // looks are never denied
	want(-3, false, 3)
	want(1, false, 2)
	want(3, true, 2)
	want(2, false, 0)
	want(1, true, 0)
	if n, err := s.Delete(s.Now(), []store.Key{{Name: []byte("k")}}); n != 1 || err != nil {
		t.Fatalf("%d keys deleted, %v", n, err)
	}
	want(1, false, 9)
	want(10, true, 9)
	if _, _, err := store.SetIf(s, s.Now(), store.Key{Name: []byte("k")}, limiter.State{}, store.Always); err != nil {
		t.Fatal(err)
	}
	want(10, false, 0)
}

// TestBehindARefund: a value read between a refund's arrival and its execution denies nothing after it.
func TestBehindARefund(t *testing.T) {
	s, _ := onServer(t, Config{})
	l, cameNs := mustLimit(t, 9, 1, 3600), s.Now()
	decide(s, s.Now(), ask("k", l, 10))
	if q := decide(s, cameNs, ask("k", l, -1), ask("k", l, 1))[1]; q.Err != nil || q.Result.Limited {
		t.Errorf("got %+v, %v", q.Result, q.Err)
	}
}

// TestSeveralStores together admit what one funnel does.
func TestSeveralStores(t *testing.T) {
	s, p := onServer(t, Config{})
	l := mustLimit(t, 4999, 1, 3600)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for _, s := range []*Store{s, onPool(t, Config{}, "redis://"+p.Addr)} {
		for range 8 {
			wg.Go(func() {
				for range 600 {
					switch q := decide(s, s.Now(), ask("k", l, 1))[0]; {
					case q.Err != nil:
						t.Error(q.Err)
					case !q.Result.Limited:
						admitted.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	if n := admitted.Load(); n != 5000 {
		t.Errorf("admitted: got %d units, want 5000", n)
	}
}

// TestConnections: many connections' requests of few keys admit exactly the capacity, in each connection's
// order.
func TestConnections(t *testing.T) {
	s, _ := onServer(t, Config{})
	l := mustLimit(t, 99_999, 1, 10_000)
	var admitted [5]atomic.Int64
	var wg sync.WaitGroup
	for c := range 40 {
		wg.Go(func() {
			for round := range 25 {
				batch := make([]store.Request, 1+(c+round)%60)
				for i := range batch {
					batch[i] = ask(fmt.Sprint("k", (c+i)%len(admitted)), l, 1+int64(i%3))
				}
				left := map[string]int64{}
				for i, q := range decide(s, s.Now(), batch...) {
					name := fmt.Sprint("k", (c+i)%len(admitted))
					if before, ok := left[name]; ok && q.Result.Remaining > before-q.Quantity || q.Err != nil || q.Result.Limited || string(q.Key.Name) != name {
						t.Errorf("after %d: got %+v", before, q)
					}
					left[name] = q.Result.Remaining
					admitted[(c+i)%len(admitted)].Add(q.Quantity)
				}
			}
		})
	}
	wg.Wait()
	for i := range admitted {
		if q := decide(s, s.Now(), ask(fmt.Sprint("k", i), l, 0))[0]; q.Result.Remaining != 100_000-admitted[i].Load() {
			t.Errorf("k%d: %d remain of 100,000, and %d were admitted", i, q.Result.Remaining, admitted[i].Load())
		}
	}
}
