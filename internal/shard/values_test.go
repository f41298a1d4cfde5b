package shard

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/store"
)

const valueBytes = 1 << 20

func setValue(s *Store, name, text string, expiresNs int64) error {
	_, _, err := store.SetIf(s, t0, store.Key{Name: []byte(name)}, limiter.ValueOf([]byte(text), expiresNs), store.Always)
	return err
}

// TestValuesFloodNoLimiters: a flood of values evicts values only, the soonest expiring first, within their
// bound, and a flood of funnels funnels only.
func TestValuesFloodNoLimiters(t *testing.T) {
	s := newStore(4)
	s.SetMaxBytes(4<<20, store.VolatileTTL)
	s.SetMaxValueBytes(valueBytes)
	fill(t, s, t0, 10_000, "honest:", 3600)
	if err := setValue(s, "kept", "late", t0+1e6*sec); err != nil {
		t.Fatal(err)
	}
	for i := range 100_000 {
		text := strings.Repeat("x", i%700)
		if err := setValue(s, "flood:"+strconv.Itoa(i), text, t0+int64(60+i%1000)*sec); err != nil {
			t.Fatal(err)
		}
		if st := statsOf(s); i%1000 == 0 && st.Values.Bytes > valueBytes {
			t.Fatalf("%d bytes after %d values", st.Values.Bytes, i)
		}
	}
	st := statsOf(s)
	if st.Keys-st.Values.Keys != 10_000 || st.Evicted != 0 || st.Values.Evicted == 0 || st.Values.Refused != 0 {
		t.Errorf("%+v", st)
	}
	if _, found, _ := s.State(t0, store.Key{Name: []byte("kept")}); !found {
		t.Error("what expires last was evicted")
	}
	values := st.Values.Keys
	fill(t, s, t0, 200_000, "flood of funnels:", 3600)
	if st = statsOf(s); st.Values.Keys != values || st.Evicted == 0 {
		t.Errorf("%d values of %d are left: %+v", st.Values.Keys, values, st)
	}
	checkBudget(t, s)
}

// TestEndlessValuesAreRefused: values that never expire fill their bound, and no more are stored, whatever
// makes them; those that are there may be changed.
func TestEndlessValuesAreRefused(t *testing.T) {
	large := strings.Repeat("x", 400<<10)
	for _, policy := range []store.Policy{store.VolatileTTL, store.NoEviction} {
		s := newStore(4)
		s.SetMaxBytes(0, policy)
		s.SetMaxValueBytes(valueBytes)
		stored, refused := 0, 0
		for i := range 100_000 {
			switch err := setValue(s, strconv.Itoa(i), "text of some length", limiter.NeverNs); {
			case err == nil:
				stored++
			case errors.Is(err, store.ErrFull):
				refused++
			default:
				t.Fatal(err)
			}
		}
		st := statsOf(s)
		if st.Values.Keys != stored || st.Values.Endless != stored || st.Values.Bytes > valueBytes || refused == 0 || st.Values.Evicted != 0 ||
			int(st.Values.Refused) != refused {
			t.Errorf("%d stored, %d refused: %+v", stored, refused, st.Values)
		}
		if err := setValue(s, "0", "5", limiter.NeverNs); err != nil {
			t.Errorf("a smaller value: %v", err)
		}
		if err := setValue(s, "0", large, limiter.NeverNs); !errors.Is(err, store.ErrFull) {
			t.Errorf("a larger value: %v", err)
		}
		if got, _, _ := s.State(t0, store.Key{Name: []byte("0")}); string(limiter.AppendValue(nil, &got)) != "5" {
			t.Errorf("the refused one replaced it by %.40q", got.Payload)
		}
		fill(t, s, t0, 1, "funnel", 60)
		_, _, err := store.SetIf(s, t0, store.Key{Name: []byte("funnel0")}, limiter.ValueOf([]byte(large), limiter.NeverNs), store.Always)
		if !errors.Is(err, store.ErrFull) {
			t.Errorf("a value in place of a funnel: %v", err)
		}
		tx := s.begin(t0, []store.Key{{Name: []byte("new")}})
		_, _, err = store.SetIf(tx, t0, store.Key{Name: []byte("new")}, limiter.ValueOf([]byte(large), limiter.NeverNs), store.Always)
		tx.Rollback()
		if !errors.Is(err, store.ErrFull) {
			t.Errorf("in a transaction: %v", err)
		}
		checkBudget(t, s)
	}
}

// TestCountersAllocateNothing: in batches, with short and long names.
func TestCountersAllocateNothing(t *testing.T) {
	s := newStore(4)
	batch, counter, text := make([]store.Request, 16), []byte("counter"), []byte("text")
	var sink limiter.Sink
	sink.Texts = make([]byte, 0, 1<<10)
	if err := setValue(s, "text", "a text that is read", limiter.NeverNs); err != nil {
		t.Fatal(err)
	}
	run := func() {
		sink.Texts = sink.Texts[:0]
		for i := range batch {
			q := &batch[i]
			*q = store.Request{Key: store.Key{Name: counter}}
			switch i % 3 {
			case 0:
				q.Rule.Add(1)
			case 1:
				q.Rule.Read(&sink)
			default:
				q.Key.Name = text
				q.Rule.Read(&sink)
			}
		}
		s.Throttle(t0, batch)
	}
	run()
	if n := testing.AllocsPerRun(100, run); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if q := &batch[14]; string(sink.Texts[q.Result.Limit:q.Result.Limit+q.Result.RetryAfter]) != "a text that is read" {
		t.Errorf("got %+v", q.Result)
	}
}

// TestValueAndFunnelOfAName: a key is of one kind at a time, wherever it is kept.
func TestValueAndFunnelOfAName(t *testing.T) {
	for _, name := range []string{"k", strings.Repeat("k", 40)} {
		s, key := newStore(1), store.Key{Name: []byte(name)}
		for kind := range limiter.Kinds {
			for _, then := range []limiter.Kind{limiter.Value, kind, limiter.Funnel} {
				state, err := limitertest.State(then, t0+limitertest.LifeNs, 3)
				if err == nil {
					_, _, err = store.SetIf(s, t0, key, state, store.Always)
				}
				if got, _, _ := s.Entry(t0, key); err != nil || got.Kind != then || statsOf(s).Keys != 1 {
					t.Fatalf("a %v, after others: %+v, %v, %d keys", then, got, err, statsOf(s).Keys)
				}
			}
		}
		var q [1]store.Request
		q[0] = store.Request{Key: key, Rule: limiter.OfFunnel(funnel.Limit{}), Quantity: 1}
		if s.Throttle(t0, q[:]); q[0].Err != nil {
			t.Error(q[0].Err)
		}
	}
}
