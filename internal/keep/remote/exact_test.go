package remote

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/engine"
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/limiter/reserve"
	"cellserver/internal/limiter/window"
	"cellserver/internal/store"
	"cellserver/internal/test/redistest"
)

// told keeps the server's time in its last reply: the time at which it executed the call.
type told struct {
	mu   sync.Mutex // guards all below
	atNs int64
}

func (p *told) note(calls []*servers.Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range calls {
		if _, atNs, err := script.ReplyOf(c.Reply); err == nil && c.Err == nil {
			p.atNs = atNs
		}
	}
}

func (p *told) lastNs() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.atNs
}

// exactCase exercises a key of a swapped kind.
type exactCase struct {
	kind limiter.Kind
	name string
	step func(i uint64) store.Step
	// leaves is for payloads in which units that have left may stay.
	leaves bool
}

const exactUnits, exactPeriodMs, exactBlockNs, exactLate = 3, 210, 150_000_000, 15 * time.Millisecond

// exactCases has all kinds that swaps decide.
func exactCases(t *testing.T, periodMs int64) []exactCase {
	t.Helper()
	const units = exactUnits
	l, err := funnel.NewLimitIn(funnel.Milliseconds, funnel.Capacity, units, units, periodMs)
	if err != nil {
		t.Fatal(err)
	}
	one, err := funnel.NewLimitIn(funnel.Milliseconds, funnel.Capacity, 1, 1, periodMs/units)
	if err != nil {
		t.Fatal(err)
	}
	windowOf := func(maxCount int64) window.Limit {
		w, err := window.NewLimit(funnel.Milliseconds, maxCount, periodMs)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	request := func(r limiter.Rule, quantity int64) func(uint64) store.Step {
		r.Unit = funnel.Milliseconds
		return func(uint64) store.Step { return &store.Request{Rule: r, Quantity: quantity} }
	}
	operation := func(of func(i uint64) limiter.Operation) func(uint64) store.Step {
		return func(i uint64) store.Step {
			o := of(i)
			o.Unit = funnel.Milliseconds
			return &o
		}
	}
	named := func(l funnel.Limit) limiter.Rule {
		return inMs(limiter.PlainRule(l, periodMs*1e6))
	}
	cases := []exactCase{
		{kind: limiter.SlidingWindow, name: "sliding",
			step: request(limiter.Rule{Kind: limiter.SlidingWindow, Packed: windowOf(units).Packed()}, 1)},
		{kind: limiter.SlidingWindow, name: "of one",
			step: request(limiter.Rule{Kind: limiter.SlidingWindow, Packed: windowOf(1).Packed()}, 1)},
		{kind: limiter.ApproxWindow, name: "approx",
			step: request(limiter.Rule{Kind: limiter.ApproxWindow, Packed: windowOf(units).Packed()}, 1)},
		{kind: limiter.FixedWindow, name: "large",
			step: request(limiter.Rule{Kind: limiter.FixedWindow, Packed: windowOf(units * script.NativeMost).Packed()}, script.NativeMost)},
		{kind: limiter.Named, name: "named", step: request(named(l), 1)},
		{kind: limiter.Named, name: "of one unit", step: request(named(one), 1)},
		{kind: limiter.Named, name: "that blocks", step: request(inMs(limiter.PlainRule(l, periodMs*1e6).Blocking(exactBlockNs, false, "first")), 1)},
		{kind: limiter.Named, name: "that blocks anew", step: request(inMs(limiter.PlainRule(l, periodMs*1e6).Blocking(exactBlockNs, true, "each"),
			limiter.OtherRule(limiter.Rule{Kind: limiter.FixedWindow, Packed: windowOf(units * 1000).Packed()}, "window")), 1)},
		{kind: limiter.Named, name: "of an exact window, too", leaves: true, step: request(inMs(limiter.PlainRule(l, periodMs*1e6),
			limiter.OtherRule(limiter.Rule{Kind: limiter.SlidingWindow, Packed: windowOf(units).Packed()}, "window")), 1)},
		{kind: limiter.Named, name: "of two quotas", step: request(inMs(
			limiter.OtherRule(quotaOf(units*1000, 10_000*time.Hour), "long"), limiter.OtherRule(quotaOf(units, time.Duration(max(periodMs, 1000))*time.Millisecond), "short")), 1)},
		{kind: limiter.Concurrency, name: "places", step: operation(func(i uint64) limiter.Operation {
			return limiter.Operation{Verb: limiter.Acquire, Max: units, ID: i, TTLNs: periodMs * 1e6}
		})},
		{kind: limiter.Funnel, name: "turns", step: operation(func(i uint64) limiter.Operation {
			return limiter.Operation{Verb: limiter.Wait, Funnel: l, Quantity: 1, TTLNs: int64(i%2) * 20e6}
		})},
		{kind: limiter.Reserving, name: "reserve", step: operation(func(i uint64) limiter.Operation {
			if i%4 == 3 {
				return limiter.Operation{Verb: limiter.Commit, ID: i - 1, Quantity: int64(i % 3)}
			}
			return limiter.Operation{Verb: limiter.Reserve, Funnel: l, Quantity: 1, ID: i, TTLNs: periodMs * 1e6 / 2}
		})},
	}
	for kind := limiter.Named + 1; kind < limiter.Kinds; kind++ {
		if notSwapped(kind) {
			continue
		}
		r, err := limitertest.RuleIn(funnel.Milliseconds, kind, units, units, periodMs)
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, exactCase{kind: kind, name: kind.String(), step: request(r, 1)})
	}
	return cases
}

// inMs returns the rule of a named limit with times in milliseconds.
func inMs(rules ...limiter.NamedRule) limiter.Rule {
	for i := range rules {
		rules[i].Rule.Unit = funnel.Milliseconds
	}
	return limitertest.Named(rules...)
}

// quotaOf returns the rule of a quota.
func quotaOf(maxCount int64, period time.Duration) limiter.Rule {
	return limiter.Rule{Kind: limiter.Quota, Packed: limiter.Packed{maxCount}, Shared: limitertest.Calendar(period)}
}

// notSwapped reports kinds without a decision by time.
func notSwapped(kind limiter.Kind) bool { return kind == limiter.Bucket || kind == limiter.Value }

// TestExactWhereRepliesAreLate: two cellservers share a server whose every other reply is late. Each swapped
// kind is decided at the time at which the server executes the swap. A limited call is allowed once its time
// to retry is over.
func TestExactWhereRepliesAreLate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	cases := exactCases(t, exactPeriodMs)
	for kind := range limiter.Kinds {
		seen := notSwapped(kind)
		for _, c := range cases {
			seen = seen || c.kind == kind
		}
		if !seen {
			t.Errorf("nothing is known of kind %v", kind)
		}
	}
	p := redistest.Server(t)
	for _, c := range cases {
		for _, inTransactions := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in transactions %t", c.name, inTransactions), func(t *testing.T) {
				t.Parallel()
				proxy := redistest.NewProxy(t, p.Addr)
				proxy.LateByTurns(exactLate)
				e := exact{
					t: t, exactCase: c, key: named(t.Name()), redis: p.Client(), inTransactions: inTransactions,
				}
				for range 2 {
					s := onPool(t, Config{}, "redis://"+proxy.Addr)
					pool := &told{}
					s.noteTo(pool.note)
					e.stores, e.pools = append(e.stores, s), append(e.pools, pool)
				}
				e.run()
			})
		}
	}
}

// TestAnEmptyLimitAllowsAllOfItsUnits at once, whose number falls by one a call, where replies are late.
func TestAnEmptyLimitAllowsAllOfItsUnits(t *testing.T) {
	const neverMs = 1000 * 3600 * 1000
	p := redistest.Server(t)
	proxy := redistest.NewProxy(t, p.Addr)
	proxy.LateByTurns(exactLate)
	s := onPool(t, Config{}, "redis://"+proxy.Addr)
	for _, c := range exactCases(t, neverMs) {
		for _, inTransactions := range []bool{false, true} {
			e := exact{t: t, exactCase: c, key: named(fmt.Sprintf("%s %t", c.name, inTransactions)), inTransactions: inTransactions}
			for i, calls := uint64(4), int64(1); calls <= exactUnits+1; i++ {
				d := c.step(i)
				if !d.Outcome().Requests { // a commit
					continue
				}
				if err := e.do(s, s.Now(), d); err != nil {
					t.Fatal(err)
				}
				limit, left := unitsOf(d)
				if limited := d.Outcome().Limited; limited != (calls > limit) || left != max(0, limit-calls) {
					t.Errorf("%s, in transactions %t: call %d: limited %t, %d left", c.name, inTransactions, calls, limited, left)
				}
				calls++
			}
		}
	}
}

// unitsOf returns the limit and the remaining units of a request for one, which may be of NativeMost.
func unitsOf(d store.Step) (limit, left int64) {
	switch d := d.(type) {
	case *store.Request:
		return d.Result.Limit / d.Quantity, d.Result.Remaining / d.Quantity
	case *limiter.Operation:
		return d.Result.Limit, d.Result.Remaining
	}
	return 0, 0
}

// exact repeats a case until enough was allowed.
type exact struct {
	t *testing.T
	exactCase
	key            store.Key
	redis          *redis.Client
	inTransactions bool
	stores         []*Store
	pools          []*told
	model          limiter.State
}

func (e *exact) run() {
	allowed, limited, rested := 0, 0, false
	for i := uint64(1); allowed < 15 || limited < 3 && allowed < 300; i++ {
		o, isRequest := e.once(i)
		if !isRequest {
			continue
		}
		if !o.limited {
			allowed++
			rested = false
			continue
		}
		if rested {
			e.t.Fatalf("call %d is limited after the time to retry after", i)
		}
		if limited++; limited%3 == 0 && o.retryMs >= 0 {
			time.Sleep(time.Duration(o.retryMs) * time.Millisecond)
			rested = e.kind != limiter.Reserving // which commits in turns
		}
	}
	e.t.Logf("%d were allowed, and %d limited", allowed, limited)
}

// exactOutcome is a step's.
type exactOutcome struct {
	limited bool
	retryMs int64
}

// once takes one step and compares its outcome with a state computed at the server's times.
func (e *exact) once(i uint64) (o exactOutcome, isRequest bool) {
	e.t.Helper()
	which := int(i/3) % len(e.stores)
	s, d := e.stores[which], e.step(i)
	nowNs := s.Now()
	as, _ := d.Copy()
	if err := e.do(s, nowNs, d); err != nil {
		e.t.Fatal(err)
	}
	atNs, before := e.pools[which].lastNs(), limiter.Shifted(e.model, 0)
	if _, err := engine.Do(as, &e.model, atNs, nowNs-atNs); err != nil {
		e.t.Fatal(err)
	}
	o, isRequest = outcomeOf(d)
	want, _ := outcomeOf(as)
	if e.kind == limiter.Reserving && o.limited && !want.limited {
		e.model = before // in doubt a reservation returns a little less
		return o, isRequest
	}
	longer := o.retryMs > want.retryMs && e.kind != limiter.Reserving
	if o.limited != want.limited || !e.inTransactions && (o.retryMs < want.retryMs || longer) {
		e.t.Fatalf("call %d: %+v, want %+v by the server's time", i, o, want)
	}
	if stored := e.stored(); e.model.ExpiresNs > s.Now() && !o.limited && !e.same(&stored) {
		e.t.Fatalf("call %d at %d: the state is %+v, want %+v", i, atNs, stored, e.model)
	}
	return o, isRequest
}

// same reports whether a state is the expected one, except for expired parts.
func (e *exact) same(stored *limiter.State) bool {
	switch e.kind {
	case limiter.Concurrency, limiter.SlidingWindow:
		return stored.ExpiresNs == e.model.ExpiresNs
	case limiter.Reserving:
		nowNs := e.stores[0].Now()
		storedNs, _ := stored.TAT(nowNs)
		modelNs, _ := e.model.TAT(nowNs)
		return storedNs >= modelNs && reservationsAt(stored, nowNs) == reservationsAt(&e.model, nowNs)
	default:
		return stored.ExpiresNs == e.model.ExpiresNs && (e.leaves || bytes.Equal(stored.Payload, e.model.Payload))
	}
}

// reservationsAt returns the number of a state's reservations that have not expired.
func reservationsAt(s *limiter.State, nowNs int64) int {
	if s.Kind != limiter.Reserving {
		return 0
	}
	l, _ := reserve.Open(bytes.Clone(s.Payload))
	l.Settle(nowNs)
	return l.Len()
}

func (e *exact) do(s *Store, nowNs int64, d store.Step) error {
	if !e.inTransactions {
		return e.doTo(s, nowNs, d)
	}
	for {
		tx, err := s.Begin(e.t.Context(), nowNs, []store.Key{e.key})
		if err != nil {
			return err
		}
		as, take := d.Copy()
		err = e.doTo(tx, nowNs, as)
		if done, failed := tx.Commit(e.t.Context()); done || failed != nil {
			take()
			return errors.Join(err, failed)
		}
	}
}

func (e *exact) doTo(keys store.Keys, nowNs int64, d store.Step) error {
	q, is := d.(*store.Request)
	if !is {
		return keys.Apply(nowNs, e.key, d)
	}
	batch := []store.Request{*q}
	batch[0].Key = e.key
	if pending := keys.Throttle(nowNs, batch); pending != nil {
		batch = answersOf(pending)
	}
	q.Result = batch[0].Result
	return batch[0].Err
}

func (e *exact) stored() limiter.State {
	v, err := e.redis.Get(e.t.Context(), string(e.key.Name)).Result()
	if err != nil {
		return limiter.State{}
	}
	s, err := script.ReadValue(v)
	if err != nil {
		e.t.Fatalf("%q: %v", v, err)
	}
	return s
}

func outcomeOf(d store.Step) (o exactOutcome, isRequest bool) {
	var r funnel.Result
	switch d := d.(type) {
	case *store.Request:
		r = d.Result
	case *limiter.Operation:
		r = d.Result
	}
	return exactOutcome{r.Limited, r.RetryAfter}, d.Outcome().Requests
}
