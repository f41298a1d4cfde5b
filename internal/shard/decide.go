package shard

import (
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// keepScratch is the largest buffer that is kept for the next change.
const keepScratch = 8 << 10

// decideLocked answers a request that is not about a plain funnel, or finds none.
func (sh *shard) decideLocked(nowNs int64, k keyRef, q *store.Request) {
	err := sh.doLocked(nowNs, k, &q.Key, q.Rule.Kind, q)
	if err == nil {
		sh.counts.add(q.Rule.Kind, q.Quantity, q.Result.Limited)
	}
	q.End(err)
}

func (sh *shard) applyLocked(nowNs int64, k keyRef, key *store.Key, step store.Step) error {
	err := sh.doLocked(nowNs, k, key, step.Traits().Kind, step)
	if err == nil {
		sh.counts.count(step.Outcome())
	}
	return err
}

// doLocked does a step to a key's state, which is most likely of a kind. A payload is changed where it
// stands, if that cannot be refused afterwards; another is copied.
func (sh *shard) doLocked(nowNs int64, k keyRef, key *store.Key, likely limiter.Kind, step store.Step) error {
	t, b, slot := sh.findOf(likely, k, key)
	s := &sh.state
	*s = limiter.State{Payload: sh.scratch[:0]}
	var r record
	direct := false
	if b != nil {
		s.Kind, s.ExpiresNs = t.kindAt(b, slot), b.tatNs(slot)
		if s.Kind != limiter.Funnel && s.ExpiresNs > nowNs { // or its payload is none any more
			r = t.recordAt(b, slot)
			if direct = !r.joined && sh.surelyStoresLocked(); direct {
				s.Payload = r.bytes[r.payload:r.end:len(r.bytes)]
			} else {
				s.Payload = append(s.Payload, r.bytes[r.payload:r.end]...)
			}
		}
	}
	kind := s.Kind
	changed, err := step.Do(s, nowNs)
	if !direct && cap(s.Payload) > cap(sh.scratch) && cap(s.Payload) <= keepScratch {
		sh.scratch = s.Payload[:0]
	}
	switch {
	case !changed:
		if direct && len(s.Payload) != r.end-r.payload {
			t.rewrite(b, slot, &r, s.Payload, false) // it was tidied up
		}
	case sh.frozen:
		err = store.ErrFrozen
	case r.bytes != nil && s.Kind == kind && s.ExpiresNs > nowNs && t.rewrite(b, slot, &r, s.Payload, true):
		t.changeTAT(k.hash, b, slot, s.ExpiresNs)
		sh.changedLocked(k.hash)
	default:
		if direct && b.place(slot) == placeArena { // where records are moved
			s.Payload = append(sh.scratch[:0], s.Payload...)
		}
		it := itemOf(k, key, s)
		it.forced = direct // it is done, whatever has been set meanwhile
		if sh.storeLocked(nowNs, t, b, slot, &it) {
			sh.changedLocked(k.hash)
		} else {
			err = store.ErrFull
		}
	}
	s.Payload = nil // or it would be kept alive
	return err
}

// surelyStoresLocked says whether a state can be written, whatever it becomes.
func (sh *shard) surelyStoresLocked() bool { return !sh.frozen && !sh.budget.refuses.Load() }
