package ahead

import (
	"fmt"
	"testing"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// TestFaults: whatever happens to messages and processes, no window of the units that all use together has more than one
// funnel would let through.
func TestFaults(t *testing.T) {
	racetest.SkipAlone(t)
	var used uint64
	seeds := uint64(60)
	if testing.Short() {
		seeds = 16
	}
	for seed := range seeds {
		f := newFleet(t, seed, 1+int(seed%5), 50<<(seed%8), 2_000, Config{Enabled: true, StartAbove: 20})
		f.faults()
		for i, k := range f.cells {
			f.demand(k, float64(1+f.rand.IntN(1500)), f.now(i))
			f.mixed(k)
			f.crashes(k)
		}
		f.run(8 * sec)
		f.check(0)
		used += f.stats().Used
	}
	if used < 80*seeds {
		t.Errorf("only %d leased units were used", used)
	}
}

// faults makes messages late or lost: most are quick, some take longer than leases do.
func (f *fleet) faults() {
	f.lost = func() bool { return f.rand.IntN(30) == 0 }
	f.delayNs = func() int64 {
		switch f.rand.IntN(40) {
		case 0:
			return f.rand.Int64N(2 * sec)
		case 1, 2, 3:
			return f.rand.Int64N(60 * ms)
		}
		return 20*us + f.rand.Int64N(400*us)
	}
}

// now has a process's demand stop now and then, so that leases are left over.
func (f *fleet) now(i int) func() bool {
	startNs := f.nowNs
	return func() bool { return (f.nowNs-startNs)/sec+int64(i) != 5 }
}

// mixed has calls of several units come, and some that come in crowds.
func (f *fleet) mixed(k *cell) {
	f.after(f.rand.Int64N(100*ms), func() {
		quantity := f.rand.Int64N(8)
		for range f.rand.IntN(50) {
			k.request(quantity)
		}
		f.mixed(k)
	})
}

// crashes has a process begin anew now and then, without what it knew.
func (f *fleet) crashes(k *cell) {
	f.after(f.rand.Int64N(8*sec), func() {
		k.table = New(k.table.config)
		k.waiting = nil
		f.crashes(k)
	})
}

// TestDeleted: deleting the key admits as much again, and what others have leased at most.
func TestDeleted(t *testing.T) {
	f := newFleet(t, 3, 3, 8_000, 4_000, Config{Enabled: true})
	for _, k := range f.cells {
		f.demand(k, 3_000, always)
	}
	for round := range 20 {
		f.run(300 * ms)
		f.cells[0].table.Forget(key)
		f.server.tatNs = 0
		st := store.LeaseStats{}
		f.cells[1].table.UpdateStats(&st)
		f.cells[2].table.UpdateStats(&st)
		f.admitted = nil
		f.run(700 * ms)
		f.check(st.Open + inFlight)
		if round == 5 && st.Open == 0 {
			t.Error("nothing was leased")
		}
	}
}

// inFlight is what may have been granted and not yet received by three processes when the key is deleted.
const inFlight = 3 * 1_000

// TestFailover: a promoted replica that lacks the last writes admits what these have taken once more, at most.
func TestFailover(t *testing.T) {
	racetest.SkipAlone(t)
	for seed := range uint64(10) {
		f := newFleet(t, seed, 3, 10_000, 4_000, Config{Enabled: true})
		for _, k := range f.cells {
			f.demand(k, 2_000, always)
		}
		var lost int64
		for range 6 {
			f.run(f.rand.Int64N(sec))
			replicated := f.server.tatNs
			f.run(f.rand.Int64N(100 * ms))
			lost += (f.server.tatNs - max(replicated, f.server.tell(f.nowNs))) / int64(f.limit.IntervalNs())
			f.server.tatNs = replicated
			f.check(lost + 1)
		}
		f.run(3 * sec)
		f.check(lost + 1)
	}
}

// TestRefunds: refunds admit what was refunded, and no more.
func TestRefunds(t *testing.T) {
	f := newFleet(t, 7, 3, 4_000, 2_000, Config{Enabled: true})
	for _, k := range f.cells {
		f.demand(k, 2_000, always)
	}
	var refunded int64
	for range 40 {
		f.run(100 * ms)
		units := f.rand.Int64N(200)
		f.server.tatNs, _ = f.limit.Throttle(f.server.tatNs, f.server.tell(f.nowNs), -units)
		refunded += units
		for _, k := range f.cells {
			k.recent.Forget(key, k.at(f.nowNs))
		}
	}
	f.check(refunded)
}

// TestSteps: a step of the server's clock frees what it would without leases, and what is leased at most.
func TestSteps(t *testing.T) {
	racetest.SkipAlone(t)
	for _, stepNs := range []int64{-3 * sec, -100 * ms, 100 * ms, 3 * sec} {
		t.Run(fmt.Sprint(stepNs), func(t *testing.T) {
			f := newFleet(t, 9, 3, 8_000, 4_000, Config{Enabled: true})
			for _, k := range f.cells {
				f.demand(k, 2_000, always)
			}
			f.run(2 * sec)
			open := f.stats().Open
			f.server.stepped = true
			f.server.aheadNs += stepNs
			f.run(4 * sec)
			if stepNs > 0 {
				f.check(open + inFlight)
			}
		})
	}
}

// TestTwoLimits: calls of two limits share a key's TAT. Of each no window has more than that limit lets through, and only one has
// leases.
func TestTwoLimits(t *testing.T) {
	f := newFleet(t, 4, 3, 6_000, 3_000, Config{Enabled: true})
	other, err := funnel.NewLimit(funnel.Capacity, 3_000, 1_000, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range f.cells {
		f.demand(k, 900, always)
	}
	var used []admitted
	var step func()
	step = func() {
		localNs := f.cells[0].at(f.nowNs)
		latestNs, _ := f.cells[0].line.Latest(localNs)
		if _, ok := f.cells[0].table.Take(key, other, funnel.Seconds, 1, latestNs, localNs); ok {
			t.Fatal("a call was answered from another limit's lease")
		}
		nowNs := f.server.tell(f.nowNs)
		ask := f.cells[0].table.Want(key, other, 1, localNs)
		if ask.Units != 0 {
			t.Fatal("two limits have leases of one key")
		}
		tatNs, r := other.Throttle(f.server.tatNs, nowNs, 1)
		if f.server.tatNs = tatNs; !r.Limited {
			used = append(used, admitted{nowNs, 1})
		}
		f.after(1*ms, step)
	}
	f.run(500 * ms) // until the first has leases
	f.after(0, step)
	f.run(8 * sec)
	f.check(0)
	f.limit, f.admitted = other, used
	f.check(0)
	if len(used) < 1_000 || f.stats().Used < 1_000 {
		t.Errorf("%d were admitted of one limit, and %d leased of the other", len(used), f.stats().Used)
	}
}

// TestGivingBack is why units are not given back by a refund: of a capacity of 64 two processes have leased 8 each when the first one
// ends. A refund lowers the TAT into the slots of the second. They are then leased once more, to a third, and when
// the slots of the first have drained, both are used beside all the rest.
func TestGivingBack(t *testing.T) {
	for name, c := range map[string]struct {
		giveBack func(s *server, c Cut)
		used     int64
	}{
		"by its cut":  {(*server).cut, 64},
		"by a refund": {func(s *server, c Cut) { s.tatNs -= c.EndNs - c.ToNs }, 72},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 1, 3, 64, 1, Config{Enabled: true, StartAbove: 1, MaxTime: 20 * time.Second})
			s := &server{}
			lease := func(k *cell, nowNs int64) {
				a := k.table.Want(key, f.limit, 1, nowNs)
				fromNs := max(s.tatNs, nowNs)
				s.tatNs = fromNs + int64(f.limit.DebitNs(a.Units))
				k.table.Granted(key, a, nowNs, fromNs, a.Units)
			}
			nowNs := f.nowNs
			lease(f.cells[0], nowNs)
			lease(f.cells[1], nowNs)
			for _, cut := range f.cells[0].table.ReturnAll(nowNs) {
				c.giveBack(s, cut)
			}
			lease(f.cells[2], nowNs)

			nowNs += 8 * sec
			var used int64
			for _, k := range f.cells {
				for ok := true; ok; {
					if _, ok = k.table.Take(key, f.limit, funnel.Seconds, 1, nowNs, nowNs); ok {
						used++
					}
				}
			}
			_, r := f.limit.Throttle(s.tatNs, nowNs, 0)
			if used += r.Remaining; used != c.used {
				t.Errorf("%d units can be used at once, not %d", used, c.used)
			}
		})
	}
}
