package shard

import "cellserver/internal/limiter"

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
	var ended limiter.Ended
	s.Ended = &ended
	limiter.EndHolds(&s, nowNs)
	sh.holds.Ended(name, &ended)
	if live {
		open, overdue := limiter.HoldsOf(&s)
		sh.holds.Evicted(name, open+overdue)
	}
}
