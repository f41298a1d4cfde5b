package storetest

import (
	"bytes"
	"errors"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/limiter/window"
	"cellserver/internal/store"
)

type act struct {
	request   *store.Request
	operation *limiter.Operation
}

func ofRequest(r limiter.Rule, quantity int64) act {
	return act{request: &store.Request{Rule: r, Quantity: quantity}}
}

func ofOperation(o limiter.Operation) act { return act{operation: &o} }

// answer is the comparable part of an act's answer.
type answer struct {
	result  funnel.Result
	err     error
	count   int64
	waitNs  int64
	debitNs uint64
}

func answerOf(o *limiter.Operation, err error) answer {
	if err != nil {
		return answer{err: err}
	}
	return answer{o.Result, nil, o.Count, o.WaitNs, o.DebitNs}
}

func (a act) on(t reporter, ks store.Keys, nowNs int64, k store.Key) answer {
	t.Helper()
	if a.operation != nil {
		o := *a.operation
		err := ks.Apply(nowNs, k, &o)
		return answerOf(&o, err)
	}
	q := *a.request
	q.Key = k
	q = answersTo(t, ks, nowNs, []store.Request{q})[0]
	return answer{result: q.Result, err: q.Err}
}

func (a act) to(s limiter.State, nowNs int64) (limiter.State, answer) {
	s.Payload = bytes.Clone(s.Payload)
	as := s
	if a.operation != nil {
		o := *a.operation
		changed, err := o.Do(&as, nowNs)
		if !changed {
			as = s
		}
		return as, answerOf(&o, err)
	}
	r, changed, err := a.request.Rule.Decide(&as, nowNs, a.request.Quantity)
	if !changed {
		as = s
	}
	return as, answer{result: r, err: err}
}

func mustWindow(l window.Limit, err error) window.Limit {
	if err != nil {
		panic(err) // a mistake in this package
	}
	return l
}

// ruleOf returns a kind's rule of a size, for a second or two, and false for a kind without requests.
func ruleOf(kind limiter.Kind, size int64) (r limiter.Rule, ok bool) {
	r, err := limitertest.Rule(kind, size, size+1, 1+size%2)
	if err != nil && !errors.Is(err, limiter.ErrWrongType) {
		panic(err) // a mistake in that package
	}
	return r, err == nil
}

func requested(size int64) (rules []limiter.Rule) {
	for kind := range limiter.Kinds {
		if r, ok := ruleOf(kind, size); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

// namedRule returns the rule of a named limit with a few rules of some kinds.
func (r source) namedRule(size int64) limiter.Rule {
	var rules []limiter.NamedRule
	for i := range r.IntN(6) {
		kinds := [...]limiter.Kind{limiter.Funnel, limiter.Funnel, limiter.FixedWindow, limiter.SlidingWindow, limiter.ApproxWindow, limiter.Quota}
		rule, _ := ruleOf(kinds[r.IntN(len(kinds))], size)
		if rule.Kind == limiter.Funnel {
			rules = append(rules, limiter.PlainRule(limit(size, size, int64(1+i)), int64(1+i)*sec))
		} else {
			rules = append(rules, limiter.OtherRule(rule, string(rune('a'+i))))
		}
		if r.IntN(3) == 0 {
			rules[i] = rules[i].Blocking((1+r.Int64N(3))*sec, r.IntN(2) == 0, string(rune('a'+i)))
		}
	}
	named := limiter.NewNamedLimit(rules, 0.8)
	named.Shadow = r.IntN(5) == 0
	if r.IntN(9) == 0 {
		named.Constant = limiter.Constant(1 + r.IntN(2))
	}
	return limiter.OfNamed(named)
}

// act returns something to do to a key of any kind. Some acts wait long, some make payloads large.
func (r source) act() act {
	if r.funnels {
		q := r.request()
		return ofRequest(q.Rule, q.Quantity)
	}
	size := []int64{1, 3, 10, 60, 300}[r.IntN(5)]
	if r.IntN(3) > 0 {
		rules := requested(size)
		rule := rules[r.IntN(len(rules))]
		if rule.Kind == limiter.Named {
			rule = r.namedRule(size)
		}
		if r.IntN(4) == 0 {
			rule.Flags = limiter.Flags(1 + r.IntN(2))
		}
		return ofRequest(rule, r.quantity())
	}
	return ofOperation(limiter.Operation{
		Verb: limiter.Verb(1 + r.IntN(int(limiter.GiveBack))), Funnel: limit(size, size, 1), Quantity: r.Int64N(5), Max: size,
		ID: uint64(r.IntN(40)), TTLNs: 1 + r.Int64N(3*sec), AtNs: t0 + r.Int64N(1000*sec), DebitNs: uint64(r.Int64N(sec)),
	})
}

// stateMap is a store of every kind as a plain map.
type stateMap map[id]limiter.State

func (m stateMap) live(nowNs int64, k store.Key) (limiter.State, bool) {
	s, ok := m[idOf(k)]
	if !ok || s.ExpiresNs <= nowNs {
		return limiter.State{}, false
	}
	return s, true
}

func (m stateMap) set(nowNs int64, k store.Key, s limiter.State) {
	if delete(m, idOf(k)); s.ExpiresNs > nowNs {
		m[idOf(k)] = s
	}
}

// act applies an act to a key and the map, and compares the answers.
func (m stateMap) act(t reporter, ks store.Keys, nowNs int64, k store.Key, a act) {
	t.Helper()
	s, _ := m.live(nowNs, k)
	after, want := a.to(s, nowNs)
	m.set(nowNs, k, after)
	if got := a.on(t, ks, nowNs, k); !errors.Is(got.err, want.err) || got.err == nil && got != want {
		t.Fatalf("kind %d, %+v, %+v: got %+v, want %+v", s.Kind, a.request, a.operation, got, want)
	}
}

// ifRoom applies an act that a full store may refuse, and reports whether it has.
func (m stateMap) ifRoom(t reporter, ks store.Keys, nowNs int64, k store.Key, a act) (refused bool) {
	t.Helper()
	s, _ := m.live(nowNs, k)
	after, want := a.to(s, nowNs)
	got := a.on(t, ks, nowNs, k)
	if errors.Is(got.err, store.ErrFull) {
		return true
	}
	if got != want {
		t.Fatalf("%.40q, %+v, %+v: got %+v, want %+v", k.Name, a.request, a.operation, got, want)
	}
	m.set(nowNs, k, after)
	return false
}

func (m stateMap) want(t reporter, ks store.Keys, nowNs int64, k store.Key) {
	t.Helper()
	want, live := m.live(nowNs, k)
	wantState(t, ks, nowNs, k, want, live)
}

func wantState(t reporter, ks store.Keys, nowNs int64, k store.Key, want limiter.State, live bool) {
	t.Helper()
	e, ok, err := ks.Entry(nowNs, k)
	if ok != live || err != nil || ok && (e != store.Entry{Kind: want.Kind, ExpiresNs: want.ExpiresNs}) {
		t.Fatalf("Entry of %.40q: got %+v, %v, %v, want %+v, %v", k.Name, e, ok, err, want, live)
	}
	s, ok, err := ks.State(nowNs, k)
	if ok != live || err != nil || ok && !sameState(s, want) {
		t.Fatalf("State of %.40q: got %+v, %v, %v, want %+v, %v", k.Name, s, ok, err, want, live)
	}
}

func sameState(a, b limiter.State) bool {
	return a.Kind == b.Kind && a.ExpiresNs == b.ExpiresNs && bytes.Equal(a.Payload, b.Payload)
}

// step does something to some of the keys, by default of all, and to the map.
func (m stateMap) step(t reporter, ks store.Keys, nowNs int64, r source, keys ...store.Key) {
	t.Helper()
	pick := func() store.Key {
		if len(keys) == 0 {
			return r.key()
		}
		return keys[r.IntN(len(keys))]
	}
	k := pick()
	switch r.IntN(20) {
	case 0:
		keys, want := []store.Key{k, pick(), k}, 0
		for _, k := range keys {
			if _, live := m.live(nowNs, k); live {
				want++
			}
			delete(m, idOf(k))
		}
		wantDeleted(t, ks, nowNs, keys, want)
	case 1:
		m.setIf(t, ks, nowNs, k, m.someState(nowNs, r), store.Condition(r.IntN(3)))
	case 2:
		m.want(t, ks, nowNs, k)
	case 3, 4, 5:
		m.batch(t, ks, nowNs, r, pick)
	case 6, 7, 8:
		m.own(t, ks, nowNs, r, k)
	default:
		m.act(t, ks, nowNs, k, r.act())
	}
}

func (m stateMap) batch(t reporter, ks store.Keys, nowNs int64, r source, pick func() store.Key) {
	t.Helper()
	var batch []store.Request
	for range 1 + r.IntN(1+r.IntN(12)) {
		if a := r.act(); a.request != nil {
			a.request.Key = pick()
			batch = append(batch, *a.request)
		}
	}
	m.decide(t, ks, nowNs, batch)
}

// decide decides a batch, and compares the answers with the map's.
func (m stateMap) decide(t reporter, ks store.Keys, nowNs int64, batch []store.Request) {
	t.Helper()
	want := make([]answer, len(batch))
	for i := range batch {
		q := batch[i]
		s, _ := m.live(nowNs, q.Key)
		s, want[i] = act{request: &q}.to(s, nowNs)
		m.set(nowNs, q.Key, s)
	}
	for i, q := range answersTo(t, ks, nowNs, batch) {
		if got := (answer{result: q.Result, err: q.Err}); !errors.Is(got.err, want[i].err) || got.err == nil && got != want[i] {
			t.Fatalf("request %d of %d, %+v: got %+v, want %+v", i, len(batch), q, got, want[i])
		}
	}
}

// someState returns a state of some kind, usually one that an act has made.
func (m stateMap) someState(nowNs int64, r source) limiter.State {
	for range 20 {
		if r.funnels {
			break
		}
		if s, _ := r.act().to(limiter.State{}, nowNs); s.ExpiresNs > nowNs {
			return s
		}
	}
	return limiter.State{ExpiresNs: nowNs + r.Int64N(4*sec) - sec}
}

func (m stateMap) setIf(t reporter, ks store.Keys, nowNs int64, k store.Key, s limiter.State, when store.Condition) {
	t.Helper()
	want, live := m.live(nowNs, k)
	given := s
	given.Payload = bytes.Clone(s.Payload)
	before, found, err := store.SetIf(ks, nowNs, k, given, when)
	clear(given.Payload) // it must not be kept
	if found != live || err != nil || found && !sameState(before, want) {
		t.Fatalf("SetIf of %.40q: found %+v, %v, %v, want %+v, %v", k.Name, before, found, err, want, live)
	}
	if when.Holds(found) {
		m.set(nowNs, k, s)
	}
}
