package window

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"testing"

	"cellserver/internal/funnel"
)

// debitStep is a call and its answer; others than debits are plain requests. Boundaries are of Until.
type debitStep struct {
	step
	plain      bool
	boundaryMs int64
}

var debitTables = []struct {
	name   string
	kind   string
	counts int64 // of the last payload
	steps  []debitStep
}{
	{name: "fixed: all units are counted", kind: "fixed", counts: 9, steps: []debitStep{
		{step: step{atMs: 0, quantity: 4, remaining: 1, retry: -1, reset: 10}},
		{step: step{atMs: 1_000, quantity: 1, remaining: 0, retry: 9, reset: 9}},
		{step: step{atMs: 1_000, quantity: 4, limited: true, remaining: 0, retry: 9, reset: 9}},
		{step: step{atMs: 1_000, quantity: 1, limited: true, remaining: 0, retry: 9, reset: 9}, plain: true},
		{step: step{atMs: 10_000, quantity: 9, limited: true, remaining: 0, retry: 10, reset: 10}},
	}},
	{name: "fixed: refunds pay a debit back", kind: "fixed", counts: 3, steps: []debitStep{
		{step: step{atMs: 0, quantity: 9, limited: true, remaining: 0, retry: 10, reset: 10}},
		{step: step{atMs: 0, quantity: -3, remaining: 0, retry: -1, reset: 10}, plain: true},
		{step: step{atMs: 0, quantity: 0, limited: true, remaining: 0, retry: 10, reset: 10}, plain: true},
		{step: step{atMs: 1_000, quantity: -4, remaining: 3, retry: -1, reset: 9}, plain: true},
		{step: step{atMs: 1_000, quantity: 1, remaining: 2, retry: -1, reset: 9}},
	}},
	{name: "fixed: totals saturate", kind: "fixed", counts: math.MaxInt64, steps: []debitStep{
		{step: step{atMs: 0, quantity: math.MaxInt64, limited: true, remaining: 0, retry: 10, reset: 10}},
		{step: step{atMs: 1_000, quantity: math.MaxInt64, limited: true, remaining: 0, retry: 9, reset: 9}},
		{step: step{atMs: 1_000, quantity: 1, limited: true, remaining: 0, retry: 9, reset: 9, maxCount: math.MaxInt64}},
	}},
	{name: "until: a debit moves an earlier end only", kind: "until", counts: 12, steps: []debitStep{
		{step: step{atMs: 0, quantity: 3, remaining: 2, retry: -1, reset: 7}, boundaryMs: 7_000},
		{step: step{atMs: 0, quantity: 1, remaining: 1, retry: -1, reset: 7}, boundaryMs: 1_000},
		{step: step{atMs: 0, quantity: 6, limited: true, remaining: 0, retry: 60, reset: 60}, boundaryMs: 60_000},
		{step: step{atMs: 8_000, quantity: 1, limited: true, remaining: 0, retry: 52, reset: 52}, boundaryMs: 9_000, plain: true},
		{step: step{atMs: 8_000, quantity: 2, remaining: 8, retry: -1, reset: 52, maxCount: 20}, boundaryMs: 9_000},
	}},
	{name: "until: an ended window begins anew", kind: "until", counts: 7, steps: []debitStep{
		{step: step{atMs: 0, quantity: 9, limited: true, remaining: 0, retry: 1, reset: 1}, boundaryMs: 1_000},
		{step: step{atMs: 1_000, quantity: 7, limited: true, remaining: 0, retry: 2, reset: 2}, boundaryMs: 2_500},
	}},
	{name: "until: totals saturate", kind: "until", counts: math.MaxInt64, steps: []debitStep{
		{step: step{atMs: 0, quantity: math.MaxInt64 - 1, limited: true, remaining: 0, retry: 1, reset: 1}, boundaryMs: 1_000},
		{step: step{atMs: 0, quantity: math.MaxInt64, limited: true, remaining: 0, retry: 2, reset: 2}, boundaryMs: 2_000},
	}},
	{name: "approximate: a debit counts in its period and by its share in the next", kind: "approximate", counts: 1, steps: []debitStep{
		{step: step{atMs: 0, quantity: 8, limited: true, remaining: 0, retry: 15, reset: 20}}, // 8 * 50 % + 1 at 15 s
		{step: step{atMs: 14_999, quantity: 1, limited: true, remaining: 0, retry: 1, reset: 6}, plain: true},
		{step: step{atMs: 15_000, quantity: 1, remaining: 0, retry: 2, reset: 15}}, // 8 * 37.5 % + 2 at 16.25 s
	}},
	{name: "approximate: totals saturate", kind: "approximate", counts: math.MaxInt64, steps: []debitStep{
		{step: step{atMs: 0, quantity: math.MaxInt64, limited: true, remaining: 0, retry: 20, reset: 20}},
		{step: step{atMs: 0, quantity: math.MaxInt64, limited: true, remaining: 0, retry: 20, reset: 20}},
		{step: step{atMs: 12_000, quantity: math.MaxInt64, limited: true, remaining: 0, retry: 18, reset: 18}},
	}},
}

// requestOf returns a kind's request; Until's boundary is read from the pointer.
func requestOf(kind string, boundaryNs *int64) func(l Limit, payload []byte, expiresNs, nowNs, quantity int64, o Options) ([]byte, int64, funnel.Result, bool) {
	switch kind {
	case "fixed":
		return Limit.Fixed
	case "approximate":
		return Limit.Approx
	default:
		return func(l Limit, payload []byte, expiresNs, nowNs, quantity int64, o Options) ([]byte, int64, funnel.Result, bool) {
			return l.Until(payload, expiresNs, nowNs, *boundaryNs, quantity, o)
		}
	}
}

func TestDebitsOverTime(t *testing.T) {
	for _, tt := range debitTables {
		var boundaryNs int64
		w := window{request: requestOf(tt.kind, &boundaryNs)}
		for i, s := range tt.steps {
			if s.maxCount == 0 {
				s.maxCount = 5
			}
			boundaryNs = t0 + s.boundaryMs*ms
			got, _ := w.ask(mustLimit(t, s.maxCount, 10), t0+s.atMs*ms, s.quantity, Options{Unit: funnel.WholeSeconds, Debit: !s.plain})
			if want := (funnel.Result{Limited: s.limited, Limit: s.maxCount, Remaining: s.remaining, RetryAfter: s.retry, ResetAfter: s.reset}); got != want {
				t.Errorf("%s: call %d at %d ms: got %+v, want %+v", tt.name, i, s.atMs, got, want)
			}
		}
		if got := int64(binary.LittleEndian.Uint64(w.payload[len(w.payload)-fixedBytes:])); got != tt.counts {
			t.Errorf("%s: it counts %d units, want %d", tt.name, got, tt.counts)
		}
	}
}

// bigWindow has a window's units without bounds: all of them, or those of an approximate one's two periods.
type bigWindow struct{ previous, current, share *big.Int }

// open reads a payload as of now.
func (w *bigWindow) open(l Limit, kind string, payload []byte, expiresNs, nowNs int64) {
	w.previous, w.current, w.share = new(big.Int), new(big.Int), new(big.Int)
	if expiresNs <= nowNs {
		return
	}
	if kind != "approximate" {
		w.current.SetInt64(Count(payload))
		return
	}
	c := counters{startNs: nowNs}
	c.read(payload)
	startNs, periodNs := big.NewInt(c.startNs), new(big.Int).SetUint64(l.periodNs)
	w.previous.SetInt64(c.previous)
	w.current.SetInt64(c.current)
	leftNs := new(big.Int).Sub(startNs.Add(startNs, periodNs), big.NewInt(nowNs))
	if leftNs.Sign() <= 0 { // another period
		w.previous, w.current = w.current, new(big.Int)
		if leftNs.Add(leftNs, periodNs).Sign() <= 0 {
			w.previous = new(big.Int)
		}
	}
	if leftNs.Cmp(periodNs) > 0 {
		leftNs.Set(periodNs) // a start in the future
	}
	up := new(big.Int).Sub(periodNs, big.NewInt(1))
	w.share.Quo(up.Add(up, leftNs.Mul(leftNs, w.previous)), periodNs)
}

// used returns the counting units: the current ones and the share of the previous ones.
func (w *bigWindow) used() int64 { return saturated(new(big.Int).Add(w.current, w.share)) }

func (w *bigWindow) debit(quantity int64) {
	w.current.SetInt64(saturated(w.current.Add(w.current, big.NewInt(quantity))))
}

func saturated(n *big.Int) int64 {
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return n.Int64()
}

// FuzzDebits debits any state of a window, and compares with sums in big integers. A request for one unit is
// allowed at RetryAfter and no millisecond before.
func FuzzDebits(f *testing.F) {
	edges := []int64{0, 1, 5, math.MaxInt64 - 1, math.MaxInt64}
	for kind := range byte(3) {
		for i, quantity := range edges {
			payload := binary.LittleEndian.AppendUint64(nil, uint64(edges[(i+2)%len(edges)]))
			f.Add(kind, int64(5), int64(10), payload, t0+sec, t0, t0+9*sec, quantity)
			payload = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(payload[:0], uint64(t0)), uint64(edges[(i+4)%len(edges)]))
			payload = binary.LittleEndian.AppendUint64(payload, uint64(quantity))
			f.Add(kind, int64(math.MaxInt64), int64(10), payload, t0+20*sec, t0+4*sec, t0, quantity)
		}
	}
	f.Fuzz(func(t *testing.T, kindOf byte, maxCount, periodSec int64, payload []byte, expiresNs, nowNs, boundaryNs, quantity int64) {
		l, err := NewLimit(funnel.Seconds, maxCount, periodSec)
		if err != nil || quantity < 0 {
			return
		}
		kind := []string{"fixed", "until", "approximate"}[kindOf%3]
		w := window{request: requestOf(kind, &boundaryNs), payload: bytes.Clone(payload), expiresNs: expiresNs}
		checkDebit(t, &w, l, kind, nowNs, boundaryNs, quantity)
	})
}

// checkDebit debits a window and compares with the sums.
func checkDebit(t *testing.T, w *window, l Limit, kind string, nowNs, boundaryNs, quantity int64) {
	t.Helper()
	var m bigWindow
	m.open(l, kind, w.payload, w.expiresNs, nowNs)
	maxCount, expiresNs := l.maxCount, w.expiresNs
	over := quantity > maxCount-m.used() // both are of 0 to MaxInt64
	m.debit(quantity)
	r, changed := w.ask(l, nowNs, quantity, Options{Unit: funnel.Milliseconds, Debit: true})
	remaining := max(0, maxCount-m.used())
	if r.Limited != over || r.Limit != maxCount || r.Remaining != remaining || (r.RetryAfter == -1) != (remaining > 0) {
		t.Fatalf("%s: got %+v, want limited %t and %d remaining", kind, r, over, remaining)
	}
	wantNs := expiresNs
	if changed && kind == "until" {
		wantNs = max(expiresNs, nowNs, boundaryNs)
	}
	if (!changed || kind == "until") && w.expiresNs != wantNs {
		t.Fatalf("%s: it ends at %d, want %d", kind, w.expiresNs, wantNs)
	}
	if changed && quantity > 0 && w.expiresNs > nowNs {
		if got := int64(binary.LittleEndian.Uint64(w.payload[len(w.payload)-fixedBytes:])); big.NewInt(got).Cmp(m.current) != 0 {
			t.Fatalf("%s: it counts %d units, want %d", kind, got, m.current)
		}
	}
	if changed { // else a damaged state may contradict its end
		checkDebitTimes(t, w, l, nowNs, r)
	}
}

// checkDebitTimes tries requests for a unit, but for times that saturate.
func checkDebitTimes(t *testing.T, w *window, l Limit, nowNs int64, r funnel.Result) {
	t.Helper()
	const most = math.MaxInt64 / 4
	if r.RetryAfter < 0 || w.expiresNs > most || nowNs < -most || nowNs > most || w.expiresNs <= nowNs {
		return
	}
	limited := func(afterMs int64) bool {
		later := window{w.request, bytes.Clone(w.payload), w.expiresNs}
		r, _ := later.ask(l, nowNs+afterMs*ms, 1, Options{Unit: funnel.Milliseconds})
		return r.Limited
	}
	if r.RetryAfter < 1 || limited(r.RetryAfter) || !limited(r.RetryAfter-1) {
		t.Fatalf("wrong time to retry: %+v", r)
	}
}
