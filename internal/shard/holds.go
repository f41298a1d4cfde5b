package shard

import "cellserver/internal/limiter"

// loseHoldsLocked counts the holds of an entry that is about to be removed, or overwritten as it has expired:
// those whose time was over without a step that would have found them, and of a live entry, which is evicted,
// those that are not settled. It may change the payload.
func (sh *shard) loseHoldsLocked(t *table, b *bucket, slot int, nowNs int64) {
	if !t.mayBlock() || b.kind(slot) != limiter.Named {
		return
	}
	r, live := t.recordAt(b, slot), b.tatNs(slot) > nowNs
	s := limiter.State{Kind: limiter.Named, ExpiresNs: b.tatNs(slot), Payload: r.bytes[r.payload:r.end:r.end]}
	if !live {
		nowNs = s.ExpiresNs - 1 // when the time of the last hold was over, too
	}
	var ended limiter.Ended
	s.Ended = &ended
	_, _ = (&limiter.FindHold{}).Do(&s, nowNs) // the kind fits
	name := r.bytes[r.name:r.payload]
	sh.holds.Ended(name, &ended)
	if live {
		open, overdue := limiter.HoldsOf(&s, nowNs)
		sh.holds.Evicted(name, open+overdue)
	}
}
