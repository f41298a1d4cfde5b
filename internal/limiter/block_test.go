package limiter

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/test/randtest"
)

// blocking is a model of a limit with rules that block: each rule has a state of its own, and the end of its
// block.
type blocking struct {
	rules    []NamedRule
	states   []State
	untilNs  []int64
	debiting bool
	noBlock  bool
}

func (m *blocking) blocked(i int, nowNs int64) bool { return m.untilNs[i] > nowNs }

// answer returns the result of a rule, and the state that the request would leave.
func (m *blocking) answer(t *testing.T, i int, nowNs, quantity int64) (r funnel.Result, after State) {
	t.Helper()
	rule := m.rules[i].Rule
	if m.debiting {
		rule.Flags = Debit
	}
	after = Shifted(m.states[i], 0)
	r = mustDecide(t, &rule, &after, nowNs, quantity)
	if !m.blocked(i, nowNs) {
		return r, after
	}
	if !r.Limited && quantity > 0 && !m.debiting { // it takes nothing
		own := Shifted(m.states[i], 0)
		r = mustDecide(t, &rule, &own, nowNs, 0)
	}
	left := rule.Unit.Of(uint64(m.untilNs[i] - nowNs))
	never := r.Limited && r.RetryAfter == -1
	if quantity >= 0 && !never {
		r.RetryAfter = max(r.RetryAfter, left)
	}
	if r.Remaining, r.ResetAfter = 0, max(r.ResetAfter, left); !m.debiting {
		r.Limited = quantity >= 0
	}
	return r, after
}

func (m *blocking) decide(t *testing.T, nowNs, quantity int64) (want funnel.Result) {
	t.Helper()
	denied := func() (denied int) {
		for i := range m.rules {
			r, _ := m.answer(t, i, nowNs, quantity)
			denied |= int(oneIf(r.Limited)) << i
		}
		return denied
	}
	by := denied()
	for i := range m.rules {
		of := m.rules[i].block
		exceeds := by>>i&1 != 0 && quantity >= 1 && quantity <= m.rules[i].Rule.capacity() && !m.debiting && !m.noBlock
		if exceeds && of.forNs > 0 && (of.each || !m.blocked(i, nowNs)) {
			m.untilNs[i] = nowNs + of.forNs
		}
	}
	isBlocked := false
	for i := range m.rules {
		r, after := m.answer(t, i, nowNs, quantity)
		if by == 0 || m.debiting {
			m.states[i] = after
		}
		isBlocked = isBlocked || m.blocked(i, nowNs)
		tighter := Tighter(&r, &want)
		if m.debiting {
			tighter = fuller(&r, &want)
		}
		if i == 0 || tighter {
			want = r
		}
	}
	if isBlocked {
		want.Remaining = 0
	}
	if want.Limited = by != 0; by != 0 {
		want.Marks = funnel.MarksOf(uint16(by), 0)
	} else {
		want.Marks = 0
	}
	return want
}

// nextNs returns a time at, or close to, which something changes, or another one.
func (m *blocking) nextNs(rng *rand.Rand, nowNs int64) int64 {
	i := rng.IntN(len(m.rules))
	atNs := nowNs
	switch rng.IntN(4) {
	case 0:
		atNs = m.untilNs[i]
	case 1:
		atNs = m.states[i].ExpiresNs
	case 2:
		atNs = nowNs + rng.Int64N(3*sec)
	}
	return max(nowNs, atNs-1+rng.Int64N(3))
}

func randomBlocking(t *testing.T, rng *rand.Rand) *blocking {
	m := &blocking{}
	for i := range 1 + rng.IntN(4) {
		kinds := [...]Kind{Funnel, Funnel, FixedWindow, SlidingWindow, ApproxWindow, Quota}
		r := ruleOf(t, kinds[rng.IntN(len(kinds))])
		var rule NamedRule
		if units := 1 + rng.Int64N(3); r.Kind == Funnel {
			period := 1 + rng.Int64N(5) + 10*int64(i)
			rule = PlainRule(mustFunnel(t, units, units, period), period*sec)
		} else {
			if r.Kind != Quota { // whose numbers have one word
				r.Packed[0] = units
			}
			rule = OtherRule(r, string(rune('a'+i)))
		}
		if rng.IntN(4) > 0 {
			rule = rule.Blocking((1+rng.Int64N(6))*sec, rng.IntN(2) == 0, string(rune('a'+i)))
		}
		m.rules = append(m.rules, rule)
	}
	m.states, m.untilNs = make([]State, len(m.rules)), make([]int64, len(m.rules))
	return m
}

// TestBlocks: random requests, at and around each time when something ends, are answered as by a model with a
// state for each rule, also where a payload is changed in place.
func TestBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(randtest.Seed(t, 49), 1))
	begun, inPlace := 0, 0
	for range 1500 {
		m := randomBlocking(t, rng)
		n := NewNamedLimit(m.rules, 0)
		plain := OfNamed(n)
		var s State
		nowNs := t0
		for call := range 40 {
			nowNs = m.nextNs(rng, nowNs)
			quantity := []int64{1, 1, 1, 1, 2, 3, 4, 0, -1, -2}[rng.IntN(10)]
			r := plain
			if m.debiting = n.Debits() && rng.IntN(12) == 0; m.debiting {
				r.Flags = Debit
			}
			if m.noBlock = rng.IntN(12) == 0; m.noBlock {
				r.Flags |= NoBlock
			}
			wasBlocked := BlockedUntil(&s, nowNs)
			want := m.decide(t, nowNs, quantity)
			again := Shifted(s, 0)
			var direct funnel.Result
			_, _, ok := r.DecideAgain(again.Payload, again.ExpiresNs, nowNs, quantity, &direct)
			if !ok && !bytes.Equal(again.Payload, s.Payload) {
				t.Fatalf("call %d: a payload that is not decided in place has changed", call)
			}
			got := mustDecide(t, &r, &s, nowNs, quantity)
			direct.Marks &= funnel.MarksOf(1<<16-1, 0)
			if got.Marks &= funnel.MarksOf(1<<16-1, 0); got != want || ok && direct != want {
				t.Fatalf("call %d for %d of %+v, at %d: got %+v, in place %v %+v, want %+v", call, quantity, m.rules, nowNs-t0, got, ok, direct, want)
			}
			inPlace += int(oneIf(ok))
			begun += int(oneIf(wasBlocked == 0 && BlockedUntil(&s, nowNs) > 0))
			m.check(t, n, &s, nowNs)
		}
	}
	if begun < 1000 || inPlace < 1000 {
		t.Errorf("%d blocks have begun, and %d requests were decided in place", begun, inPlace)
	}
}

// check compares looks, and that the state is valid and as written and read.
func (m *blocking) check(t *testing.T, n *NamedLimit, s *State, nowNs int64) {
	t.Helper()
	if s.ExpiresNs <= nowNs {
		return
	}
	again, rest, ok := ReadState(AppendState(nil, s))
	if !ok || len(rest) > 0 || !bytes.Equal(again.Payload, s.Payload) {
		t.Fatalf("the state is not read again")
	}
	m.debiting = false
	for i := range m.rules {
		want, _ := m.answer(t, i, nowNs, 1)
		if got := n.Look(i, s, nowNs, 1); got != want {
			t.Fatalf("rule %d: a look has %+v, want %+v", i, got, want)
		}
		if got := n.blockedUntil(i, s, nowNs); got != m.untilNs[i] && (got != 0 || m.blocked(i, nowNs)) {
			t.Fatalf("rule %d is blocked until %d, want %d", i, got, m.untilNs[i])
		}
	}
}

// TestBlocksOfOtherDefinitions: a block ends with its rule's definition, and a shadow has none.
func TestBlocksOfOtherDefinitions(t *testing.T) {
	rule := PlainRule(mustFunnel(t, 1, 1, 1), sec)
	limit := func(rules ...NamedRule) Rule { return OfNamed(NewNamedLimit(rules, 0)) }
	own := limit(rule.Blocking(60*sec, false, "own"))
	blocked := func() (s State) {
		mustDecide(t, &own, &s, t0, 1)
		if got := mustDecide(t, &own, &s, t0, 1); !got.Limited || got.RetryAfter != 60 || got.ResetAfter != 60 || s.ExpiresNs != t0+60*sec {
			t.Fatalf("got %+v, until %d", got, s.ExpiresNs-t0)
		}
		return s
	}
	for name, other := range map[string]Rule{"none": limit(rule), "another": limit(rule.Blocking(61*sec, false, "another"))} {
		s := blocked()
		if got := mustDecide(t, &other, &s, t0+sec, 1); got.Limited || s.ExpiresNs != t0+2*sec {
			t.Errorf("%s: got %+v, until %d", name, got, s.ExpiresNs-t0)
		}
		if got := mustDecide(t, &own, &s, t0+2*sec, 1); got.Limited {
			t.Errorf("%s: the block is back: %+v", name, got)
		}
	}
	s := blocked()
	n := NewNamedLimit([]NamedRule{rule.Blocking(60*sec, false, "own")}, 0)
	n.Shadow = true
	shadow := OfNamed(n)
	if got := mustDecide(t, &shadow, &s, t0+sec, 1); got.Limited || got.Marks&funnel.Shadowed != 0 {
		t.Errorf("a shadow has %+v", got)
	}
	if mustDecide(t, &shadow, &s, t0+sec, 1); s.ExpiresNs > t0+60*sec {
		t.Errorf("a shadow has begun a block until %d", s.ExpiresNs-t0)
	}
}
