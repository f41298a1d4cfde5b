package shard

import (
	"bytes"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// noteLocked counts what has become of a key's holds, and its spending.
func (sh *shard) noteLocked(name []byte, n *limiter.Notes) {
	if n.IsZero() {
		return
	}
	sh.holds.Ended(name, &n.Ended)
	if len(n.Spent) == 0 {
		return
	}
	limit, _, _ := bytes.Cut(name, []byte{':'})
	for _, of := range n.Spent {
		at := sh.book.DayOf(limit, of.AtNs)
		if sh.long.tracked {
			sh.spent.Add(at, of.Units)
		} else {
			sh.book.Add(at, of.Units)
		}
	}
}

// loseHoldsLocked counts the holds of an entry that is about to be removed, or overwritten as it has expired:
// those whose time was over without a step that would have found them, and of a live entry, which is evicted,
// those that are not settled. It may change the payload.
func (sh *shard) loseHoldsLocked(t *table, b *bucket, slot int, nowNs int64) {
	if !t.mayBlock() || b.kind(slot) != limiter.Named {
		return
	}
	r := t.recordAt(b, slot)
	s := limiter.State{Kind: limiter.Named, ExpiresNs: b.tatNs(slot), Payload: r.bytes[r.payload:r.end:r.end]}
	if open, overdue := limiter.HoldsOf(&s); open+overdue > 0 {
		sh.countHolds(r.bytes[r.name:r.payload], s, nowNs)
	}
}

// countHolds is loseHoldsLocked for a key with holds.
func (sh *shard) countHolds(name []byte, s limiter.State, nowNs int64) {
	live := s.ExpiresNs > nowNs
	if !live {
		nowNs = s.ExpiresNs - 1 // when the time of the last one was over, too
	}
	var notes limiter.Notes
	s.Notes = &notes
	limiter.EndHolds(&s, nowNs)
	sh.noteLocked(name, &notes)
	if live {
		open, overdue := limiter.HoldsOf(&s)
		sh.holds.Evicted(name, open+overdue)
	}
}

// Spent implements store.Spender.
func (s *Store) Spent() []store.Spent {
	s.lockAll()
	defer s.unlockAll()
	pending := store.Spends{}
	for i := range s.shards {
		for at, units := range s.shards[i].spent {
			pending.Add(at, units)
		}
	}
	return pending.With(s.book.All())
}

// SpendBy implements store.Spender.
func (s *Store) SpendBy(at func(limit []byte, atNs int64) store.SpentAt) { s.book.At = at }
