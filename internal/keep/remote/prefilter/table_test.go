package prefilter

import (
	"fmt"
	"sync"
	"testing"

	"cellserver/internal/funnel"
)

const (
	ms  = int64(1_000_000)
	sec = 1_000 * ms
)

func limit(t *testing.T, capacity, perSec int64) funnel.Limit {
	t.Helper()
	l, err := funnel.NewLimit(funnel.Capacity, capacity, perSec, 1)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestDenied: denials of a key of 10 units, one of which drains every 100 ms, by a TAT requested at local 100
// s, when the server's clock showed 500 s and the funnel was full.
func TestDenied(t *testing.T) {
	tiny, wide := limit(t, 1, 1), limit(t, 100, 10)
	l := limit(t, 10, 10)
	full := 501 * sec
	for name, c := range map[string]struct {
		limit    funnel.Limit
		afterNs  int64 // by both clocks
		unsureNs int64 // how far the server's may be ahead
		quantity int64
		denied   bool
		retry    int64
	}{
		"at once":             {l, 0, 0, 1, true, 1},
		"before it has room":  {l, 99 * ms, 0, 1, true, 1},
		"with room":           {l, 100 * ms, 0, 1, false, 0},
		"perhaps with room":   {l, 99 * ms, ms, 1, false, 0},
		"more units":          {l, 150 * ms, 0, 2, true, 1},
		"more than ever":      {l, 150 * ms, 0, 11, true, -1},
		"of all, not empty":   {l, 950 * ms, 0, 10, true, 1},
		"when it is too old":  {l, sec, 0, 10, false, 0},
		"a probe":             {l, 0, 0, 0, false, 0},
		"a refund":            {l, 0, 0, -1, false, 0},
		"by a larger limit":   {wide, 0, 0, 1, false, 0},
		"by a smaller limit":  {tiny, 950 * ms, 0, 1, true, 1},
		"no limit, no denial": {funnel.Limit{}, 0, 0, -1, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable(1 << 16)
			table.note([]byte("a"), full, 100*sec)
			earliestNs := 500*sec + c.afterNs
			r, ok := table.denied([]byte("a"), c.limit, funnel.Seconds, c.quantity,
				earliestNs, earliestNs+c.unsureNs, 100*sec+c.afterNs)
			if ok != c.denied || ok && (!r.Limited || r.RetryAfter != c.retry) {
				t.Errorf("%v %+v", ok, r)
			}
			if !ok && r != (funnel.Result{}) {
				t.Errorf("not denied, but %+v", r)
			}
			if _, ok := table.denied([]byte("b"), c.limit, funnel.Seconds, c.quantity, 500*sec, 500*sec, 100*sec); ok {
				t.Error("another key is denied")
			}
		})
	}
}

// TestOrder: of several replies the last requested counts, and none requested before its key was forgotten.
func TestOrder(t *testing.T) {
	l := limit(t, 10, 10)
	name := []byte("a")
	table := newTable(0)
	denied := func() bool {
		_, ok := table.denied(name, l, funnel.Seconds, 1, 500*sec, 500*sec, 100*sec)
		return ok
	}
	table.note(name, 501*sec, 100*sec)
	table.note(name, 500*sec, 99*sec+900*ms)
	table.note(name, 500*sec, 100*sec)
	if !denied() {
		t.Error("an older TAT counts")
	}
	table.forget(name, 100*sec)
	if denied() {
		t.Error("it was forgotten")
	}
	table.note(name, 501*sec, 99*sec)
	table.note(name, 501*sec, 100*sec)
	if denied() {
		t.Error("it was forgotten after that was requested")
	}
	table.note(name, 501*sec, 100*sec+1)
	if !denied() {
		t.Error("what was requested later counts")
	}
}

// TestRenew: a remembered key takes the newest reply's TAT, but none after a larger one arrived. Others are
// not added.
func TestRenew(t *testing.T) {
	l, table := limit(t, 1, 1), newTable(0)
	retry := func(name string) int64 {
		r, _ := table.denied([]byte(name), l, funnel.Seconds, 1, 500*sec, 500*sec, 100*sec)
		return r.RetryAfter
	}
	table.renew([]byte("a"), 503*sec, 99*sec+100*ms)
	if retry("a") != 0 {
		t.Error("a key was added")
	}
	table.note([]byte("a"), 503*sec, 99*sec+100*ms)
	for _, step := range []struct{ tatNs, sentNs, retry int64 }{
		{508 * sec, 99*sec + 300*ms, 8}, {504 * sec, 99*sec + 200*ms, 8}, {502 * sec, 99*sec + 300*ms, 8},
		{506 * sec, 99*sec + 400*ms, 6}, {507 * sec, 99*sec + 300*ms, 0}, {506 * sec, 99*sec + 500*ms, 6},
	} {
		if table.renew([]byte("a"), step.tatNs, step.sentNs); retry("a") != step.retry {
			t.Errorf("%+v: to retry after %d s", step, retry("a"))
		}
	}
}

// TestRetryAfterIsNeverTooShort: it counts from the earliest possible time of the server's clock.
func TestRetryAfterIsNeverTooShort(t *testing.T) {
	l, table := limit(t, 1, 1), newTable(0)
	table.note([]byte("a"), 501*sec, 100*sec)
	r, ok := table.denied([]byte("a"), l, funnel.Milliseconds, 1, 500*sec, 500*sec+30*ms, 100*sec)
	if !ok || r.RetryAfter != 1000 {
		t.Errorf("%t, %+v", ok, r)
	}
}

// TestBound: the table does not grow, and each bucket keeps its last keys.
func TestBound(t *testing.T) {
	l := limit(t, 10, 10)
	table := newTable(64 << 10)
	bytes := 0
	for i := range table.parts {
		bytes += len(table.parts[i].buckets) * ways * entryBytes
	}
	if bytes > 64<<10 || bytes < 32<<10 {
		t.Errorf("%d bytes", bytes)
	}
	const keys = 20_000
	for i := range keys {
		table.note(fmt.Appendf(nil, "key %d", i), 501*sec, 100*sec+int64(i))
	}
	found := 0
	for i := range keys {
		_, ok := table.denied(fmt.Appendf(nil, "key %d", i), l, funnel.Seconds, 1, 500*sec, 500*sec, 100*sec+keys)
		if ok {
			found++
		}
	}
	if found < bytes/entryBytes*9/10 || found > bytes/entryBytes {
		t.Errorf("%d keys are known in %d entries", found, bytes/entryBytes)
	}
}

func TestAllocations(t *testing.T) {
	table, l, name := newTable(0), limit(t, 10, 10), []byte("a key of some length, as they are")
	if allocs := testing.AllocsPerRun(100, func() {
		table.note(name, 501*sec, 100*sec)
		table.denied(name, l, funnel.Seconds, 1, 500*sec, 500*sec, 100*sec)
		table.forget(name, 100*sec)
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// TestHammered: a constantly denied key costs a script call a second, and those of its retry times.
func TestHammered(t *testing.T) {
	const rttNs, seconds = ms, 60
	l := limit(t, 5, 1) // a unit a second
	table, name := newTable(0), []byte("a")
	tatNs, scripts, admitted, asked := int64(0), 0, 0, 0
	for nowNs := 1_000 * sec; nowNs < (1_000+seconds)*sec; nowNs += 20_000 {
		asked++
		if _, ok := table.denied(name, l, funnel.Seconds, 1, nowNs, nowNs+rttNs, nowNs); ok {
			continue
		}
		scripts++
		var r funnel.Result
		if tatNs, r = l.Throttle(tatNs, nowNs+rttNs/2, 1); !r.Limited {
			admitted++
		}
		if r.Remaining == 0 {
			table.note(name, tatNs, nowNs)
		}
		nowNs += rttNs
	}
	t.Logf("%d requests, %d admitted, %d script calls", asked, admitted, scripts)
	if retries := admitted; scripts > seconds+2*retries {
		t.Errorf("%d script calls in %d s with %d retry times", scripts, seconds, retries)
	}
	if want := 5 + seconds - 1; admitted < want-1 || admitted > want+1 {
		t.Errorf("%d admitted", admitted)
	}
}

func TestConcurrent(t *testing.T) {
	table, l := newTable(0), limit(t, 10, 10)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 2_000 {
				name := fmt.Appendf(nil, "key %d", i%100)
				table.note(name, 501*sec, 100*sec+int64(i))
				table.denied(name, l, funnel.Seconds, 1, 500*sec, 500*sec, 100*sec+int64(i))
				if i%10 == 0 {
					table.forget(name, 100*sec+int64(i))
				}
			}
		})
	}
	wg.Wait()
}
