package shard

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// keepScratch is the largest buffer that is kept for the next change.
const keepScratch = 8 << 10

// deed is what is to be done to a key's state: a request, or an operation.
type deed struct {
	request   *store.Request
	operation *limiter.Operation
}

// do does it.
func (d deed) do(s *limiter.State, nowNs int64) (changed bool, err error) {
	if d.operation != nil {
		return d.operation.Do(s, nowNs)
	}
	d.request.Result, changed, err = d.request.Rule.Decide(s, nowNs, d.request.Quantity)
	return changed, err
}

// looks reports whether it changes nothing of a payload.
func (d deed) looks() bool { return d.operation != nil && d.operation.Verb == limiter.Look }

// kind is of what kind the key is, most likely.
func (d deed) kind() limiter.Kind {
	switch {
	case d.operation == nil:
		return d.request.Rule.Kind
	case d.operation.Verb == limiter.Wait || d.operation.Verb == limiter.GiveBack || d.looks():
		return limiter.Funnel
	}
	return limiter.Named // or another with a payload
}

// answer sets the request's error.
func (d deed) answer(err error) {
	if d.request.Err = err; err != nil {
		d.request.Result = funnel.Result{}
	}
}

// count counts what was done, if it was a request for units.
func (c *counts) count(d deed) {
	if d.operation == nil {
		c.add(d.request.Rule.Kind, d.request.Quantity, d.request.Result.Limited)
		return
	}
	switch o := d.operation; o.Verb {
	case limiter.Wait:
		c.add(limiter.Funnel, o.Quantity, o.Result.Limited)
	case limiter.Reserve:
		c.add(limiter.Reserving, o.Quantity, o.Result.Limited)
	case limiter.Acquire:
		c.add(limiter.Concurrency, 1, o.Result.Limited)
	default: // it requests nothing
	}
}

// decideLocked answers a request that is not about a plain funnel, or finds none.
func (sh *shard) decideLocked(nowNs int64, k keyRef, q *store.Request) {
	d := deed{request: q}
	d.answer(sh.doLocked(nowNs, k, &q.Key, d))
}

func (sh *shard) operateLocked(nowNs int64, k keyRef, key *store.Key, o *limiter.Operation) error {
	return sh.doLocked(nowNs, k, key, deed{operation: o})
}

// doLocked does something to a key's state, of whatever kind. A payload is changed where it stands, if that cannot be refused
// afterwards; another is copied.
func (sh *shard) doLocked(nowNs int64, k keyRef, key *store.Key, d deed) error {
	t, b, slot := sh.findOf(d.kind(), k, key)
	s := limiter.State{Payload: sh.scratch[:0]}
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
	changed, err := d.do(&s, nowNs)
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
		it := itemOf(k, key, &s)
		it.forced = direct // it is done, whatever has been set meanwhile
		if !sh.storeLocked(nowNs, t, b, slot, &it) {
			return store.ErrFull
		}
		sh.changedLocked(k.hash)
	}
	if err == nil {
		sh.counts.count(d)
	}
	return err
}

// surelyStoresLocked says whether a state can be written, whatever it becomes.
func (sh *shard) surelyStoresLocked() bool { return !sh.frozen && !sh.budget.refuses.Load() }
