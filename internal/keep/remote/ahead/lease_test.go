package ahead

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/store"
)

// bench is a table, one key of it with a limit of 1,000 units a second, and a clock that is the server's, too.
type bench struct {
	t     *testing.T
	table *Table
	limit funnel.Limit
	nowNs int64
}

func newBench(t *testing.T, capacity int64) *bench {
	t.Helper()
	l, err := funnel.NewLimit(funnel.Capacity, capacity, 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, New(Config{Enabled: true, StartAbove: 10}), l, 1_000 * sec}
}

func (b *bench) take(quantity int64) (funnel.Result, bool) {
	return b.table.Take(key, b.limit, funnel.Milliseconds, quantity, b.nowNs, b.nowNs)
}

func (b *bench) want() Ask { return b.table.Want(key, b.limit, 10, b.nowNs) }

// lease takes a lease from a TAT on, which must have so many units.
func (b *bench) lease(fromNs, units int64) {
	b.t.Helper()
	a := b.want()
	if a.Units != units {
		b.t.Fatalf("%d units are wanted, not %d", a.Units, units)
	}
	b.table.Granted(key, a, b.nowNs, fromNs, a.Units)
}

// wantTakes takes one by one until there is nothing left, which must be so many.
func (b *bench) wantTakes(n int) {
	b.t.Helper()
	taken := 0
	for {
		if _, ok := b.take(1); !ok {
			break
		}
		taken++
	}
	if taken != n {
		b.t.Errorf("%d units could be used, not %d", taken, n)
	}
}

// TestSlots: a unit can be used until its slot begins, and the one whose slot begins first is used first.
func TestSlots(t *testing.T) {
	b := newBench(t, 100)    // slots of 1 ms
	b.lease(b.nowNs+2*ms, 8) // from 2 ms to 10 ms
	b.nowNs += 2 * ms
	if _, ok := b.take(1); !ok { // that from 2 to 3
		t.Error("the first cannot be used at its beginning")
	}
	b.nowNs += 2*ms + 1 // those from 3 and from 4 have begun
	if _, ok := b.take(6); ok {
		t.Error("6 of 5 could be used")
	}
	if _, ok := b.take(2); !ok { // from 5 and 6
		t.Error("two cannot be used")
	}
	b.nowNs += 3*ms - 2 // at 7 ms - 1: from 7, 8 and 9
	b.wantTakes(3)
	var st store.LeaseStats
	b.table.UpdateStats(&st)
	if want := (store.LeaseStats{Keys: 1, Asked: 8, Granted: 8, Used: 6, Lost: 2}); st != want {
		t.Errorf("%+v, want %+v", st, want)
	}
}

// TestTold: while nothing drains unused, and nobody else asks, a leased answer is that of the funnel itself.
func TestTold(t *testing.T) {
	b := newBench(t, 160)
	tatNs := b.nowNs + 40*ms
	b.lease(tatNs, 8)
	for i := range 9 {
		quantity := int64(i % 3)
		if i == 8 {
			quantity = 1
		}
		var want funnel.Result
		tatNs, want = b.limit.ThrottleIn(funnel.Milliseconds, tatNs, b.nowNs, quantity)
		got, ok := b.take(quantity)
		if !ok || got != want {
			t.Errorf("call %d: %+v %v, want %+v", i, got, ok, want)
		}
		b.nowNs += ms
	}
	for _, quantity := range []int64{-1, 0, 1} {
		if _, ok := b.take(quantity); ok {
			t.Errorf("%d were answered when nothing was left", quantity)
		}
	}
}

// TestGivenBack: only slots behind which there are none are given back, by saying where the TAT must be, and once.
func TestGivenBack(t *testing.T) {
	b := newBench(t, 10_000)
	b.lease(b.nowNs+5*sec, 8)
	for range 3 {
		b.take(1)
	}
	if cuts := b.table.Return(b.nowNs + sec - 1); len(cuts) != 0 {
		t.Errorf("%+v before the time is over", cuts)
	}
	endNs := b.nowNs + 5*sec + 8*ms
	b.nowNs += sec
	want := Cut{Name: "key", EndNs: endNs, ToNs: endNs - 5*ms}
	if cuts := b.table.Return(b.nowNs); len(cuts) != 1 || cuts[0] != want {
		t.Errorf("%+v, want %+v", cuts, want)
	}
	if cuts := b.table.Return(b.nowNs); len(cuts) != 0 {
		t.Errorf("%+v are given back twice", cuts)
	}
	b.wantTakes(0)
}

// TestNotGivenBack: what another grant lies behind is not.
func TestNotGivenBack(t *testing.T) {
	b := newBench(t, 10_000)
	b.lease(b.nowNs+5*sec, 8)
	b.take(5)
	b.nowNs += 500 * ms
	b.lease(b.nowNs+6*sec, 5) // so that 8 are open
	b.nowNs += 500 * ms
	if cuts := b.table.Return(b.nowNs); len(cuts) != 0 {
		t.Errorf("%+v", cuts)
	}
	if _, ok := b.take(6); ok {
		t.Error("units whose time is over were used")
	}
	cuts := b.table.ReturnAll(b.nowNs)
	if len(cuts) != 1 || cuts[0].EndNs-cuts[0].ToNs != 5*ms {
		t.Errorf("%+v at the end", cuts)
	}
	var st store.LeaseStats
	b.table.UpdateStats(&st)
	if want := (store.LeaseStats{Asked: 13, Granted: 13, Used: 5, Lost: 3, Returned: 5}); st != want {
		t.Errorf("%+v, want %+v", st, want)
	}
}

// TestLowered: a grant that begins before slots that were taken shows that others may have these, too.
func TestLowered(t *testing.T) {
	for name, c := range map[string]struct {
		fromNs int64 // of the second grant, from the beginning of the first
		left   int
	}{
		"behind":         {8 * ms, 4 + 4},
		"within":         {6 * ms, 2 + 4},
		"within a slot":  {6*ms - 1, 1 + 4},
		"among the used": {2 * ms, 4},
		"before":         {-3 * ms, 4},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 10_000)
			fromNs := b.nowNs + 5*sec
			b.lease(fromNs, 8)
			b.take(4)
			b.lease(fromNs+c.fromNs, 4)
			b.wantTakes(c.left)
		})
	}
}

// TestAsks: there is one ask at a time, whose grant counts only while it is the present one.
func TestAsks(t *testing.T) {
	b := newBench(t, 10_000)
	if a := b.table.Want(key, b.limit, 9, b.nowNs); a.Units != 0 {
		t.Errorf("%d units for a key that is not hot", a.Units)
	}
	first := b.table.Want(key, b.limit, 1, b.nowNs)
	if first.Units != firstUnits {
		t.Errorf("%d units for a hot key", first.Units)
	}
	b.nowNs += 999 * ms
	if a := b.want(); a.Units != 0 {
		t.Error("two are under way")
	}
	b.nowNs += ms // there is no reply
	second := b.want()
	b.table.Granted(key, first, b.nowNs, b.nowNs+5*sec, 8)
	b.wantTakes(0)
	b.table.Granted(key, second, b.nowNs, b.nowNs+6*sec, 8)
	b.table.Granted(key, second, b.nowNs, b.nowNs+7*sec, 8)
	b.wantTakes(8)

	third := b.want()
	b.table.Forget(key)
	b.table.Granted(key, third, b.nowNs, b.nowNs+8*sec, third.Units)
	b.wantTakes(0)
	b.lease(b.nowNs+9*sec, firstUnits)
	b.table.Forget(key)
	b.wantTakes(0)
}

// TestPace is how many units are asked for by what became of those before.
func TestPace(t *testing.T) {
	b := newBench(t, 10_000)
	high := 6 * sec // where the TAT is, so that slots neither begin nor are abundant
	for _, units := range []int64{8, 16, 32, 64, 128, 256, 512, 512} {
		b.lease(b.nowNs+high, units)
		b.wantTakes(int(units))
	}
	b.lease(b.nowNs+high, 512) // of which 100 are needed while it lasts
	b.take(50)
	b.nowNs += 500 * ms
	b.take(50)
	b.nowNs += 500 * ms
	b.wantTakes(0)
	b.table.Return(b.nowNs)
	b.lease(b.nowNs+high, 125)

	b.wantTakes(125)
	a := b.want()
	b.table.Granted(key, a, b.nowNs, b.nowNs+high, 7) // of 250
	b.wantTakes(7)
	b.nowNs += sec - 1
	if a := b.want(); a.Units != 0 {
		t.Errorf("%d units just after there was no room", a.Units)
	}
	b.nowNs++
	b.lease(b.nowNs+high, 2*(250/2))
}

// TestAbundance: slots that begin unused make leases larger only while the funnel is nearly empty.
func TestAbundance(t *testing.T) {
	b := newBench(t, 800)
	for _, units := range []int64{8, 16, 32, 64, 100} { // the last is an eighth of the capacity
		b.lease(b.nowNs, units)
		b.take(3)
		b.nowNs += 110 * ms
		b.wantTakes(0)
	}
	b.lease(b.nowNs+300*ms, 100) // more than a quarter full
	b.take(40)
	b.nowNs += 410 * ms
	b.wantTakes(0)
	b.lease(b.nowNs, 50)
}

// TestGoes: a key that is not hot any more has no lease, and costs nothing.
func TestGoes(t *testing.T) {
	b := newBench(t, 10_000)
	b.lease(b.nowNs+5*sec, 8)
	b.take(1)
	b.nowNs += sec
	b.table.Return(b.nowNs)
	var st store.LeaseStats
	b.table.UpdateStats(&st)
	if st.Keys != 0 {
		t.Error("a key that used one unit in a second still has a lease")
	}
	b.lease(b.nowNs+5*sec, 8)
	b.wantTakes(8)
	b.table.Return(b.nowNs + sec)
	if b.table.keys.Load() != 0 {
		t.Error("a key that nobody asks for still has a lease")
	}
}

// TestOtherLimit: another limit gets leases of the key when the first is not used any more.
func TestOtherLimit(t *testing.T) {
	b := newBench(t, 10_000)
	b.lease(b.nowNs+5*sec, 8)
	was := b.limit
	b.limit, _ = funnel.NewLimit(funnel.Capacity, 5_000, 1_000, 1)
	if _, ok := b.take(1); ok {
		t.Error("a unit of another limit was used")
	}
	if a := b.want(); a.Units != 0 {
		t.Error("two limits have leases")
	}
	b.limit, _ = funnel.NewLimit(funnel.Capacity, 10_000, 2_000, 2) // the first in other words
	if b.limit == was || !b.limit.Same(was) {
		t.Fatalf("%+v and %+v", b.limit, was)
	}
	b.wantTakes(8)
	b.nowNs += sec
	b.limit, _ = funnel.NewLimit(funnel.Capacity, 5_000, 1_000, 1)
	b.lease(b.nowNs+5*sec, 8)
	b.wantTakes(8)
}

// TestSmallAndMany: capacities that have no part to spare, and more keys than there may be, have no leases.
func TestSmallAndMany(t *testing.T) {
	b := newBench(t, 15)
	if a := b.want(); a != (Ask{}) {
		t.Errorf("%+v of a capacity of 15", a)
	}
	b = newBench(t, 1000)
	b.table.maxKeys = 3
	given := 0
	for i := range 10 {
		if b.table.Want(fmt.Appendf(nil, "%d", i), b.limit, 10, b.nowNs).Units > 0 {
			given++
		}
	}
	if given != 3 {
		t.Errorf("%d keys have leases", given)
	}
}

func TestNone(t *testing.T) {
	table := New(Config{})
	b := newBench(t, 1000)
	b.table = table
	b.wantTakes(0)
	if a := b.want(); a != (Ask{}) {
		t.Errorf("%+v without leases", a)
	}
	table.Granted(key, Ask{}, 0, 0, 0)
	table.Forget(key)
	table.UpdateStats(&store.LeaseStats{})
	if table.Return(0) != nil || table.ReturnAll(0) != nil {
		t.Error("something is given back")
	}
}

func TestAllocations(t *testing.T) {
	b := newBench(t, 100_000)
	b.table.Granted(key, b.want(), b.nowNs, b.nowNs+50*sec, 8)
	for range 12 { // until leases are large
		b.wantTakes(int(b.open()))
		b.table.Granted(key, b.want(), b.nowNs, b.nowNs+50*sec, 1<<20)
	}
	if allocs := testing.AllocsPerRun(100, func() { b.take(1) }); allocs != 0 || b.open() == 0 {
		t.Errorf("%v allocations for a leased unit", allocs)
	}
	other := []byte("another")
	if allocs := testing.AllocsPerRun(100, func() {
		b.table.Take(other, b.limit, funnel.Seconds, 1, b.nowNs, b.nowNs)
		b.table.Want(other, b.limit, 0, b.nowNs)
	}); allocs != 0 {
		t.Errorf("%v allocations for a key without a lease", allocs)
	}
}

func (b *bench) open() int64 {
	var st store.LeaseStats
	b.table.UpdateStats(&st)
	return st.Open
}

func TestConcurrent(t *testing.T) {
	b := newBench(t, 100_000)
	b.table.config.MaxTime = time.Millisecond
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range int64(3_000) {
				nowNs := b.nowNs + i*10_000
				name := []byte{byte(i % 3)}
				if _, ok := b.table.Take(name, b.limit, funnel.Seconds, 1, nowNs, nowNs); !ok {
					a := b.table.Want(name, b.limit, 5, nowNs)
					b.table.Granted(name, a, nowNs, nowNs+10*sec, a.Units)
				}
				if i%100 == 0 && g == 0 {
					b.table.Return(nowNs)
					b.table.Forget(name)
					b.table.UpdateStats(&store.LeaseStats{})
				}
			}
		})
	}
	wg.Wait()
}
