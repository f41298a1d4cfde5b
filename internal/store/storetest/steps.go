package storetest

import (
	"errors"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// both is a step unknown to any store, which decides two equal requests, or none if one is limited.
type both struct {
	limiter.Base
	rule     limiter.Rule
	quantity int64
	second   funnel.Result // or the first one's, if limited
}

func (b *both) Do(s *limiter.State, nowNs int64) (changed bool, err error) {
	after := limiter.Shifted(*s, 0)
	for range 2 {
		var more bool
		b.second, more, err = b.rule.Decide(&after, nowNs, b.quantity)
		if err != nil || b.second.Limited {
			return false, err
		}
		changed = changed || more
	}
	if changed {
		s.Kind, s.ExpiresNs, s.Payload = after.Kind, after.ExpiresNs, append(s.Payload[:0], after.Payload...)
	}
	return changed, nil
}

func (b *both) Outcome() limiter.Outcome {
	return limiter.Outcome{Requests: true, Kind: b.rule.Kind, Quantity: 2 * b.quantity, Limited: b.second.Limited}
}

func (b *both) Copy() (store.Step, func()) {
	c := *b
	return &c, func() { *b = c }
}

var errUnexpected = errors.New("storetest: the key expires at another time")

// swap is one that replaces a state with a certain expiry.
type swap struct {
	limiter.Base
	fromNs int64
	to     limiter.State
	was    limiter.Kind
}

func (w *swap) Do(s *limiter.State, nowNs int64) (changed bool, err error) {
	if s.ExpiresNs <= nowNs || s.ExpiresNs != w.fromNs {
		return false, errUnexpected
	}
	w.was, *s = s.Kind, limiter.Shifted(w.to, 0)
	return true, nil
}

func (w *swap) Traits() limiter.Traits { return limiter.Traits{KeepsPayload: true, Absolute: true} }

func (w *swap) Copy() (store.Step, func()) {
	c := *w
	return &c, func() { *w = c }
}

func (m stateMap) apply(t reporter, ks store.Keys, nowNs int64, k store.Key, step store.Step, answer func(store.Step) any) {
	t.Helper()
	s, _ := m.live(nowNs, k)
	after := limiter.Shifted(s, 0)
	as, _ := step.Copy()
	changed, wantErr := as.Do(&after, nowNs)
	if changed {
		m.set(nowNs, k, after)
	}
	err := ks.Apply(nowNs, k, step)
	if got, want := answer(step), answer(as); !errors.Is(err, wantErr) || err == nil && got != want {
		t.Fatalf("%T on kind %d: %+v, %v, want %+v, %v", step, s.Kind, got, err, want, wantErr)
	}
	m.want(t, ks, nowNs, k)
}

func (m stateMap) own(t reporter, ks store.Keys, nowNs int64, r source, k store.Key) {
	t.Helper()
	a := r.act()
	s, live := m.live(nowNs, k)
	switch {
	case a.request != nil && r.IntN(4) > 0:
		m.apply(t, ks, nowNs, k, &both{rule: a.request.Rule, quantity: a.request.Quantity}, func(s store.Step) any { return s.(*both).second })
	default:
		w := &swap{fromNs: s.ExpiresNs, to: m.someState(nowNs, r)}
		if !live || r.IntN(3) == 0 {
			w.fromNs = nowNs + r.Int64N(sec)
		}
		if w.to.ExpiresNs <= nowNs { // no key
			w.to = limiter.State{ExpiresNs: nowNs}
		}
		m.apply(t, ks, nowNs, k, w, func(s store.Step) any { return s.(*swap).was })
	}
}

// checkStepsStats: a step's Outcome is counted, also in transactions.
func checkStepsStats(t reporter, s store.Store) {
	k, before := key(0, "k"), statsOf(s)
	step := both{rule: limiter.OfFunnel(limit(4, 1, 60)), quantity: 1} // it holds 5
	for _, limited := range []bool{false, false, true} {
		if err := s.Apply(t0, k, &step); err != nil || step.second.Limited != limited {
			t.Fatalf("limited is %v, %v, want %v", step.second.Limited, err, limited)
		}
	}
	want := store.Outcomes{Allowed: 2, Limited: 1}
	if txs, ok := s.(store.Transactor); ok {
		tx := txs.Begin(t0, []store.Key{k})
		_ = tx.Apply(t0, k, &step)
		tx.Commit()
		want.Limited++
	}
	_ = s.Apply(t0, k, &swap{}) // no request, and a failure
	st := statsOf(s)
	got := store.Outcomes{Allowed: st.Allowed - before.Allowed, Limited: st.Limited - before.Limited}
	if units := st.Granted - before.Granted; got != want || units != 4 || st.Outcomes[limiter.Funnel].Allowed-before.Outcomes[limiter.Funnel].Allowed != 2 {
		t.Fatalf("%+v, of %d units, want %+v of 4", got, units, want)
	}
}
