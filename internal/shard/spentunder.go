package shard

import (
	"maps"

	"cellserver/internal/store"
)

// mostLooks bounds the tries to read what is spent beside a round.
const mostLooks = 3

// SpentUnder implements store.Spender. It takes one lock at a time: if a round has moved units of the limit
// meanwhile, it reads again, and at last takes all.
func (s *Store) SpentUnder(limit string) store.Spends {
	for range mostLooks {
		before := s.book.Under(limit)
		pending := store.Spends{}
		for i := range s.shards {
			sh := &s.shards[i]
			sh.mu.Lock()
			sh.spentUnderLocked(limit, pending)
			sh.mu.Unlock()
		}
		if maps.Equal(before, s.book.Under(limit)) {
			return joined(before, pending)
		}
	}
	s.lockAll()
	defer s.unlockAll()
	pending := store.Spends{}
	for i := range s.shards {
		s.shards[i].spentUnderLocked(limit, pending)
	}
	return joined(s.book.Under(limit), pending)
}

// spentUnderLocked adds what no round has visited.
func (sh *shard) spentUnderLocked(limit string, to store.Spends) {
	for at, units := range sh.spent {
		if at.Limit == limit {
			to.Add(at, units)
		}
	}
}

func joined(all, more store.Spends) store.Spends {
	for at, units := range more {
		all.Add(at, units)
	}
	return all
}
