package decide

import (
	"fmt"
	"testing"

	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(1_000_000_000)
)

type caller struct{}

func (caller) Addr() string { return "addr" }
func (caller) Name() string { return "name" }

// decider returns a Decider whose clock advances 7 us at each reading, with a slow log of everything.
func decider(t *testing.T) (*Decider, By) {
	t.Helper()
	table := catalog.New()
	records := observe.New(table, t0)
	records.Slowness.SetSlowlog(7)
	records.Slowlog.SetMaxLen(10)
	nowNs := t0 + sec - 14_000
	local := records.NewLocal()
	return &Decider{
		Now:     func() int64 { nowNs += 7000; return nowNs },
		Records: records,
	}, By{table.Lookup([]byte("cl.throttle")), &local, caller{}}
}

func request(t *testing.T, name string, units int64) store.Request {
	t.Helper()
	limit, err := funnel.NewLimit(funnel.Burst, 4, 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	return store.Request{Key: store.Key{Name: []byte(name)}, Rule: limiter.OfFunnel(limit), Quantity: units}
}

// recorded returns the records of calls as text.
func recorded(d *Decider) string {
	st := d.Records.Stats()
	text := fmt.Sprint(st.Calls["cl.throttle"], " calls, ", st.Durations["cl.throttle"].SumNs, " ns, ", st.Batches.Count, " batches")
	for _, e := range d.Records.Slowlog.Latest(-1) {
		text += fmt.Sprint(", ", e.UnixSec-t0/sec, " s ", e.DurationUs, " us ", e.Addr)
	}
	for _, e := range d.Records.TopKeys.Top(0, t0+sec, 10) {
		text += fmt.Sprint(", ", e.Name, " ", e.CallsPerSecond)
	}
	return text
}

func TestBatch(t *testing.T) {
	d, by := decider(t)
	batch := []store.Request{request(t, "k", 3), request(t, "k", 3), request(t, "k", 1)}
	if later := d.Batch(shard.New(), d.Now(), batch, by); later != nil {
		t.Fatal("answered later")
	}
	if batch[0].Result.Limited || !batch[1].Result.Limited || batch[2].Result.Remaining != 1 {
		t.Errorf("got %+v", batch)
	}
	if got, want := recorded(d), "3 calls, 21000 ns, 1 batches, 1 s 7 us addr, k 3"; got != want {
		t.Errorf("recorded %s, want %s", got, want)
	}
	d.Records.Slowness.SetSlowlog(8)
	d.Batch(shard.New(), d.Now(), []store.Request{request(t, "k", 1)}, by)
	if got, want := recorded(d), "4 calls, 28000 ns, 2 batches, 1 s 7 us addr, k 4"; got != want {
		t.Errorf("a quick batch: recorded %s, want %s", got, want)
	}
}

// TestBatchIn: a batch in a transaction is not timed.
func TestBatchIn(t *testing.T) {
	d, by := decider(t)
	d.BatchIn(shard.New(), d.Now(), []store.Request{request(t, "k", 1), request(t, "l", 1)}, by)
	if got, want := recorded(d), "2 calls, 0 ns, 0 batches, k 1, l 1"; got != want {
		t.Errorf("recorded %s, want %s", got, want)
	}
}

func TestOne(t *testing.T) {
	q := [1]store.Request{request(t, "k", 5)}
	if One(shard.New(), t0, &q); q[0].Result.Limited || q[0].Result.Remaining != 0 {
		t.Errorf("got %+v", q[0])
	}
}

// laterStore answers on demand.
type laterStore struct {
	store.Keys
	*pending
}

type pending struct {
	answered  []store.Request
	wake      func()
	cancelled bool
}

func (s laterStore) Throttle(int64, []store.Request) store.Pending { return s.pending }

func (p *pending) Notify(wake func()) { p.wake = wake }

func (p *pending) Answers() ([]store.Request, bool) { return p.answered, p.answered != nil }

func (p *pending) Cancel() { p.cancelled = true }

// TestLater counts a batch when its answers are there.
func TestLater(t *testing.T) {
	d, by := decider(t)
	on := laterStore{pending: &pending{}}
	later := d.Batch(on, d.Now(), []store.Request{request(t, "k", 1)}, by)
	woken := false
	later.Notify(func() { woken = true })
	if answered, ok := later.Answers(by.Local); ok || answered != nil {
		t.Errorf("answered %+v", answered)
	}
	if got, want := recorded(d), "0 calls, 0 ns, 0 batches"; got != want {
		t.Errorf("recorded %s, want %s", got, want)
	}
	on.answered = []store.Request{request(t, "k", 1), request(t, "l", 1)}
	on.wake()
	if answered, ok := later.Answers(by.Local); !ok || len(answered) != 2 || !woken {
		t.Errorf("answered %+v, woken %t", answered, woken)
	}
	if got, want := recorded(d), "2 calls, 14000 ns, 1 batches, 1 s 7 us addr, k 1, l 1"; got != want {
		t.Errorf("recorded %s, want %s", got, want)
	}
	if later.Cancel(); !on.cancelled {
		t.Error("not cancelled")
	}
}

// TestPickedTerms: samples have their request's terms, also outside batches.
func TestPickedTerms(t *testing.T) {
	d, by := decider(t)
	q, o := request(t, "k", 1), limiter.Operation{Verb: limiter.Acquire, Max: 7, TTLNs: sec}
	d.Batch(shard.New(), t0, []store.Request{q}, by)
	d.Applied(t0, store.Key{Name: []byte("place")}, &o, by.Local)
	for _, e := range d.Records.TopKeys.Top(topkeys.Requested, t0, 2) {
		if want := map[string]limiter.Terms{"k": q.Rule.Terms(), "place": o.Terms()}[e.Name]; e.Terms != want || e.Terms.Numbers[0] == 0 {
			t.Errorf("%s: %+v, want %+v", e.Name, e.Terms, want)
		}
	}
}

// TestTogether: results, charges and counts of requests that are charged together.
func TestTogether(t *testing.T) {
	for _, tt := range []struct {
		name  string
		units []int64 // of the keys a, b, a, b and so on, which hold five
		want  string  // limited, remaining and retry after of each; units granted; keys picked
	}{
		{"all fit", []int64{1, 2, 3}, "false: false 4 -1, false 3 -1, false 1 -1; 6, a 2, b 1"},
		{"one is always limited", []int64{1, 6}, "true: false 5 -1, true 5 -1; 0, a 1, b 1"},
		{"one is limited by an earlier one", []int64{3, 1, 3}, "true: false 5 -1, false 5 -1, true 2 -1; 0, a 2, b 1"},
		{"looks", []int64{0, 0}, "false: false 5 -1, false 5 -1; 0, a 1, b 1"},
		{"the largest numbers", []int64{1 << 62, 1<<63 - 1}, "true: true 5 -1, true 5 -1; 0, a 1, b 1"},
	} {
		d, by := decider(t)
		s := shard.New()
		var batch []store.Request
		var keys []store.Key
		for i, units := range tt.units {
			batch = append(batch, request(t, string(rune('a'+i%2)), units))
			keys = append(keys, batch[i].Key)
		}
		tx := s.Begin(t0, keys)
		limited, err := d.Together(tx, t0, batch, by.Local)
		if err != nil || !tx.Commit() {
			t.Fatalf("%s: %v", tt.name, err)
		}
		got := fmt.Sprint(limited, ":")
		for i := range batch {
			r := &batch[i].Result
			got += fmt.Sprint(" ", r.Limited, " ", r.Remaining, " ", r.RetryAfter, ",")
		}
		var st store.Stats
		s.UpdateStats(&st)
		got = fmt.Sprint(got[:len(got)-1], "; ", st.Granted)
		for _, e := range d.Records.TopKeys.Top(0, t0+sec, 10) {
			got += fmt.Sprintf(", %s %.0f", e.Name, e.CallsPerSecond)
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
