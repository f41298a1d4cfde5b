package shard

import (
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// noteLocked counts what has become of a key's holds, and its spending.
func (sh *shard) noteLocked(name []byte, n *limiter.Notes) {
	if n.IsZero() {
		return
	}
	sh.holds.Ended(name, &n.Ended)
	var pending *store.Spends
	if sh.long.tracked && len(sh.spent) < mostPending {
		pending = &sh.spent
	}
	sh.book.Enter(name, n, pending)
}

// debitedLocked counts the spending of a request that was decided without its own steps.
func (sh *shard) debitedLocked(nowNs int64, q *store.Request) {
	if q.Rule.Kind == limiter.Named && q.Rule.Flags&limiter.Debit != 0 {
		sh.notes.Reset()
		sh.notes.Spend(nowNs, max(q.Quantity, 0))
		sh.noteLocked(q.Key.Name, &sh.notes)
	}
}

// mostPending bounds the spending of a shard that waits for the next round, by limit and day. What is beyond
// may be in a round before its keys.
const mostPending = 1024

// loseHoldsLocked counts the holds of an entry that is about to be removed, or overwritten as it has expired:
// those whose time was over without a step that would have found them, and of a live entry, which is evicted,
// those that are not settled. It may change the payload. Where that returns units, the key is listed as gone:
// a disk or a replica that had it still would return them once more.
func (sh *shard) loseHoldsLocked(t *table, b *bucket, slot int, nowNs int64) {
	if !t.mayBlock() || b.kind(slot) != limiter.Named {
		return
	}
	r := t.recordAt(b, slot)
	s := limiter.State{Kind: limiter.Named, ExpiresNs: b.tatNs(slot), Payload: r.bytes[r.payload:r.end:r.end]}
	if open, overdue := limiter.HoldsOf(&s); open+overdue > 0 {
		if sh.countHolds(r.bytes[r.name:r.payload], s, nowNs) {
			t.noteGoneAt(b, slot)
		}
	}
}

// countHolds is loseHoldsLocked for a key with holds, and reports whether units are returned. A store that is
// frozen, as a replica's is, returns none: its leader does.
func (sh *shard) countHolds(name []byte, s limiter.State, nowNs int64) (returned bool) {
	frozen := nowNs >= sh.frozenNs
	live := s.ExpiresNs > nowNs
	if !live {
		nowNs = s.ExpiresNs - 1 // when the time of the last one was over, too
	}
	var notes limiter.Notes
	s.Notes = &notes
	limiter.EndHolds(&s, nowNs)
	if frozen {
		notes = limiter.Notes{Ended: notes.Ended}
	}
	sh.noteLocked(name, &notes)
	if live {
		open, overdue := limiter.HoldsOf(&s)
		sh.holds.Evicted(name, open+overdue)
	}
	return notes.HasSpent()
}

// SpendBy implements store.Spender.
func (s *Store) SpendBy(at func(limit []byte, atNs int64) (store.SpentAt, bool)) { s.book.At = at }
