package transact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
)

// distant is a store a round trip away, of which it counts the reads and writes.
type distant struct {
	*storetest.RemoteStore
	roundTrip time.Duration
	most      int // keys of a transaction; 0 for any number

	mu     sync.Mutex
	reads  [][]string // keys of each
	before func()     // called once, before the next write
}

func newDistant(on *storetest.RemoteStore, roundTrip time.Duration) *distant {
	return &distant{RemoteStore: on, roundTrip: roundTrip}
}

func (d *distant) Begin(ctx context.Context, nowNs int64, keys []store.Key) (store.RemoteTransaction, error) {
	var names []string
	for _, k := range keys {
		if name := string(k.Name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	d.mu.Lock()
	d.reads = append(d.reads, names)
	d.mu.Unlock()
	if d.most > 0 && len(names) > d.most {
		return nil, store.ErrTooLarge
	}
	if err := d.travel(ctx, "nothing was charged"); err != nil {
		return nil, err
	}
	tx, err := d.RemoteStore.Begin(context.WithoutCancel(ctx), nowNs, keys)
	if err != nil {
		return nil, err
	}
	return distantTx{tx, d}, d.travel(ctx, "nothing was charged")
}

// travel takes half of a round trip.
func (d *distant) travel(ctx context.Context, charged string) error {
	select {
	case <-time.After(d.roundTrip / 2):
		return nil
	case <-ctx.Done():
		return store.Failure{Line: "STOREDOWN it was given up; " + charged}
	}
}

func (d *distant) readKeys() (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, names := range d.reads {
		all = append(all, strings.Join(names, ","))
	}
	return all
}

// beforeWrite has something done while the next write is under way.
func (d *distant) beforeWrite(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = do
}

type distantTx struct {
	store.RemoteTransaction
	of *distant
}

func (t distantTx) Commit(ctx context.Context) (done bool, err error) {
	if err := t.of.travel(ctx, "it may have been charged"); err != nil {
		return false, err
	}
	t.of.mu.Lock()
	before := t.of.before
	t.of.before = nil
	t.of.mu.Unlock()
	if before != nil {
		before()
	}
	if done, err = t.RemoteTransaction.Commit(context.WithoutCancel(ctx)); err != nil {
		return false, err
	}
	if err := t.of.travel(ctx, "it may have been charged"); err != nil {
		return false, err
	}
	return done, nil
}

func now() int64 { return time.Now().UnixNano() }

func keysOf(names string) (keys []store.Key) {
	for name := range strings.SplitSeq(names, ",") {
		keys = append(keys, store.Key{Name: []byte(name)})
	}
	return keys
}

func limitOf(capacity int64) limiter.Rule {
	l, err := funnel.NewLimit(funnel.Capacity, capacity, 1, 3600)
	if err != nil {
		panic(err)
	}
	return limiter.OfFunnel(l)
}

// taker is a caller that takes a unit of each of its keys, of which some are full.
type taker struct {
	names string
	rule  limiter.Rule
	turns int  // taken
	taken bool // by the last
	err   error
}

func (k *taker) part() Part {
	return Part{Keys: keysOf(k.names), Do: func(in *Space) Verdict {
		k.turns++
		k.taken = true
		for _, key := range keysOf(k.names) {
			q := []store.Request{{Key: key, Rule: k.rule, Quantity: 1}}
			in.Keys.Throttle(in.NowNs, q)
			if q[0].Err != nil || q[0].Result.Limited {
				k.taken = false
				return Drop
			}
		}
		return Keep
	}}
}

func (k *taker) run(ctx context.Context, r *Remote) { k.err = r.Transact(ctx, k.part()) }

// left returns the units that a key has left.
func left(t *testing.T, d *distant, name string, rule limiter.Rule) int64 {
	t.Helper()
	tx, err := d.RemoteStore.Begin(t.Context(), now(), keysOf(name))
	if err != nil {
		t.Fatal(err)
	}
	defer tx.(interface{ Rollback() }).Rollback()
	q := []store.Request{{Key: keysOf(name)[0], Rule: rule}}
	if tx.Throttle(now(), q); q[0].Err != nil {
		t.Fatal(q[0].Err)
	}
	return q[0].Result.Remaining
}

// inBubble runs a test at its own time, with a Remote a round trip of 2 ms away.
func inBubble(t *testing.T, test func(t *testing.T, d *distant, r *Remote)) {
	synctest.Test(t, func(t *testing.T) {
		d := newDistant(storetest.NewRemote(shard.New()), 2*time.Millisecond)
		test(t, d, NewRemote(d, 0, now))
	})
}

// TestWhoWaitsIsJoined: callers that wait for a key, and share keys directly or by others, are one
// transaction, decided in the order of their arrival; others run beside it, and nobody is overtaken.
func TestWhoWaitsIsJoined(t *testing.T) {
	inBubble(t, func(t *testing.T, d *distant, r *Remote) {
		var wg sync.WaitGroup
		for i, names := range []string{"a", "a,b", "c,d", "c,f", "b,c", "e", "d,f", "f", "g,e"} {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Microsecond)
				k := &taker{names: names, rule: limitOf(99)}
				if k.run(t.Context(), r); k.err != nil || k.turns != 1 {
					t.Errorf("%+v", k)
				}
			})
		}
		wg.Wait()
		// a, c,d and e begin at once. When a ends, a,b does. c,f waits for c,d, and b,c for both, though c is
		// free before b.
		got := d.readKeys()
		want := []string{"a", "c,d", "e", "a,b", "c,f,d", "g,e", "b,c"}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("transactions on %q, want %q", got, want)
		}
	})
}

// TestTakenIsWhatThereIs: whoever is joined, together no more is taken than there is, and nothing is lost.
func TestTakenIsWhatThereIs(t *testing.T) {
	inBubble(t, func(t *testing.T, d *distant, r *Remote) {
		const callers, capacity = 300, 120
		all := make([]taker, callers)
		var wg sync.WaitGroup
		for i := range all {
			all[i] = taker{names: fmt.Sprintf("own%d,org", i), rule: limitOf(capacity)}
			wg.Go(func() { all[i].run(t.Context(), r) })
		}
		wg.Wait()
		taken := int64(0)
		for i := range all {
			if all[i].err != nil {
				t.Fatal(all[i].err)
			}
			own := left(t, d, fmt.Sprintf("own%d", i), limitOf(capacity))
			if all[i].taken {
				taken++
			}
			if (own < capacity) != all[i].taken {
				t.Errorf("caller %d: taken is %t, and its own key has %d", i, all[i].taken, own)
			}
		}
		if n := len(d.readKeys()); taken != capacity || n > 1+(callers+mostMembers-1)/mostMembers {
			t.Errorf("%d of %d were taken, by %d transactions", taken, capacity, n)
		}
	})
}

// joined has callers wait for one that holds the key a, and returns when all have their outcome.
func joined(t *testing.T, r *Remote, callers ...func(ctx context.Context, r *Remote)) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() { (&taker{names: "a", rule: limitOf(100)}).run(t.Context(), r) })
	synctest.Wait()
	for _, call := range callers {
		wg.Go(func() { call(t.Context(), r) })
		synctest.Wait()
	}
	wg.Wait()
}

// TestOneLeavesTheOthers: what one of several drops, by an error or a panic, is undone for it alone.
func TestOneLeavesTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, d *distant, r *Remote) {
		rule := limitOf(100)
		first, third, full := &taker{names: "x,a", rule: rule}, &taker{names: "a,z", rule: rule}, &taker{names: "y,a", rule: limitOf(1)}
		joined(t, r, first.run, full.run, func(ctx context.Context, r *Remote) {
			defer func() {
				if v := recover(); v != "it broke" {
					t.Errorf("it has panicked with %v", v)
				}
			}()
			_ = r.Transact(ctx, Part{Keys: keysOf("a"), Do: func(in *Space) Verdict {
				in.Keys.Throttle(in.NowNs, []store.Request{{Key: keysOf("a")[0], Rule: rule, Quantity: 50}})
				panic("it broke")
			}})
		}, third.run)
		if first.err != nil || full.err != nil || third.err != nil || !first.taken || full.taken || !third.taken {
			t.Errorf("%+v\n%+v\n%+v", first, full, third)
		}
		for name, want := range map[string]int64{"a": 97, "x": 99, "y": 100, "z": 99} {
			if got := left(t, d, name, rule); got != want {
				t.Errorf("%s has %d left, want %d", name, got, want)
			}
		}
		if got := d.readKeys(); !slices.Equal(got, []string{"a", "x,a,y,z"}) {
			t.Errorf("transactions on %q", got)
		}
	})
}

// TestJointAfterConflict: after a write of another cellserver all are decided again, from the present states.
func TestJointAfterConflict(t *testing.T) {
	inBubble(t, func(t *testing.T, d *distant, r *Remote) {
		rule := limitOf(10)
		all := make([]*taker, 8)
		calls := make([]func(context.Context, *Remote), len(all))
		for i := range all {
			all[i] = &taker{names: "a", rule: rule}
			calls[i] = all[i].run
		}
		calls[0] = func(ctx context.Context, r *Remote) {
			d.beforeWrite(func() {
				d.beforeWrite(func() { // of the joint
					o := store.Request{Rule: rule, Quantity: 4}
					if err := d.Apply(now(), keysOf("a")[0], &o); err != nil || o.Result.Limited {
						t.Errorf("%+v, %v", o.Result, err)
					}
				})
			})
			all[0].run(ctx, r)
		}
		joined(t, r, calls...)
		taken := 0
		for i, k := range all {
			if k.turns != 2 || k.err != nil || k.taken != (i < 5) {
				t.Errorf("caller %d: %+v", i, k)
			}
			if k.taken {
				taken++
			}
		}
		if got := left(t, d, "a", rule); got != 0 || taken != 5 {
			t.Errorf("%d have taken, and %d are left", taken, got)
		}
	})
}

// TestCrossSlotIsRefusedAlone: it joins nobody.
func TestCrossSlotIsRefusedAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, d *distant, r *Remote) {
		d.Cluster()
		bad, good := &taker{names: "a,{b}", rule: limitOf(9)}, &taker{names: "{a}x,a", rule: limitOf(9)}
		joined(t, r, bad.run, good.run)
		var f store.Failure
		if !errors.As(bad.err, &f) || f.Line != storetest.LineCrossSlot || bad.turns > 0 {
			t.Errorf("across slots: %+v", bad)
		}
		if good.err != nil || !good.taken {
			t.Errorf("in one: %+v", good)
		}
	})
}

// TestTooLargeTogether: calls with too many bytes together are decided one by one, each with its outcome.
func TestTooLargeTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, d *distant, r *Remote) {
		d.most = 3
		rule := limitOf(9)
		one, two, never := &taker{names: "a,b", rule: rule}, &taker{names: "a,c", rule: rule}, &taker{names: "a,b,c,d", rule: rule}
		joined(t, r, one.run, two.run, never.run)
		if one.err != nil || two.err != nil || !one.taken || !two.taken || !errors.Is(never.err, store.ErrTooLarge) {
			t.Errorf("%+v\n%+v\n%+v", one, two, never)
		}
		if got, want := d.readKeys(), []string{"a", "a,b,c,d", "a,b", "a,c", "a,b,c,d"}; !slices.Equal(got, want) {
			t.Errorf("transactions on %q, want %q", got, want)
		}
	})
	inBubble(t, func(t *testing.T, d *distant, r *Remote) { // it notices by itself
		shared := 0
		full := func(ctx context.Context, r *Remote) {
			if err := r.Transact(ctx, Part{Keys: keysOf("a"), Do: func(in *Space) Verdict {
				in.Keys.Throttle(in.NowNs, []store.Request{{Key: keysOf("a")[0], Rule: limitOf(100), Quantity: 10}})
				if in.Shared {
					shared++
					return Again
				}
				return Keep
			}}); err != nil {
				t.Error(err)
			}
		}
		other := &taker{names: "a", rule: limitOf(100)}
		joined(t, r, full, other.run, full)
		if got := left(t, d, "a", limitOf(100)); got != 78 || shared != 2 || !other.taken {
			t.Errorf("%d are left, after %d attempts with others; %+v", got, shared, other)
		}
	})
}

// TestAlone: a call that is Alone waits for earlier ones, later ones wait for it, and none shares its
// transaction.
func TestAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, d *distant, r *Remote) {
		alone := func(ctx context.Context, r *Remote) {
			p := (&taker{names: "a,x", rule: limitOf(99)}).part()
			p.Alone = true
			if err := r.Transact(ctx, p); err != nil {
				t.Error(err)
			}
		}
		one, two, three := &taker{names: "a,b", rule: limitOf(99)}, &taker{names: "a,c", rule: limitOf(99)}, &taker{names: "a,d", rule: limitOf(99)}
		joined(t, r, one.run, two.run, alone, three.run)
		if got, want := d.readKeys(), []string{"a", "a,b,c", "a,x", "a,d"}; !slices.Equal(got, want) {
			t.Errorf("transactions on %q, want %q", got, want)
		}
	})
}

// TestEachHasItsOwnTime: a caller whose time is over, or whose client goes, gets an error that says what is
// known, and the others their outcome.
func TestEachHasItsOwnTime(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration // its timeout, half of its time; the first takes 4 ms, as does the joint
		gone  bool          // its client is, then; else its time is over
		want  string
		takes int64 // of a, with the first and the others
	}{
		{"over as it waits", 1 * time.Millisecond, false, string(reply.ErrContended), 3},
		{"over during the read", 2500 * time.Microsecond, false, "STOREDOWN no answer within 50ms; nothing was charged", 3},
		{"over during the write", 3500 * time.Microsecond, false, "STOREDOWN no answer within 50ms; it may have been charged", 4},
		{"gone as it waits", 1 * time.Millisecond, true, string(reply.ErrEnded), 3},
		{"gone during the read", 5 * time.Millisecond, true, string(reply.ErrEnded), 3},
		{"gone during the write", 7 * time.Millisecond, true, "STOREDOWN no answer within 50ms; it may have been charged", 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, d *distant, r *Remote) {
				rule := limitOf(100)
				one, it, two := &taker{names: "a", rule: rule}, &taker{names: "a", rule: rule}, &taker{names: "a", rule: rule}
				joined(t, r, one.run, func(ctx context.Context, r *Remote) {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					if !tt.gone {
						earlier := *r // with the same line
						earlier.timeout = tt.after
						err := earlier.Transact(ctx, it.part())
						it.err = errors.New(strings.ReplaceAll(err.Error(), tt.after.String(), "50ms"))
						return
					}
					time.AfterFunc(tt.after, cancel)
					it.run(ctx, r)
				}, two.run)
				if it.err == nil || it.err.Error() != tt.want {
					t.Errorf("got %v, want %s", it.err, tt.want)
				}
				if one.err != nil || two.err != nil || !one.taken || !two.taken {
					t.Errorf("the others: %+v, %+v", one, two)
				}
				if got := 100 - left(t, d, "a", rule); got != tt.takes {
					t.Errorf("%d were taken, want %d", got, tt.takes)
				}
			})
		})
	}
}

// TestTurnsHaveTheirTime: a call that has waited for earlier ones has the whole timeout once its turn begins.
func TestTurnsHaveTheirTime(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *distant, r *Remote) {
		rule := limitOf(100)
		one, it := &taker{names: "a", rule: rule}, &taker{names: "a", rule: rule}
		joined(t, r, one.run, func(ctx context.Context, r *Remote) {
			earlier := *r
			earlier.timeout = 5 * time.Millisecond // 4 of the first, 4 of its own
			it.err = earlier.Transact(ctx, it.part())
		})
		if it.err != nil || !it.taken {
			t.Errorf("got %+v", it)
		}
	})
}

// TestStoreDoesNotAnswer: all callers get their errors in their time, with the store's own for the last, and
// nothing is left.
func TestStoreDoesNotAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, d *distant, r *Remote) {
		d.roundTrip = time.Hour
		began := time.Now()
		a, b, c := &taker{names: "a"}, &taker{names: "a"}, &taker{names: "a"}
		var wg sync.WaitGroup
		for i, k := range []*taker{a, b, c} {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				k.run(t.Context(), r)
			})
		}
		wg.Wait()
		if took := time.Since(began); took != 2*DefaultStoreTimeout { // of the first, and of those who have waited for it
			t.Errorf("it took %s", took)
		}
		if fmt.Sprint(a.err) != "STOREDOWN it was given up; nothing was charged" || !errors.Is(b.err, reply.ErrContended) && !strings.HasPrefix(fmt.Sprint(b.err), "STOREDOWN ") {
			t.Errorf("%v, %v, %v", a.err, b.err, c.err)
		}
		d.roundTrip = 0
		again := &taker{names: "a", rule: limitOf(9)}
		if again.run(t.Context(), r); again.err != nil || !again.taken {
			t.Errorf("later: %+v", again)
		}
		r.line.mu.Lock()
		defer r.line.mu.Unlock()
		if len(r.line.busy)+len(r.line.awaited)+len(r.line.waiting) > 0 {
			t.Errorf("left: %+v", r.line)
		}
	})
}

// TestShutdown: when all clients are ended, no goroutine remains.
func TestShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, d *distant, r *Remote) {
		d.roundTrip = time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				k := &taker{names: fmt.Sprintf("a%d,b", i%3)}
				if k.run(ctx, r); k.err == nil {
					t.Error("it was done")
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
	})
}

// TestTwoServersOnOneKey: 200 streams through each of two cellservers, all on one key of a store a
// millisecond away, wait neither too long for each other nor for the other cellserver.
func TestTwoServersOnOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams, calls, slots = 200, 10, 64
		on := storetest.NewRemote(shard.New())
		rule := limitOf(2 * streams * calls)
		var wg sync.WaitGroup
		var stores []*distant
		for n := range 2 {
			d := newDistant(on, 2*time.Millisecond)
			stores = append(stores, d)
			r := NewRemote(d, 0, now)
			free := make(chan struct{}, slots) // as execute.Remote has
			for i := range streams {
				wg.Go(func() {
					for range calls {
						k := &taker{names: fmt.Sprintf("own%d,%d,org", n, i), rule: rule}
						free <- struct{}{}
						k.run(t.Context(), r)
						<-free
						if k.err != nil || !k.taken {
							t.Errorf("%+v", k)
						}
					}
				})
			}
		}
		wg.Wait()
		if got := left(t, stores[0], "org", rule); got != 0 {
			t.Errorf("%d are left", got)
		}
		t.Logf("%d and %d transactions", len(stores[0].readKeys()), len(stores[1].readKeys()))
	})
}
