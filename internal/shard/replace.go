package shard

import "cellserver/internal/store"

// Beside returns an empty store with the same hashes and bounds, for states with which Replace replaces
// these.
func (s *Store) Beside() *Store {
	b := newStoreOf(s.seed, 64-int(s.shift))
	b.budget.like(&s.budget)
	b.valueBudget.like(&s.valueBudget)
	return b
}

// Touched reports whether the store has, or has had, a key, or was flushed.
func (s *Store) Touched() bool {
	var st store.Stats
	s.UpdateStats(&st)
	sh := &s.shards[0]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return s.flushes > 0 || st.Keys > 0 || st.Allowed > 0 || st.Expired > 0 || st.Evicted > 0 || st.Values.Evicted > 0
}

// Replace takes the states of a store from Beside, and what was spent, in one step, and ends that store. A
// tracker's next round is incomplete.
func (s *Store) Replace(by *Store) {
	s.lockAll()
	defer s.unlockAll()
	s.book.Replace(&by.book)
	for i := range s.shards {
		sh := &s.shards[i]
		sh.spent = nil
		sh.watched.lostAll()
		others := by.shards[i].tables()
		for j, t := range sh.tables() {
			other := others[j]
			other.tracked, other.versions = t.tracked, max(t.versions, other.versions)
			other.changes = changes{hurry: t.changes.hurry, lost: t.tracked}
			other.budget, other.heldBytes, other.unusedBytes = t.budget, t.heldBytes, t.unusedBytes
			other.evicted, other.refused = t.evicted, t.refused
			*t = *other
			*other = table{}
			t.settle()
		}
	}
}
