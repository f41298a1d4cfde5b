package shard

import (
	"maps"

	"cellserver/internal/store"
)

// mostLooks bounds the tries to read what is spent beside a round.
const mostLooks = 3

// Spent implements store.Spender. It takes one lock at a time: if a round has moved units meanwhile, it reads
// again, and at last takes all.
func (s *Store) Spent(limit string) store.Spends {
	for range mostLooks {
		before := s.book.Of(limit)
		pending := store.Spends{}
		for i := range s.shards {
			sh := &s.shards[i]
			sh.mu.Lock()
			sh.spentLocked(limit, pending)
			sh.mu.Unlock()
		}
		if maps.Equal(before, s.book.Of(limit)) {
			return joined(before, pending)
		}
	}
	s.lockAll()
	defer s.unlockAll()
	pending := store.Spends{}
	for i := range s.shards {
		s.shards[i].spentLocked(limit, pending)
	}
	return joined(s.book.Of(limit), pending)
}

// spentLocked adds what no round has visited.
func (sh *shard) spentLocked(limit string, to store.Spends) {
	for at, units := range sh.spent {
		if limit == "" || at.Limit == limit {
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
