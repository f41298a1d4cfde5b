package squares

import (
	"maps"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// spends counts what a decision spends: a debit by rules, or a hold.
func (m *model) spends(c call, d *decision) {
	if d.by.constant == "" && len(d.by.rules) > 0 && c.units > 0 && (c.debit || c.hold > 0) {
		m.spent[c.name] += c.units
	}
}

// returns counts what a hold does not use.
func (m *model) returns(p pair, h *hold, used int64) { m.spent[p.name] -= max(0, h.units-used) }

// spender is the house's tables, nil over a store.
func (h *house) spender() *shard.Store {
	s, _ := h.Config.Store.(*shard.Store)
	return s
}

// countSpent has all days count as one.
func (h *house) countSpent() {
	if s := h.spender(); s != nil {
		s.SpendBy(func(limit []byte, _ int64) (store.SpentAt, bool) { return store.SpentAt{Limit: string(limit)}, true })
	}
}

// ends is a step that ends the holds of a key whose time is over, as the next one that changes the key would.
type ends struct{ limiter.Extend }

func (e *ends) Do(s *limiter.State, nowNs int64) (changed bool, err error) {
	if s.Kind != limiter.Named || s.ExpiresNs <= nowNs {
		return false, nil
	}
	limiter.EndHolds(s, nowNs)
	return true, nil
}

// notices ends the holds of all keys whose time is over.
func (h *house) notices(t *testing.T) {
	t.Helper()
	s := h.spender()
	for _, name := range names {
		for _, key := range keys {
			if err := s.Apply(h.now(), store.Key{Name: []byte(name + ":" + key)}, &ends{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for w, n := shard.NewSweeper(s), 0; n < 5000; n++ {
		w.Step(h.now())
	}
}

// compareSpent compares what was spent under each limit, also of those that are gone.
func (r *run) compareSpent() {
	h, is := r.system.(*house)
	if !is || h.spender() == nil || r.before != nil {
		return
	}
	h.notices(r.t)
	r.tidy(r.now())
	got, want := map[string]int64{}, maps.Clone(r.spent)
	for _, of := range h.spender().Spent("").Sorted() {
		got[of.Limit] += of.Units
	}
	for _, sums := range []map[string]int64{got, want} {
		maps.DeleteFunc(sums, func(name string, units int64) bool { return units == 0 || name == envoyName })
	}
	if !maps.Equal(got, want) {
		r.fail("spent %v, want %v", got, want)
	}
	r.table.spent += len(want)
}
