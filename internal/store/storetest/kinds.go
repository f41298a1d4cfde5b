package storetest

import (
	"bytes"
	"errors"
	"maps"
	"runtime"
	"strconv"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/limiter/window"
	"cellserver/internal/store"
)

func kindChecks() []check {
	return []check{
		{"kinds: another kind is left as it is", checkWrongType},
		{"kinds: a payload is the caller's", checkPayloadIsOwn},
		{"kinds: one entry a key", checkOneEntry},
		{"kinds: never expires", checkNever},
		{"kinds: statistics", checkKindsStats},
		{"kinds: concurrent callers", checkKindsConcurrent},
		{"steps: statistics", checkStepsStats},
	}
}

// modelChecks compare a store with a plain map, on many funnels and on a few keys of every kind.
func modelChecks() (all []check) {
	for _, funnels := range []bool{true, false} {
		prefix := "kinds: "
		if funnels {
			prefix = ""
		}
		on := func(run func(t reporter, s store.Store, r source)) func(t reporter, s store.Store) {
			return func(t reporter, s store.Store) { run(t, s, newSource(11, funnels)) }
		}
		all = append(all, check{prefix + "a plain map", on(checkModel)},
			check{prefix + "a plain map, in transactions", on(checkModelInTransactions)},
			check{prefix + "a plain map, in an exclusive", on(checkModelInExclusive)})
	}
	return all
}

func checkModel(t reporter, s store.Store, r source) {
	m, nowNs := stateMap{}, t0
	for range 20_000 {
		nowNs += r.stepNs() / 4
		m.step(t, s, nowNs, r)
	}
	for range 1000 {
		m.want(t, s, nowNs, r.key())
	}
}

// checkModelInTransactions commits, rolls back or partly undoes transactions, beside others that may change a
// key.
func checkModelInTransactions(t reporter, s store.Store, r source) {
	m, nowNs := stateMap{}, t0
	for range 2500 {
		nowNs += r.stepNs()
		keys := []store.Key{r.key(), r.key(), r.key()}
		tx := begin(t, s, nowNs, keys...)
		if r.IntN(2) == 0 {
			tx.Release()
			if r.IntN(3) == 0 {
				m.conflict(t, s, tx, nowNs, r, keys[0])
				tx.Rollback()
				continue
			}
		}
		in := m.within(t, tx, nowNs, r, keys)
		if r.IntN(3) > 0 {
			if m = in; !tx.Commit() {
				t.Fatalf("it was not committed")
			}
		}
		tx.Rollback()
		for _, k := range keys {
			m.want(t, s, nowNs, k)
		}
	}
}

// within returns the map after some steps in a transaction; the last ones may be undone.
func (m stateMap) within(t reporter, tx store.Transaction, nowNs int64, r source, keys []store.Key) stateMap {
	t.Helper()
	in := maps.Clone(m)
	for range 1 + r.IntN(5) {
		in.step(t, tx, nowNs, r, keys...)
	}
	if r.IntN(3) == 0 {
		saved, undo := maps.Clone(in), tx.Save()
		for range 1 + r.IntN(5) {
			in.step(t, tx, nowNs, r, keys...)
		}
		undo()
		in = saved
	}
	for _, k := range keys {
		in.want(t, tx, nowNs, k)
	}
	return in
}

// conflict may change a key of a released transaction that then writes.
func (m stateMap) conflict(t reporter, s store.Store, tx store.Transaction, nowNs int64, r source, k store.Key) {
	t.Helper()
	was, _ := m.live(nowNs, k)
	m.step(t, s, nowNs, r, k)
	is, _ := m.live(nowNs, k)
	_ = r.act().on(t, tx, nowNs, k)
	_, _, _ = store.SetIf(tx, nowNs, k, limiter.State{ExpiresNs: nowNs + sec}, store.Always)
	if !sameState(was, is) && tx.Commit() {
		t.Fatalf("it was committed, and another has changed a key")
	}
}

func checkModelInExclusive(t reporter, s store.Store, r source) {
	transactor := need[store.Transactor](t, s)
	m, nowNs := stateMap{}, t0
	for range 1000 {
		nowNs += r.stepNs()
		x := transactor.BeginAll(nowNs)
		for range 5 {
			m.step(t, x, nowNs, r)
		}
		if r.IntN(2) == 0 {
			before := maps.Clone(m)
			undo := x.Save()
			for range r.IntN(3) { // some parts are undone separately
				within, undoPart := maps.Clone(m), x.Save()
				for range 3 {
					m.step(t, x, nowNs, r)
				}
				if r.IntN(2) == 0 {
					undoPart()
					m = within
				}
			}
			for range 5 {
				m.step(t, x, nowNs, r)
			}
			undo()
			m = before
			for range 10 {
				m.want(t, x, nowNs, r.key())
			}
		}
		x.End()
		m.step(t, s, nowNs, r)
	}
}

// makers returns a call for each kind that makes a key for a minute, or for good.
func makers() map[limiter.Kind]act {
	all := map[limiter.Kind]act{}
	for kind := range limiter.Kinds {
		c, err := limitertest.Maker(kind)
		switch {
		case err != nil:
			panic(err) // a mistake in that package
		case c.Operation != nil:
			all[kind] = ofOperation(*c.Operation)
		default:
			all[kind] = ofRequest(c.Rule, c.Quantity)
		}
	}
	return all
}

// isOther reports whether a call for one kind is refused by a key of another.
func isOther(made, found limiter.Kind) bool {
	isFunnel := func(k limiter.Kind) bool { return k == limiter.Funnel || k == limiter.Reserving }
	return made != found && (!isFunnel(made) || !isFunnel(found))
}

func makeKey(t reporter, ks store.Keys, nowNs int64, k store.Key, kind limiter.Kind) limiter.State {
	t.Helper()
	if a := makers()[kind].on(t, ks, nowNs, k); a.err != nil || a.result.Limited {
		t.Fatalf("a key of kind %d is not made: %+v", kind, a)
	}
	s, ok, err := ks.State(nowNs, k)
	if !ok || err != nil || s.Kind != kind {
		t.Fatalf("a key of kind %d is %+v, %v, %v", kind, s, ok, err)
	}
	return s
}

func kindNames() []string {
	return []string{"k", strings.Repeat("long", 6), strings.Repeat("longer", 400)}
}

// checkWrongType: a key of another kind is unchanged, and absent once it has expired.
func checkWrongType(t reporter, s store.Store) {
	for found := range makers() {
		for made, a := range makers() {
			for _, name := range kindNames() {
				k := key(uint16(found)*16+uint16(made), name)
				before := makeKey(t, s, t0, k, found)
				if isOther(made, found) {
					for range 3 {
						if got := a.on(t, s, t0, k); !errors.Is(got.err, limiter.ErrWrongType) || got.result != (funnel.Result{}) {
							t.Fatalf("kind %d to a key of kind %d: %+v", made, found, got)
						}
					}
					wantState(t, s, t0, k, before, true)
				}
				if found.Row().Endless {
					wantDeleted(t, s, t0+sec, []store.Key{k}, 1)
				}
				makeKey(t, s, t0+3600*sec, k, made)
			}
		}
	}
}

// checkPayloadIsOwn: State and SetIf return payloads of the caller's, and SetIf keeps none.
func checkPayloadIsOwn(t reporter, s store.Store) {
	for kind := range makers() {
		for _, name := range kindNames() {
			k := key(uint16(kind), name)
			want := makeKey(t, s, t0, k, kind)
			want.Payload = bytes.Clone(want.Payload)
			got, _, _ := s.State(t0, k)
			clear(got.Payload)
			wantState(t, s, t0, k, want, true)
			given := want
			given.Payload = bytes.Clone(want.Payload)
			before, _, _ := store.SetIf(s, t0, k, given, store.IfFound)
			clear(before.Payload)
			clear(given.Payload)
			wantState(t, s, t0, k, want, true)
		}
	}
}

// checkOneEntry: a key of changing kinds has one entry.
func checkOneEntry(t reporter, s store.Store) {
	need[store.Walker](t, s) // its keys can be counted
	nowNs := t0
	for range 3 {
		for kind := range makers() {
			for _, name := range kindNames() {
				makeKey(t, s, nowNs, key(1, name), kind)
			}
			if st := statsOf(s); st.Keys != len(kindNames()) {
				t.Fatalf("%d keys, and there are %d", st.Keys, len(kindNames()))
			}
			for _, name := range kindNames() {
				if kind.Row().Endless {
					wantDeleted(t, s, nowNs, []store.Key{key(1, name)}, 1)
				}
			}
			nowNs += 3600 * sec
		}
	}
}

// checkNever: a key without an expiry lives until it is given one.
func checkNever(t reporter, s store.Store) {
	const later = limiter.NeverNs - 1
	for i, name := range kindNames() {
		k := key(uint16(i), name)
		want := makeKey(t, s, t0, k, limiter.Bucket)
		if want.ExpiresNs != limiter.NeverNs {
			t.Fatalf("a bucket expires at %d", want.ExpiresNs)
		}
		wantState(t, s, t0+100*365*24*3600*sec, k, want, true)
		o := limiter.Operation{Verb: limiter.Expire, AtNs: t0 + sec}
		if err := s.Apply(t0, k, &o); err != nil || o.Count != 1 {
			t.Fatalf("Expire: %d, %v", o.Count, err)
		}
		want.ExpiresNs = t0 + sec
		wantState(t, s, t0, k, want, true)
		wantState(t, s, later, k, limiter.State{}, false)
	}
}

// checkKindsStats: requests of each kind are counted by their arithmetic's results.
func checkKindsStats(t reporter, s store.Store) {
	before := statsOf(s)
	var want [limiter.Kinds]store.Outcomes
	for kind, a := range makers() {
		k, state := key(0, strconv.Itoa(int(kind))), limiter.State{}
		for range 21 {
			var as answer
			state, as = a.to(state, t0)
			a.on(t, s, t0, k)
			switch {
			case a.operation != nil && !a.operation.Outcome().Requests, kind == limiter.Value:
			case as.result.Limited:
				want[kind].Limited++
			default:
				want[kind].Allowed++
			}
		}
	}
	tx := begin(t, s, t0, key(0, "tx"))
	_ = makers()[limiter.Concurrency].on(t, tx, t0, key(0, "tx"))
	tx.Commit()
	want[limiter.Concurrency].Allowed++
	st, all := statsOf(s), store.Outcomes{}
	for kind, want := range want {
		all.Allowed, all.Limited = all.Allowed+want.Allowed, all.Limited+want.Limited
		got := store.Outcomes{Allowed: st.Outcomes[kind].Allowed - before.Outcomes[kind].Allowed, Limited: st.Outcomes[kind].Limited - before.Outcomes[kind].Limited}
		if got != want {
			t.Fatalf("kind %d: %+v, want %+v", kind, got, want)
		}
	}
	if got := (store.Outcomes{Allowed: st.Allowed - before.Allowed, Limited: st.Limited - before.Limited}); got != all {
		t.Fatalf("%+v of all kinds, want %+v", got, all)
	}
}

// checkKindsConcurrent counts in shared windows, holds places, applies steps unknown to the store, and counts
// twice in released transactions: nothing is lost or repeated.
func checkKindsConcurrent(t reporter, s store.Store) {
	const callers, each, most = 6, 100, 1 << 12
	hot, stepped, twice, held := key(0, "hot"), key(0, "stepped"), key(0, "counted twice in a step"), key(1, "held")
	rule := limiter.Rule{Kind: limiter.SlidingWindow, Packed: mustWindow(window.NewExactLimit(funnel.Seconds, most, 60)).Packed()}
	one, look := ofRequest(rule, 1), ofRequest(rule, 0)
	transactor, _ := s.(store.Transactor)
	together(t, callers, func(t reporter, g int) {
		for n := range each {
			one.on(t, s, t0+int64(n), hot)
			if err := s.Apply(t0, stepped, &both{rule: rule, quantity: 1}); err != nil {
				t.Errorf("Apply: %v", err)
			}
			hold(uint64(g)).on(t, s, t0, held)
			if a := hold(uint64(100+g*each+n)).on(t, s, t0, held); a.err != nil || a.result.Limited {
				t.Errorf("a holder: %+v", a)
			}
			for transactor != nil && !countTwice(t, transactor, one, hot, twice) {
				continue
			}
			release := limiter.Operation{Verb: limiter.Release, ID: uint64(100 + g*each + n)}
			if a := ofOperation(release).on(t, s, t0, held); a.count != 1 {
				t.Errorf("a holder has lost its place: %+v", a)
			}
		}
	})
	counted, both := int64(callers*each), int64(0)
	if transactor != nil {
		counted, both = 2*counted, counted
	}
	for _, c := range []struct {
		key  store.Key
		want int64
	}{{hot, counted}, {stepped, 2 * callers * each}, {twice, both}} {
		if a := look.on(t, s, t0+each, c.key); a.result.Remaining != most-c.want {
			t.Fatalf("%q: %d are counted, want %d", c.key.Name, most-a.result.Remaining, c.want)
		}
	}
	if a := ofOperation(limiter.Operation{Verb: limiter.Holders}).on(t, s, t0, held); a.count != callers {
		t.Fatalf("%d hold places, want %d", a.count, callers)
	}
}

// countTwice counts in both windows or in none.
func countTwice(t reporter, transactor store.Transactor, a act, first, second store.Key) bool {
	tx := transactor.Begin(t0, []store.Key{second, first})
	defer tx.Rollback()
	tx.Release()
	a.on(t, tx, t0, first)
	runtime.Gosched() // lets others come between
	a.on(t, tx, t0, second)
	return tx.Commit()
}
