package background

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"
)

const limit = 50 * time.Millisecond // of an attacker's scripts

// attack has 50 scripts at a time that run to their limit, one after the other.
func attack(ctx context.Context, slots *Slots, who func(i int) Who) (turns []atomic.Int64) {
	turns = make([]atomic.Int64, 50)
	for i := range turns {
		go func() {
			for {
				w := who(i)
				if !slots.Take(ctx, w) {
					return
				}
				turns[i].Add(1)
				time.Sleep(limit)
				slots.Give(w)
			}
		}()
	}
	return turns
}

// TestOthersWaitForOneTurn: whoever else wants a slot now and then waits for one turn of those who want it
// all the time. A connection of the same user at the same address may wait for one more, and the first time
// as long as others that are new, too. It is in turns: the time is synctest's.
func TestOthersWaitForOneTurn(t *testing.T) {
	const addr, user = "192.0.2.1", "default"
	var connections atomic.Int64
	same := func(i int) Who { return Who{addr, user, int64(i)} }
	again := func(int) Who { return Who{addr, user, connections.Add(1)} }
	for _, tt := range []struct {
		name        string
		attack      func(i int) Who
		lasts       time.Duration // before there is another
		honest      Who
		first, then int // turns that its scripts wait for at most
	}{
		{"another address", same, time.Minute, Who{"192.0.2.2", user, -1}, 1, 1},
		{"another user", same, time.Minute, Who{addr, "honest", -1}, 1, 1},
		{"another connection", same, time.Minute, Who{addr, user, -1}, 2, 1},
		{"another connection, when all are new", same, limit, Who{addr, user, -1}, 4, 2},
		{"another address, when all are new", same, limit, Who{"192.0.2.2", user, -1}, 1, 1},
		{"another address, and new connections", again, time.Minute, Who{"192.0.2.2", user, -1}, 1, 1},
		{"new connections", again, time.Minute, Who{addr, user, -1}, 100, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			slots := NewSlots(1, now)
			turns := attack(ctx, slots, tt.attack)
			time.Sleep(tt.lasts)
			most := tt.first
			for i := range 200 {
				began := time.Now()
				slots.Take(ctx, tt.honest)
				if turns := int((time.Since(began) + limit - 1) / limit); turns > most {
					t.Errorf("%s: script %d waited for %d turns", tt.name, i, turns)
				}
				time.Sleep(100 * time.Microsecond)
				slots.Give(tt.honest)
				time.Sleep(10 * time.Millisecond)
				most = tt.then
			}
			for i := range turns {
				if turns[i].Load() == 0 {
					t.Errorf("%s: %d has had %d turns", tt.name, i, turns[i].Load())
				}
			}
			end()
			time.Sleep(time.Minute)
		})
	}
}

// TestSlotsAreShared: one address has no more slots than another that wants some, however many connections it
// has.
func TestSlotsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := NewSlots(4, now)
		ctx, end := context.WithCancel(t.Context())
		var used [2]atomic.Int64
		for a, connections := range []int{100, 4} {
			for i := range connections {
				who := Who{Addr: fmt.Sprint(a), Client: int64(i)}
				go func() {
					for slots.Take(ctx, who) {
						time.Sleep(limit)
						used[a].Add(1)
						slots.Give(who)
					}
				}()
			}
			time.Sleep(limit / 2) // the second finds all of them taken
		}
		time.Sleep(time.Minute)
		end()
		time.Sleep(time.Minute)
		if a, b := used[0].Load(), used[1].Load(); a > b+b/10 || b > a+a/10 {
			t.Errorf("%d and %d turns", a, b)
		}
	})
}

// TestCancelledKeepNothing of their work, though the slot that they wait for is not given back.
func TestCancelledKeepNothing(t *testing.T) {
	slots := NewSlots(1, now)
	slots.Take(t.Context(), Who{})
	run := func(task *Task) (arguments weak.Pointer[[1 << 20]byte]) {
		a := new([1 << 20]byte)
		task.Run(slots, Who{Client: 1}, func(context.Context) { a[0]++ })
		return weak.Make(a)
	}
	for _, end := range []func(*Task){(*Task).End, func(task *Task) { task.Cancel() }} {
		task := New(t.Context(), func() {})
		kept := run(task)
		end(task)
		runtime.GC()
		if kept.Value() != nil {
			t.Error("its arguments are kept")
		}
		runtime.KeepAlive(task)
	}
	if slots.all.hasTurns() {
		t.Error("it is still in the queue")
	}
}

// TestWaitingNeedsNoGoroutine, as each has a stack.
func TestWaitingNeedsNoGoroutine(t *testing.T) {
	slots := NewSlots(1, now)
	slots.Take(t.Context(), Who{})
	before := runtime.NumGoroutine()
	tasks := make([]*Task, 1000)
	for i := range tasks {
		tasks[i] = New(t.Context(), func() {})
		tasks[i].Run(slots, Who{Client: int64(i)}, func(context.Context) {})
	}
	if n := runtime.NumGoroutine(); n > before+100 {
		t.Errorf("%d goroutines for %d tasks that wait", n-before, len(tasks))
	}
	for _, task := range tasks {
		task.End()
	}
	slots.Give(Who{})
	if slots.free != 1 {
		t.Errorf("%d slots are free", slots.free)
	}
}

// TestSharesAreForgotten: what is remembered is bounded by the slots' time, not by how many have come.
func TestSharesAreForgotten(t *testing.T) {
	nowNs := int64(0)
	slots := NewSlots(1, func() int64 { return nowNs })
	for i := range 20_000 {
		who := Who{Addr: fmt.Sprint(i), Client: int64(i)}
		slots.Take(t.Context(), who)
		nowNs += 1000
		slots.Give(who)
	}
	if n := len(slots.shares); n > 2*sharesToForget {
		t.Errorf("%d are remembered that have used next to nothing", n)
	}
	heavy := Who{Addr: "heavy"}
	slots.Take(t.Context(), heavy)
	nowNs += int64(time.Second)
	slots.Give(heavy)
	for _, after := range []struct {
		time time.Duration
		kept bool
	}{{time.Second, true}, {30 * time.Second, true}, {2 * time.Minute, false}, {time.Hour, false}} {
		nowNs += int64(after.time)
		slots.Take(t.Context(), Who{})
		slots.Give(Who{})
		if _, kept := slots.shares[shareKey{ofAddr, Who{Addr: "heavy"}}]; kept != after.kept {
			t.Errorf("another %v later: kept is %t", after.time, kept)
		}
	}
}

// TestSlotsAtRandom: however turns come, are cancelled and end, no more run than there are slots, and nobody
// is forgotten.
func TestSlotsAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	nowNs := int64(0)
	slots := NewSlots(3, func() int64 { return nowNs })
	var running []Who
	var waiting []*turn
	for range 30_000 {
		nowNs += random.Int64N(1 << random.IntN(36))
		switch random.IntN(3) {
		case 0:
			next := &turn{who: Who{fmt.Sprint(random.IntN(4)), fmt.Sprint(random.IntN(3)), random.Int64N(5)}}
			next.begin = func() bool {
				waiting = slices.DeleteFunc(waiting, func(w *turn) bool { return w == next })
				if random.IntN(10) == 0 {
					return false
				}
				running = append(running, next.who)
				return true
			}
			waiting = append(waiting, next)
			slots.enter(next)
		case 1:
			if len(running) > 0 {
				i := random.IntN(len(running))
				who := running[i]
				running = slices.Delete(running, i, i+1)
				slots.Give(who)
			}
		case 2:
			if len(waiting) > 20 {
				i := random.IntN(len(waiting))
				if !slots.leave(waiting[i]) {
					t.Fatal("what waits could not leave")
				}
				waiting = slices.Delete(waiting, i, i+1)
			}
		}
		if len(running) > 3 || slots.free != 3-len(running) || slots.free > 0 && len(waiting) > 0 {
			t.Fatalf("%d run, %d wait, and %d slots are free", len(running), len(waiting), slots.free)
		}
	}
	for len(running) > 0 {
		who := running[0]
		running = running[1:]
		slots.Give(who)
	}
	nowNs += int64(time.Hour)
	slots.Take(t.Context(), Who{})
	slots.Give(Who{})
	if len(waiting) != 0 || slots.free != 3 || slots.all.hasTurns() {
		t.Errorf("%d wait, and %d slots are free", len(waiting), slots.free)
	}
}

// BenchmarkSlots is a turn of one of many that wait.
func BenchmarkSlots(b *testing.B) {
	for _, waiting := range []int{0, 1, 10_000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			slots := NewSlots(1, now)
			who := Who{Addr: "192.0.2.1", User: "default", Client: 1}
			slots.Take(context.Background(), who)
			for i := range waiting {
				slots.enter(&turn{who: Who{Addr: "192.0.2.1", User: "default", Client: int64(i + 2)}, begin: func() bool { return true }})
			}
			for b.Loop() {
				next := &turn{who: who, begin: func() bool { return true }}
				slots.enter(next)
				slots.Give(who)
			}
		})
	}
}
