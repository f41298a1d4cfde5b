package funnel

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel/vectors"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(nsPerSec)
	ms  = int64(nsPerMs)
)

func mustLimit(t testing.TB, reading Reading, maxBurst, count, periodSec int64) Limit {
	t.Helper()
	l, err := NewLimit(reading, maxBurst, count, periodSec)
	if err != nil {
		t.Fatalf("NewLimit(%d, %d, %d, %d): %v", reading, maxBurst, count, periodSec, err)
	}
	return l
}

func TestThrottleOverTime(t *testing.T) {
	for _, c := range cases() {
		reading := Burst
		if c.Capacity {
			reading = Capacity
		}
		run(t, c.Name, reading, c.Rows)
	}
}

// run compares results with rows, in order on fresh keys.
func run(t *testing.T, name string, reading Reading, rows []vectors.Row) {
	t.Helper()
	tats := map[string]int64{}
	for i, r := range rows {
		limit := mustLimit(t, reading, r.MaxBurst, r.Count, r.PeriodSec)
		tat, got := limit.Throttle(tats[r.Key], r.AtNs, r.Quantity)
		if want := (Result{Limited: r.Limited, Limit: r.Limit, Remaining: r.Remaining, RetryAfter: r.RetryAfter, ResetAfter: r.ResetAfter}); got != want {
			t.Fatalf("%s, call %d, %+v: got %+v, want %+v", name, i, r, got, want)
		}
		tats[r.Key] = tat
	}
}

func TestLimitsMayChangeBetweenCalls(t *testing.T) {
	wide, narrow := mustLimit(t, Burst, 99, 1, 1), mustLimit(t, Burst, 1, 1, 1)
	tat, _ := wide.Throttle(0, t0, 50)
	got, r := narrow.Throttle(tat, t0, 0)
	if want := (Result{Limited: true, Limit: 2, RetryAfter: 48, ResetAfter: 50}); r != want || got != tat {
		t.Errorf("probe: got %+v and TAT %d, want %+v and %d", r, got, want, tat)
	}
	if _, r = narrow.Throttle(tat, t0, -1); r != (Result{Limit: 2, RetryAfter: -1, ResetAfter: 49}) {
		t.Errorf("refund above the tolerance: got %+v", r)
	}
}

// TestUnchangedTAT: a probe and a limited request return the given TAT, even a past one.
func TestUnchangedTAT(t *testing.T) {
	l := mustLimit(t, Burst, 4, 1, 1)
	for _, tt := range []struct {
		name     string
		tatNs    int64
		quantity int64
	}{
		{"a probe of an absent key", 0, 0},
		{"a probe of an expired key", t0 - sec, 0},
		{"a probe of a key that expires now", t0, 0},
		{"a probe", t0 + 3*sec, 0},
		{"too soon", t0 + 3*sec, 3},
		{"more than an empty funnel holds", t0 - sec, 6},
		{"more than a full one holds", t0 + 5*sec, 6},
	} {
		if got, r := l.Throttle(tt.tatNs, t0, tt.quantity); got != tt.tatNs {
			t.Errorf("%s: got TAT %d with %+v, want %d", tt.name, got, r, tt.tatNs)
		}
	}
}

func TestNewLimitErrors(t *testing.T) {
	tests := []struct {
		reading                    Reading
		maxBurst, count, periodSec int64
		want                       string // "" for none
	}{
		{Burst, 0, 1, 1, ""},
		{Burst, 0, 0, 1, "Zero rates are not supported"},
		{Burst, 0, 1, 0, "Zero rates are not supported"},
		{Burst, 0, 0, 0, "Zero rates are not supported"},
		{Burst, 0, nsPerSec, 1, ""},
		{Burst, 0, nsPerSec + 1, 1, "Zero rates are not supported"},
		{Burst, 0, math.MaxInt64, 1, "Zero rates are not supported"},
		{Burst, -1, 0, 0, "max_burst must be at least 0, got -1"},
		{Burst, 0, -2, 0, "count must be at least 0, got -2"},
		{Burst, 0, 0, -3, "period must be at least 0, got -3"},
		{Burst, math.MinInt64, math.MinInt64, math.MinInt64, "max_burst must be at least 0, got -9223372036854775808"},
		{Capacity, 0, 1, 1, "max_burst must be at least 1, got 0"},
		{Capacity, 1, 1, 1, ""},
		{Burst, 0, 1, 4611686018, ""},
		{Burst, 0, 1, 4611686019, ErrTooSlow.Error()},
		{Burst, 1<<62 - 1, nsPerSec, 1, ""},
		{Burst, 1 << 62, nsPerSec, 1, ErrTooSlow.Error()},
		{Capacity, 1 << 62, nsPerSec, 1, ""},
		{Burst, math.MaxInt64, nsPerSec, 1, ErrTooSlow.Error()},
		{Burst, math.MaxInt64, 1, math.MaxInt64, ErrTooSlow.Error()},
		{Burst, 0, 1, math.MaxInt64, ErrTooSlow.Error()},
		{Burst, 0, 499_999_999, math.MaxInt64, ErrTooSlow.Error()}, // an interval of 2^64 ns and more
		{Burst, 0, 500_000_000, math.MaxInt64, ErrTooSlow.Error()}, // and just below
		{Burst, 0, math.MaxInt64, math.MaxInt64, ""},
		{Burst, 0, 1e18, 1e18, ""}, // intermediate result exceeds 64 bits, final one is 1 s
	}
	for _, tt := range tests {
		_, err := NewLimit(tt.reading, tt.maxBurst, tt.count, tt.periodSec)
		if got := fmt.Sprint(err); got != tt.want && (err != nil || tt.want != "") {
			t.Errorf("NewLimit(%d, %d, %d, %d): got %q, want %q", tt.reading, tt.maxBurst, tt.count, tt.periodSec, got, tt.want)
		}
	}
	var argument *ArgumentError
	if _, err := NewLimit(Burst, 0, -1, 1); !errors.As(err, &argument) || argument.Name != "count" {
		t.Errorf("a negative count: got %v, want an ArgumentError that names it", err)
	}
}

func TestZeroLimitHoldsNothing(t *testing.T) {
	for _, quantity := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
		if tat, r := (Limit{}).Throttle(t0-1, t0, quantity); tat > t0 || r.Limited != (quantity > 0) {
			t.Errorf("quantity %d: got %+v and TAT %d", quantity, r, tat)
		}
	}
}

// TestDebitsOverTime: one unit leaks a second, of at most 5.
func TestDebitsOverTime(t *testing.T) {
	const most = int64(MaxToleranceNs / nsPerSec) // whole seconds
	l, tat := mustLimit(t, Capacity, 5, 1, 1), int64(0)
	for i, tt := range []struct {
		atSec, quantity int64
		want            Result
	}{
		{0, 3, Result{Limit: 5, Remaining: 2, RetryAfter: -1, ResetAfter: 3}},
		{0, 2, Result{Limit: 5, RetryAfter: 1, ResetAfter: 5}},
		{0, 1, Result{Limited: true, Limit: 5, RetryAfter: 2, ResetAfter: 6}},
		{0, 0, Result{Limit: 5, RetryAfter: 2, ResetAfter: 6}},
		{0, -9, Result{Limit: 5, RetryAfter: 2, ResetAfter: 6}},
		{2, 0, Result{Limit: 5, Remaining: 1, RetryAfter: -1, ResetAfter: 4}},
		{6, 100, Result{Limited: true, Limit: 5, RetryAfter: 96, ResetAfter: 100}},
		{6, most - 100, Result{Limited: true, Limit: 5, RetryAfter: most - 4, ResetAfter: most}},
		{6, 1, Result{Limited: true, Marks: Cut, Limit: 5, RetryAfter: most - 4 + 1, ResetAfter: most + 1}}, // 0.4 s fit
		{6, math.MaxInt64, Result{Limited: true, Marks: Cut, Limit: 5, RetryAfter: most - 4 + 1, ResetAfter: most + 1}},
		{106, 50, Result{Limited: true, Limit: 5, RetryAfter: most - 54 + 1, ResetAfter: most - 50 + 1}},
	} {
		var got Result
		if tat, got = l.DebitIn(Seconds, tat, t0+tt.atSec*sec, tt.quantity); got != tt.want {
			t.Errorf("call %d: got %+v, want %+v", i, got, tt.want)
		}
	}
}

// TestDebitOfFartherTAT: a TAT that is more than 2^62 ns ahead is neither moved nor cut.
func TestDebitOfFartherTAT(t *testing.T) {
	l := mustLimit(t, Capacity, 5, 1, 1)
	const nowNs, tatNs = -sec, MaxToleranceNs + sec
	for quantity, marks := range map[int64]Marks{0: 0, -1: 0, 1: Cut, math.MaxInt64: Cut} {
		if got, r := l.DebitIn(Seconds, tatNs, nowNs, quantity); got != tatNs || r.Marks != marks || r.Limited != (quantity > 0) {
			t.Errorf("%d units: the TAT is %d with %+v, want %d", quantity, got, r, tatNs)
		}
	}
	for _, quantity := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
		if tat, r := (Limit{}).DebitIn(Seconds, t0-1, t0, quantity); tat != t0 || r.Remaining != 0 {
			t.Errorf("no limit, %d units: got %+v and TAT %d", quantity, r, tat)
		}
	}
}

func TestThrottleDoesNotAllocate(t *testing.T) {
	tat := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		l, err := NewLimit(Burst, 15, 30, 60)
		if err != nil {
			t.Fatal(err)
		}
		tat, _ = l.Throttle(tat, t0, 1)
	}); n != 0 {
		t.Errorf("%v allocations a call, want 0", n)
	}
}

// FuzzThrottle compares the 64-bit arithmetic with the formulas in big integers.
func FuzzThrottle(f *testing.F) {
	edges := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 2, nsPerSec, t0, 1 << 62, math.MaxInt64 - 1, math.MaxInt64}
	for i, a := range edges {
		b, c := edges[(i+3)%len(edges)], edges[(i+7)%len(edges)]
		f.Add(false, int64(15), int64(30), int64(60), a, b, c)
		f.Add(true, a, b, c, t0, t0, int64(1))
		f.Add(false, int64(1<<31), int64(1), int64(1), t0+1<<61, t0, a)
	}
	f.Fuzz(func(t *testing.T, capacity bool, maxBurst, count, periodSec, tatNs, nowNs, quantity int64) {
		reading := Burst
		if capacity {
			reading = Capacity
		}
		l, err := NewLimit(reading, maxBurst, count, periodSec)
		o := newOracle(reading, maxBurst, count, periodSec)
		if (err == nil) != o.valid {
			t.Fatalf("NewLimit: error %v, but the oracle's verdict is %v", err, o.valid)
		}
		if err != nil {
			return
		}
		newTAT, r := l.Throttle(tatNs, nowNs, quantity)
		wantTAT, want := o.throttle(tatNs, nowNs, quantity)
		if r != want {
			t.Fatalf("got %+v, want %+v", r, want)
		}
		if max(newTAT, nowNs) != wantTAT {
			t.Fatalf("got TAT %d, want %d", newTAT, wantTAT)
		}
		for _, unit := range []Unit{Seconds, Milliseconds, WholeSeconds} {
			newTAT, r := l.DebitIn(unit, tatNs, nowNs, quantity)
			if wantTAT, want := o.debit(unit, tatNs, nowNs, quantity); newTAT != wantTAT || r != want {
				t.Fatalf("debit in unit %d: got TAT %d with %+v, want %d with %+v", unit, newTAT, r, wantTAT, want)
			}
		}
	})
}

type oracle struct {
	valid                         bool
	interval, capacity, tolerance *big.Int
}

func newOracle(reading Reading, maxBurst, count, periodSec int64) (o oracle) {
	o.capacity = big.NewInt(maxBurst)
	if reading == Burst {
		o.capacity.Add(o.capacity, big.NewInt(1))
	}
	if maxBurst < 0 || o.capacity.Sign() < 1 || count <= 0 || periodSec <= 0 {
		return o
	}
	o.interval = new(big.Int).Mul(big.NewInt(periodSec), big.NewInt(nsPerSec))
	o.interval.Quo(o.interval, big.NewInt(count))
	o.tolerance = new(big.Int).Mul(o.interval, o.capacity)
	o.valid = o.interval.Sign() > 0 && o.tolerance.Cmp(big.NewInt(1<<62)) <= 0
	return o
}

func (o oracle) throttle(tatNs, nowNs, quantity int64) (int64, Result) {
	now, tat := big.NewInt(nowNs), big.NewInt(max(tatNs, nowNs))
	requested := new(big.Int).Mul(o.interval, big.NewInt(quantity))
	next := new(big.Int).Add(tat, requested)
	over := new(big.Int).Sub(next, o.tolerance)
	over.Sub(over, now)
	r := Result{Limit: o.capacity.Int64(), RetryAfter: -1}
	tooMuch := big.NewInt(quantity).Cmp(o.capacity) > 0
	switch {
	case quantity < 0:
		if tat = next; tat.Cmp(now) < 0 {
			tat = now
		}
	case over.Sign() <= 0 && !tooMuch:
		tat = next
	default:
		r.Limited = true
		if !tooMuch {
			r.RetryAfter = bigSeconds(over)
		}
	}
	ttl := new(big.Int).Sub(tat, now)
	r.ResetAfter = bigSeconds(ttl)
	if free := new(big.Int).Sub(o.tolerance, ttl); free.Cmp(new(big.Int).Neg(o.interval)) > 0 {
		r.Remaining = free.Quo(free, o.interval).Int64()
	}
	if !tat.IsInt64() {
		return math.MaxInt64, r
	}
	return tat.Int64(), r
}

// debit charges all units, up to 2^62 ns ahead, or to the TAT if it is farther already.
func (o oracle) debit(unit Unit, tatNs, nowNs, quantity int64) (int64, Result) {
	now, zero := big.NewInt(nowNs), new(big.Int)
	debt := new(big.Int).Sub(big.NewInt(max(tatNs, nowNs)), now)
	most := big.NewInt(1 << 62)
	if debt.Cmp(most) > 0 {
		most.Set(debt)
	}
	debt.Add(debt, new(big.Int).Mul(o.interval, big.NewInt(max(quantity, 0))))
	r := Result{Limit: o.capacity.Int64(), RetryAfter: -1}
	if debt.Cmp(most) > 0 {
		debt, r.Marks = most, Cut
	}
	over := new(big.Int).Sub(debt, o.tolerance)
	r.Limited = quantity > 0 && over.Sign() > 0
	if over.Sign() < 0 {
		r.Remaining = new(big.Int).Quo(new(big.Int).Neg(over), o.interval).Int64()
	}
	if one := over.Add(over, o.interval); one.Cmp(zero) > 0 {
		r.RetryAfter = bigOf(unit, one)
	}
	r.ResetAfter = bigOf(unit, debt)
	if newTAT := debt.Add(debt, now); newTAT.IsInt64() {
		return newTAT.Int64(), r
	}
	return math.MaxInt64, r
}

func bigOf(unit Unit, ns *big.Int) int64 {
	if unit == Seconds {
		return bigSeconds(ns)
	}
	n, rest := new(big.Int).QuoRem(ns, new(big.Int).SetUint64(unit.Ns()), new(big.Int))
	return n.Int64() + int64(rest.Sign())
}

func bigSeconds(ns *big.Int) int64 {
	s, rest := new(big.Int).QuoRem(ns, big.NewInt(nsPerSec), new(big.Int))
	if rest.Cmp(big.NewInt(nsPerMs)) >= 0 {
		s.Add(s, big.NewInt(1))
	}
	return s.Int64()
}

func BenchmarkThrottle(b *testing.B) {
	tat, now := int64(0), t0
	for b.Loop() {
		l, err := NewLimit(Burst, 15, 30, 60)
		if err != nil {
			b.Fatal(err)
		}
		tat, _ = l.Throttle(tat, now, 1)
		now += sec
	}
}

// TestVectors compares results with those of redis-cell's arithmetic on a virtual clock.
func TestVectors(t *testing.T) {
	for _, file := range []string{vectors.WholeMicroseconds, vectors.AnyNanosecond} {
		rows, err := vectors.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		run(t, file, Burst, rows)
	}
}

// TestArguments: a limit returns its arguments, which make the same limit.
func TestArguments(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 1))
	for range 20_000 {
		unit := []Unit{Seconds, Milliseconds}[r.IntN(2)]
		maxBurst, count, period := r.Int64N(1<<r.IntN(20)), 1+r.Int64N(1<<r.IntN(40)), 1+r.Int64N(1<<r.IntN(30))
		l, err := NewLimitIn(unit, Burst, maxBurst, count, period)
		if err != nil {
			continue
		}
		gotCount, gotPeriod := l.Arguments(unit)
		if uint64(count) <= unit.Ns() && (gotCount != count || gotPeriod != period) {
			t.Fatalf("of %d every %d: %d every %d", count, period, gotCount, gotPeriod)
		}
		if again, err := NewLimitIn(unit, Burst, maxBurst, gotCount, gotPeriod); err != nil || again != l {
			t.Fatalf("of %d every %d: %d every %d make %+v, not %+v: %v", count, period, gotCount, gotPeriod, again, l, err)
		}
	}
	if count, period := (Limit{}).Arguments(Seconds); count != 1 || period != 0 {
		t.Errorf("no limit is %d every %d", count, period)
	}
	if count, period := mustLimit(t, Burst, 9, 10, 1).Share(0.5).Arguments(Milliseconds); count != 1 || period != 200 {
		t.Errorf("half of 10 a second is %d every %d ms", count, period)
	}
}

func TestShare(t *testing.T) {
	for _, tt := range []struct {
		maxBurst, count, periodSec int64
		share                      float64
		capacity                   int64
		intervalNs                 uint64
	}{
		{9, 1, 60, 1, 10, 60 * nsPerSec},
		{9, 1, 60, 0.5, 5, 120 * nsPerSec},
		{9, 1, 60, 0.25, 2, 240 * nsPerSec},
		{0, 1, 60, 0.01, 1, 6000 * nsPerSec},
		{0, 1, 1 << 32, 1e-9, 1, MaxToleranceNs},
		{1 << 31, 1, 1, 0.5, 1 << 30, 2 * nsPerSec},
		{math.MaxInt32, 1, 1, math.SmallestNonzeroFloat64, 1, MaxToleranceNs},
	} {
		l := mustLimit(t, Burst, tt.maxBurst, tt.count, tt.periodSec).Share(tt.share)
		if l.Capacity() != tt.capacity || l.IntervalNs() != tt.intervalNs || l.ToleranceNs() != tt.intervalNs*uint64(tt.capacity) {
			t.Errorf("%+v: got %+v", tt, l)
		}
	}
	if l := (Limit{}).Share(0.5); l != (Limit{}) {
		t.Errorf("of nothing: %+v", l)
	}
}
