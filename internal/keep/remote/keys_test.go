package remote

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/limiter/window"
	"cellserver/internal/store"
	"cellserver/internal/test/redistest"
)

func named(name string) store.Key { return store.Key{Name: []byte(name)} }

// wantAbout compares times to within ten minutes, for busy machines.
func wantAbout(t *testing.T, what string, gotNs, wantNs int64) {
	t.Helper()
	if gotNs < wantNs-600*sec || gotNs > wantNs+600*sec {
		t.Errorf("%s is %d ns off", what, gotNs-wantNs)
	}
}

// TestTimesAreTheCallers: with a clock years behind the server's, all times are the caller's.
func TestTimesAreTheCallers(t *testing.T) {
	s, p := onServer(t, Config{KeyPrefix: "p:"})
	const hour = 3600 * sec
	for i, want := range someStates(t) {
		if want.Kind != limiter.Bucket {
			limiter.Shift(&want, hour)
		}
		k := named(strconv.Itoa(i))
		if _, found, err := store.SetIf(s, t0, k, want, store.Always); found || err != nil {
			t.Fatalf("%v: found %v, %v", want.Kind, found, err)
		}
		got, ok, err := s.State(t0, k)
		if !ok || err != nil || got.Kind != want.Kind || len(got.Payload) != len(want.Payload) {
			t.Fatalf("%v: %+v, %v, %v", want.Kind, got, ok, err)
		}
		if want.ExpiresNs != limiter.NeverNs {
			wantAbout(t, want.Kind.String(), got.ExpiresNs, want.ExpiresNs)
			ttl := p.Client().PTTL(t.Context(), "p:"+string(k.Name)).Val()
			wantAbout(t, "the server's time to live", int64(ttl), want.ExpiresNs-t0)
		} else if got.ExpiresNs != limiter.NeverNs {
			t.Errorf("a bucket expires at %d", got.ExpiresNs)
		}
	}
	fill := limiter.Operation{Verb: limiter.Fill, Max: 5}
	expire := limiter.Operation{Verb: limiter.Expire, AtNs: t0 + hour}
	for _, o := range []*limiter.Operation{&fill, &expire} {
		if err := s.Apply(t0, named("bucket"), o); err != nil {
			t.Fatal(err)
		}
	}
	if expire.AtNs != t0+hour {
		t.Errorf("an operation's time was changed by %d ns", expire.AtNs-t0-hour)
	}
	e, _, _ := s.Entry(t0, named("bucket"))
	wantAbout(t, "what EXPIRE has set", e.ExpiresNs, t0+hour)
	never := limiter.Operation{Verb: limiter.Expire, AtNs: limiter.NeverNs}
	if err := s.Apply(t0, named("bucket"), &never); err != nil || p.Client().PTTL(t.Context(), "p:bucket").Val() != -1 {
		t.Errorf("it expires still: %v", err)
	}
	if q := decide(s, t0, ask("funnel", mustLimit(t, 0, 1, 3600), 1)); q[0].Err != nil {
		t.Fatal(q[0].Err)
	}
	look := limiter.Operation{Verb: limiter.Look}
	if err := s.Apply(t0, named("funnel"), &look); err != nil || look.Count != 1 {
		t.Fatalf("%+v, %v", look, err)
	}
	wantAbout(t, "a TAT", look.AtNs, t0+hour)
}

// TestForeignKeysStay: every operation refuses foreign keys and leaves them.
func TestForeignKeysStay(t *testing.T) {
	s, p := onServer(t, Config{})
	c := p.Client()
	ctx := t.Context()
	c.Set(ctx, "text", "hello", 0)
	c.Set(ctx, "empty", "", 0)
	c.Set(ctx, "almost", "cl1:xyz", 0)
	c.HSet(ctx, "hash", "a", "b")
	c.RPush(ctx, "list", "a")
	c.Set(ctx, "large", fmt.Sprintf("%02000000d", 7), 0)
	fixed := store.Request{Rule: limiter.Rule{Kind: limiter.FixedWindow, Packed: mustWindow(t, 5, 60).Packed()}, Quantity: 1}
	for _, name := range []string{"text", "empty", "almost", "hash", "list", "large"} {
		k, before := named(name), c.Dump(ctx, name).Val()
		o := limiter.Operation{Verb: limiter.Acquire, Max: 1, ID: 1, TTLNs: sec}
		look := limiter.Operation{Verb: limiter.Look}
		_, _, entryErr := s.Entry(t0, k)
		_, _, setErr := store.SetIf(s, t0, k, limiter.State{ExpiresNs: t0 + sec}, store.Always)
		fixed.Key = k
		errs := map[string]error{
			"Acquire": s.Apply(t0, k, &o), "Look": s.Apply(t0, k, &look), "Entry": entryErr, "SetIf": setErr,
			"a window": decide(s, t0, fixed)[0].Err, "a funnel": decide(s, t0, ask(name, mustLimit(t, 5, 1, 1), 1))[0].Err,
		}
		if name != "almost" { // which begins like ours, so its owner may delete it
			_, errs["Delete"] = s.Delete(t0, []store.Key{named("absent"), k})
		}
		for what, err := range errs {
			if !errors.Is(err, limiter.ErrWrongType) {
				t.Errorf("%s on %s: %v", what, name, err)
			}
		}
		if after := c.Dump(ctx, name).Val(); after != before {
			t.Errorf("%s was changed", name)
		}
	}
}

// TestDeleteLeavesCounters: a decimal number that is not a later TAT may be a counter, and counts as absent.
func TestDeleteLeavesCounters(t *testing.T) {
	s, p := onServer(t, Config{})
	ctx := t.Context()
	p.Client().Set(ctx, "counter", 42, 0)
	decide(s, t0, ask("funnel", mustLimit(t, 5, 1, 60), 1))
	n, err := s.Delete(t0, []store.Key{named("counter"), named("funnel"), named("absent"), named("funnel")})
	if n != 1 || err != nil || p.Client().Get(ctx, "counter").Val() != "42" || p.Client().Exists(ctx, "funnel").Val() != 0 {
		t.Fatalf("%d were deleted, %v", n, err)
	}
}

// TestDeleteOnACluster deletes keys of many slots.
func TestDeleteOnACluster(t *testing.T) {
	s := onPool(t, Config{}, redistest.Cluster(t).URL()) // the slots are still unknown
	var keys []store.Key
	for i := range 50 {
		keys = append(keys, named(strconv.Itoa(i)))
		o := limiter.Operation{Verb: limiter.Fill, Max: 5}
		if err := s.Apply(t0, keys[i], &o); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Delete(t0, keys); n != len(keys) || err != nil {
		t.Fatalf("%d of %d were deleted, %v", n, len(keys), err)
	}
	if n, err := s.Size(t.Context()); n != 0 || err != nil {
		t.Fatalf("%d keys, %v", n, err)
	}
	_, err := s.Begin(t.Context(), t0, keys)
	if !errors.Is(err, errCrossSlot) {
		t.Errorf("keys of many slots: %v", err)
	}
	if _, err = s.Scan(t.Context(), t0, 0, 10, func(store.Key, store.Entry) {}); !errors.Is(err, errScansOne) {
		t.Errorf("a cluster is scanned: %v", err)
	}
}

// TestScanOfASharedServer visits only our keys below the prefix.
func TestScanOfASharedServer(t *testing.T) {
	s, p := onServer(t, Config{KeyPrefix: "a*[b]\\^:"})
	ctx := t.Context()
	for name, value := range map[string]string{"a*[b]\\^:text": "hello", "a*[b]\\^:counter": "42", "axx[b]\\^:1": strconv.FormatInt(1<<62, 10), "other": "x",
		"a*b\\^:2": strconv.FormatInt(1<<62, 10)} {
		p.Client().Set(ctx, name, value, 0)
	}
	p.Client().HSet(ctx, "a*[b]\\^:hash", "a", "b")
	want, met := map[string]store.Entry{}, map[string]limiter.Kind{}
	for i, st := range someStates(t) {
		name := fmt.Sprintf("key%d", i)
		limiter.Shift(&st, 3600*sec)
		if _, _, err := store.SetIf(s, t0, named(name), st, store.Always); err != nil {
			t.Fatal(err)
		}
		want[name] = store.Entry{Kind: st.Kind, ExpiresNs: st.ExpiresNs}
	}
	cursor := uint64(0)
	for first := true; first || cursor != 0; first = false {
		var err error
		cursor, err = s.Scan(ctx, t0, cursor, 3, func(k store.Key, e store.Entry) {
			name := string(k.Name)
			if met[name] = e.Kind; e.Kind != want[name].Kind {
				t.Errorf("%q is %+v, want %+v", name, e, want[name])
			}
			if e.ExpiresNs != limiter.NeverNs {
				wantAbout(t, name, e.ExpiresNs, want[name].ExpiresNs)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(met) != len(want) {
		t.Errorf("met %v, want %v", met, want)
	}
	if n, err := s.Size(ctx); n != len(want)+6 || err != nil {
		t.Errorf("%d keys, %v", n, err)
	}
}

// TestTooFastForTheirClocks: intervals below the servers' resolution are an error for every funnel.
func TestTooFastForTheirClocks(t *testing.T) {
	s, _ := onServer(t, Config{})
	fast := mustLimit(t, 5, 2_000_000, 1)
	rule := limitertest.Named(limiter.PlainRule(fast, sec))
	o := limiter.Operation{Verb: limiter.Wait, Funnel: fast, Quantity: 1}
	tx := begun(t, s, named("k"))
	inTx := []store.Request{ask("k", fast, 1)}
	tx.Throttle(t0, inTx)
	for i, err := range []error{decide(s, t0, store.Request{Key: named("k"), Rule: rule, Quantity: 1})[0].Err, s.Apply(t0, named("k"), &o), inTx[0].Err} {
		if !errors.Is(err, errTooFast) {
			t.Errorf("case %d: %v", i, err)
		}
	}
}

// TestManyStoresOnOneKey: many callers of several stores lose and repeat nothing.
func TestManyStoresOnOneKey(t *testing.T) {
	first, p := onServer(t, Config{})
	stores := []*Store{first, onPool(t, Config{}, "redis://"+p.Addr), onPool(t, Config{}, "redis://"+p.Addr)}
	const callers, each = 8, 20
	requests := map[string]limiter.Rule{
		"fixed": {Kind: limiter.FixedWindow, Packed: mustWindow(t, 300, 3600).Packed()}, "sliding": {Kind: limiter.SlidingWindow, Packed: mustWindow(t, 300, 3600).Packed()},
		"approx": {Kind: limiter.ApproxWindow, Packed: mustWindow(t, 300, 3600).Packed()}, "bucket": {Kind: limiter.Bucket, Packed: limiter.Packed{300}},
	}
	fill := limiter.Operation{Verb: limiter.Fill, Max: 300}
	if err := first.Apply(t0, named("bucket"), &fill); err != nil {
		t.Fatal(err)
	}
	allowed := map[string]*atomic.Int64{}
	for name := range requests {
		allowed[name] = new(atomic.Int64)
	}
	var holders atomic.Int64
	var wg sync.WaitGroup
	for i, s := range stores {
		for c := range callers {
			wg.Go(func() {
				for n := range each {
					for name, rule := range requests {
						q := decide(s, t0, store.Request{Key: named(name), Rule: rule, Quantity: 1})[0]
						if q.Err != nil {
							t.Errorf("%s: %v", name, q.Err)
						} else if !q.Result.Limited {
							allowed[name].Add(1)
						}
					}
					o := limiter.Operation{Verb: limiter.Acquire, Max: 300, ID: uint64(i*callers*each + c*each + n), TTLNs: 3600 * sec}
					if err := s.Apply(t0, named("holders"), &o); err != nil {
						t.Error(err)
					} else if !o.Result.Limited {
						holders.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	for name, n := range allowed {
		if n.Load() != 300 {
			t.Errorf("%s: %d were allowed, of 300", name, n.Load())
		}
	}
	if holders.Load() != 300 {
		t.Errorf("%d hold a place, of 300", holders.Load())
	}
}

// TestNativeScripts compares the scripts of windows and buckets with the arithmetic, on the server's clock,
// for random requests, many at once.
func TestNativeScripts(t *testing.T) {
	s, p := onServer(t, Config{})
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		kind := []limiter.Kind{limiter.FixedWindow, limiter.Bucket}[round%2]
		k := named(kind.String() + strconv.Itoa(r.IntN(5)))
		var batch []store.Request
		for range 1 + r.IntN(20) {
			size := []int64{1, 5, 100, 1 << 40, 1 << 51}[r.IntN(5)]
			q := store.Request{Key: k, Rule: limiter.Rule{Kind: kind, Packed: mustLargeWindow(t, size).Packed()}, Quantity: r.Int64N(9) - 4}
			if kind == limiter.Bucket {
				q.Rule = limiter.Rule{Kind: kind, Packed: limiter.Packed{size}}
			}
			if q.Quantity == -4 {
				q.Quantity *= 1 << (2 * r.IntN(28))
			}
			if r.IntN(4) == 0 {
				q.Rule.Flags = limiter.CountDenied
			}
			batch = append(batch, q)
		}
		before, _, err := s.State(t0, k)
		if err != nil {
			t.Fatal(err)
		}
		got := decide(s, t0, batch...)
		after, _, _ := s.State(t0, k)
		for i := range got {
			want, _, _ := got[i].Rule.Decide(&before, t0, got[i].Quantity)
			if got[i].Err != nil || !sameButTimes(got[i].Result.Limited, want.Limited, got[i].Result.Remaining, want.Remaining) {
				t.Fatalf("round %d, %v, request %d, %d: got %+v, %v, want %+v", round, kind, i, got[i].Quantity, got[i].Result, got[i].Err, want)
			}
		}
		if live := before.ExpiresNs > t0; live != (after.ExpiresNs > t0) || live && string(before.Payload) != string(after.Payload) {
			t.Fatalf("round %d, %v: %+v, want %+v", round, kind, after, before)
		}
		if after.ExpiresNs > t0 && kind == limiter.FixedWindow {
			wantAbout(t, "the window's end", after.ExpiresNs, t0+3600*sec)
			wantAbout(t, "its key's", int64(p.Client().PTTL(t.Context(), string(k.Name)).Val()), 3600*sec)
		}
	}
	if st := s.Stats(); st.Scripts > 300*3 {
		t.Errorf("%d scripts", st.Scripts)
	}
}

func sameButTimes(limited, wantLimited bool, remaining, want int64) bool {
	return limited == wantLimited && remaining == want
}

func mustLargeWindow(t *testing.T, maxCount int64) window.Limit {
	t.Helper()
	l, err := window.NewLimit(funnel.Seconds, maxCount, 3600)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
