package limiter

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/test/racetest"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(1_000_000_000)
	ms  = int64(1_000_000)
)

func mustFunnel(t testing.TB, capacity, count, periodSec int64) funnel.Limit {
	t.Helper()
	l, err := funnel.NewLimit(funnel.Capacity, capacity, count, periodSec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// event is a charge, whose units may turn out fewer, or a refund.
type event struct {
	atNs    int64
	debitNs int64 // negative for a refund
	id      uint64
}

// replayed returns a plain funnel's TAT after the events.
func replayed(events []event, nowNs int64) int64 {
	tatNs := int64(0)
	for _, e := range events {
		tatNs = max(max(tatNs, e.atNs)+e.debitNs, e.atNs)
	}
	return max(tatNs, nowNs)
}

type openReservation struct {
	id        uint64
	expiresNs int64
	units     int64
}

// reservingModel keeps a key's history, in which ended reservations are their used units.
type reservingModel struct {
	events []event
	open   []openReservation
}

func (m *reservingModel) debit(nowNs, debitNs int64, id uint64) {
	m.events = append(m.events, event{nowNs, debitNs, id})
}

func (m *reservingModel) end(id uint64, debitNs int64) {
	for i := range m.events {
		if m.events[i].id == id {
			m.events[i].debitNs = debitNs
		}
	}
	m.open = slices.DeleteFunc(m.open, func(o openReservation) bool { return o.id == id })
}

func (m *reservingModel) debitOf(id uint64) int64 {
	return m.events[slices.IndexFunc(m.events, func(e event) bool { return e.id == id })].debitNs
}

func (m *reservingModel) expire(nowNs int64) {
	for _, o := range slices.Clone(m.open) {
		if o.expiresNs <= nowNs {
			m.end(o.id, 0)
		}
	}
}

// reservingTrace is a random trace on a State and the model.
type reservingTrace struct {
	*rand.Rand
	s      State
	m      reservingModel
	nowNs  int64
	nextID uint64
	larger bool // some commits exceed their reservation
}

func (tr *reservingTrace) step(t *testing.T, limit funnel.Limit) (what string) {
	t.Helper()
	tr.m.expire(tr.nowNs)
	units, intervalNs := 1+tr.Int64N(max(1, limit.Capacity()/3)), int64(limit.IntervalNs())
	switch k := tr.IntN(10); {
	case k < 4:
		tr.nextID++
		o := Operation{Verb: Reserve, Funnel: limit, Quantity: units, ID: tr.nextID, TTLNs: tr.Int64N(4 * sec)}
		mustDo(t, &tr.s, tr.nowNs, &o)
		if !o.Result.Limited {
			tr.m.debit(tr.nowNs, units*intervalNs, tr.nextID)
			tr.m.open = append(tr.m.open, openReservation{tr.nextID, tr.nowNs + o.TTLNs, units})
		}
		return fmt.Sprintf("reserve %d units: %+v", units, o.Result)
	case k < 6 && len(tr.m.open) > 0:
		r := tr.m.open[tr.IntN(len(tr.m.open))]
		actual := tr.Int64N(r.units + 1)
		unitNs := tr.m.debitOf(r.id) / r.units
		if tr.larger && tr.IntN(3) == 0 { // a debit of its own
			actual = r.units + tr.Int64N(5)
			tr.m.debit(tr.nowNs, (actual-r.units)*unitNs, 0)
		}
		o := Operation{Verb: Commit, ID: r.id, Quantity: actual}
		mustDo(t, &tr.s, tr.nowNs, &o)
		if o.Count != 1 {
			t.Fatal("an open reservation was not found")
		}
		tr.m.end(r.id, min(actual, r.units)*unitNs)
		return fmt.Sprintf("commit %d of %d units", actual, r.units)
	case k < 7:
		rule := OfFunnel(limit)
		mustDecide(t, &rule, &tr.s, tr.nowNs, -units)
		tr.m.debit(tr.nowNs, -units*intervalNs, 0)
		return fmt.Sprintf("refund %d units", units)
	}
	rule := OfFunnel(limit)
	r := mustDecide(t, &rule, &tr.s, tr.nowNs, units)
	if !r.Limited {
		tr.m.debit(tr.nowNs, units*intervalNs, 0)
	}
	return fmt.Sprintf("request %d units: %+v", units, r)
}

// TestReservationsAsIfKnownBefore: the funnel is always as if the used units had been known from the start,
// whenever it is read.
func TestReservationsAsIfKnownBefore(t *testing.T) {
	racetest.SkipAlone(t)
	t.Parallel()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		limits := []funnel.Limit{mustFunnel(t, 5+rng.Int64N(60), 1+rng.Int64N(20), 1+rng.Int64N(5)), mustFunnel(t, 200, 7, 1)}
		tr := reservingTrace{Rand: rng, nowNs: t0, larger: seed%2 == 0}
		for step := range 300 {
			tr.nowNs += rng.Int64N([]int64{1, ms, 200 * ms, sec, 5 * sec}[rng.IntN(5)])
			if rng.IntN(4) == 0 { // a look
				mustDecide(t, &Rule{Funnel: limits[0]}, &tr.s, tr.nowNs, 0)
			}
			what := tr.step(t, limits[min(1, rng.IntN(6)/5)])
			tr.m.expire(tr.nowNs)
			if got, want := mustTAT(t, &tr.s, tr.nowNs), replayed(tr.m.events, tr.nowNs); got != want {
				t.Fatalf("seed %d, step %d, %s: the TAT is %d ns ahead, want %d ns", seed, step, what, got-tr.nowNs, want-tr.nowNs)
			}
			if err := Valid(&tr.s); tr.s.ExpiresNs > tr.nowNs && err != nil {
				t.Fatalf("seed %d, step %d, %s: %v: %+v", seed, step, what, err, tr.s)
			}
		}
	}
}

// TestReservationsLetNoMoreThrough: used units in any time do not exceed the capacity and its leak, less
// effective refunds.
func TestReservationsLetNoMoreThrough(t *testing.T) {
	racetest.SkipAlone(t)
	t.Parallel()
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 7))
		limit := mustFunnel(t, 3+rng.Int64N(30), 1+rng.Int64N(20), 1+rng.Int64N(3))
		tr := reservingTrace{Rand: rng, nowNs: t0}
		for range 200 {
			tr.nowNs += rng.Int64N([]int64{1, ms, 50 * ms, sec}[rng.IntN(4)])
			tr.step(t, limit)
		}
		for _, o := range slices.Clone(tr.m.open) {
			tr.m.end(o.id, 0)
		}
		tatNs := int64(0)
		for i := range tr.m.events { // refunds of drained units do not count
			e := &tr.m.events[i]
			debtNs := max(tatNs-e.atNs, 0)
			e.debitNs = max(e.debitNs, -debtNs)
			tatNs = e.atNs + debtNs + e.debitNs
		}
		for i, from := range tr.m.events {
			passedNs := int64(0)
			for _, to := range tr.m.events[i:] {
				if passedNs += to.debitNs; passedNs > int64(limit.ToleranceNs())+to.atNs-from.atNs {
					t.Fatalf("seed %d: units for %d ns passed from %d to %d ns", seed, passedNs, from.atNs-t0, to.atNs-t0)
				}
			}
		}
	}
}

func mustDo(t testing.TB, s *State, nowNs int64, o *Operation) (changed bool) {
	t.Helper()
	changed, err := o.Do(s, nowNs)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func mustDecide(t testing.TB, r *Rule, s *State, nowNs, quantity int64) funnel.Result {
	t.Helper()
	result, _, err := r.Decide(s, nowNs, quantity)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func mustTAT(t testing.TB, s *State, nowNs int64) int64 {
	t.Helper()
	tatNs, err := s.TAT(nowNs)
	if err != nil {
		t.Fatal(err)
	}
	return tatNs
}

// halfExpired returns a funnel with two reservations, one of which expires a second after t0.
func halfExpired(t testing.TB, l funnel.Limit) (s State) {
	t.Helper()
	mustDo(t, &s, t0, &Operation{Verb: Reserve, Funnel: l, Quantity: 2, ID: 1, TTLNs: sec})
	mustDo(t, &s, t0, &Operation{Verb: Reserve, Funnel: l, Quantity: 3, ID: 2, TTLNs: 60 * sec})
	return s
}

// TestLooksChangeNothing: zero requests and commits change nothing, even beside expired reservations.
func TestLooksChangeNothing(t *testing.T) {
	t.Parallel()
	l := mustFunnel(t, 9, 1, 1_000_000)
	looks := map[string]func(s *State, nowNs int64) (changed bool, err error){
		"request": func(s *State, nowNs int64) (bool, error) {
			rule := OfFunnel(l)
			_, changed, err := rule.Decide(s, nowNs, 0)
			return changed, err
		},
	}
	for name, o := range map[string]Operation{
		"reserve": {Verb: Reserve}, "wait": {Verb: Wait}, "give back": {Verb: GiveBack},
		"commit": {Verb: Commit, ID: 1}, "look": {Verb: Look},
	} {
		o.Funnel = l
		looks[name] = o.Do
	}
	for name, look := range looks {
		s := halfExpired(t, l)
		want, wantNs := mustTAT(t, &s, t0+2*sec), s.ExpiresNs
		if want != t0+3_000_000*sec || wantNs != t0+60*sec {
			t.Fatalf("the TAT is %d s ahead, and it expires after %d s", (want-t0)/sec, (wantNs-t0)/sec)
		}
		changed, err := look(&s, t0+2*sec)
		got := mustTAT(t, &s, t0+2*sec)
		if changed || err != nil || got != want || s.ExpiresNs != wantNs || Valid(&s) != nil {
			t.Errorf("%s: changed %t, %v; the TAT was %d and is %d; %+v", name, changed, err, want, got, s)
		}

		s = State{}
		mustDo(t, &s, t0, &Operation{Verb: Reserve, Funnel: l, Quantity: 2, ID: 1, TTLNs: sec})
		rule := OfFunnel(l)
		mustDecide(t, &rule, &s, t0, 3)
		before := State{Kind: s.Kind, ExpiresNs: s.ExpiresNs, Payload: bytes.Clone(s.Payload)}
		changed, err = look(&s, t0+2*sec)
		if s.ExpiresNs != t0+3_000_000*sec || changed || err != nil || !reflect.DeepEqual(s, before) {
			t.Errorf("%s, all expired: changed %t, %v; got %+v, want %+v", name, changed, err, s, before)
		}
	}
}

// TestReservationsOfFirstVersions: old expiries at the TAT are corrected.
func TestReservationsOfFirstVersions(t *testing.T) {
	t.Parallel()
	var s State
	l := mustFunnel(t, 9, 1, 1_000_000)
	mustDo(t, &s, t0, &Operation{Verb: Reserve, Funnel: l, Quantity: 2, ID: 1, TTLNs: 100 * ms})
	if s.ExpiresNs != t0+100*ms {
		t.Fatalf("it expires after %d ms", (s.ExpiresNs-t0)/ms)
	}
	for expiresNs, ok := range map[int64]bool{s.ExpiresNs: true, t0 + 2_000_000*sec: true, s.ExpiresNs - 1: false} {
		as := s
		as.ExpiresNs = expiresNs
		got, _, read := ReadState(AppendState(nil, &as))
		if read != ok || ok && !reflect.DeepEqual(got, s) {
			t.Errorf("expiry after %d ms: got %+v, %t", (expiresNs-t0)/ms, got, read)
		}
	}
}
