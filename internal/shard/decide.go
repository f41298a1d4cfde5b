package shard

import (
	"encoding/binary"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/value"
	"cellserver/internal/store"
)

// keepScratch is the largest retained buffer.
const keepScratch = 8 << 10

// decideLocked decides a request that is not a plain funnel's, or on a key that is not.
func (sh *shard) decideLocked(nowNs int64, k keyRef, q *store.Request) {
	switch {
	case q.Rule.Kind == limiter.Value:
		if sh.countLocked(nowNs, k, q) {
			return
		}
	case q.Rule.Flags&limiter.AtMost != 0: // decided twice
	case q.Rule.Kind != limiter.Funnel && q.Rule.Kind != limiter.SlidingWindow && (sh.decideShapeLocked(nowNs, k, q) || sh.decideAgainLocked(nowNs, k, q)):
		return
	}
	err := sh.doLocked(nowNs, k, &q.Key, q.Rule.Kind, q)
	if err != nil && q.Rule.ForgoBlock(&q.Result) {
		err = sh.doLocked(nowNs, k, &q.Key, q.Rule.Kind, q)
	}
	if err == nil {
		sh.counts.count(q.Outcome())
	}
	q.End(err)
}

// decideAgainLocked is decideLocked for a key, live or not swept yet, whose payload is changed in place. It
// returns false, with no effect, for others.
func (sh *shard) decideAgainLocked(nowNs int64, k keyRef, q *store.Request) (done bool) {
	t := &sh.long
	b, slot, r := t.findRecord(k, &q.Key, q.Rule.Kind)
	if b == nil || r.joined || !sh.surelyStoresLocked() {
		return false
	}
	expiresNs, changed, ok := q.Rule.DecideAgain(r.bytes[r.payload:r.end:r.end], b.tatNs(slot), nowNs, q.Quantity, &q.Result)
	if !ok {
		return false
	}
	if changed {
		if b.tatNs(slot) <= nowNs {
			sh.expired++
		}
		t.versions++
		binary.LittleEndian.PutUint64(r.bytes, t.versions)
		t.changeTAT(k.hash, b, slot, expiresNs)
		sh.changedLocked(k.hash)
		sh.debitedLocked(nowNs, q)
	}
	sh.answeredLocked(q)
	return true
}

// answeredLocked counts a request that was decided without its own steps.
func (sh *shard) answeredLocked(q *store.Request) {
	q.Err = nil
	sh.counts.add(q.Rule.Kind, q.Quantity, q.Result.Limited)
	if q.Result.Marks&funnel.Cut != 0 {
		sh.counts.cut++
	}
}

// countLocked is decideLocked for a live value. It returns false, with no effect, for others.
func (sh *shard) countLocked(nowNs int64, k keyRef, q *store.Request) (done bool) {
	t := &sh.values
	b, slot, r := t.findRecord(k, &q.Key, limiter.Value)
	if b == nil || b.tatNs(slot) <= nowNs {
		return false
	}
	s := limiter.State{Kind: limiter.Value, ExpiresNs: b.tatNs(slot), Payload: r.bytes[r.payload:r.end:r.end]}
	if q.Rule.Writes() && (r.joined || !value.IsCounter(s.Payload) || nowNs >= sh.frozenNs) {
		return false
	}
	changed, err := q.Rule.DecideValue(&s, nowNs, &q.Result)
	if changed {
		if s.ExpiresNs != b.tatNs(slot) {
			sh.retimeLocked(nowNs, k, q, b, slot, s.ExpiresNs)
		} else if t.tracked {
			t.mark(t.segmentOf(k.hash), b, slot, markChanged)
		}
		sh.changedLocked(k.hash)
	}
	q.End(err)
	return true
}

// retimeLocked gives a live value another expiry, or removes it.
func (sh *shard) retimeLocked(nowNs int64, k keyRef, q *store.Request, b *bucket, slot int, expiresNs int64) {
	if expiresNs > nowNs {
		sh.values.changeTAT(k.hash, b, slot, expiresNs)
		return
	}
	it := sh.itemOf(k, &q.Key, &limiter.State{ExpiresNs: nowNs})
	sh.storeLocked(nowNs, &sh.values, b, slot, &it)
}

func (sh *shard) applyLocked(nowNs int64, k keyRef, key *store.Key, step store.Step) error {
	err := sh.doLocked(nowNs, k, key, step.Traits().Kind, step)
	if err == nil {
		sh.counts.count(step.Outcome())
	}
	return err
}

// doLocked applies a step to a key's state, most likely of a given kind. A payload is changed in place if
// that cannot be refused afterwards, else copied.
func (sh *shard) doLocked(nowNs int64, k keyRef, key *store.Key, likely limiter.Kind, step store.Step) error {
	t, b, slot := sh.findOf(likely, k, key)
	s := &sh.state
	*s = limiter.State{Payload: sh.scratch[:0]}
	r, direct := record{}, false
	if b != nil {
		s.Kind, s.ExpiresNs = t.kindAt(b, slot), b.tatNs(slot)
		if s.Kind != limiter.Funnel && s.ExpiresNs > nowNs { // else the payload is void
			if n := t.shape(b, slot); n > 0 {
				s.Payload = t.appendShaped(s.Payload, b, slot, n)
			} else if r = t.recordAt(b, slot); !r.joined && sh.surelyStoresLocked() {
				direct = true
				s.Payload = r.bytes[r.payload:r.end:len(r.bytes)]
			} else {
				s.Payload = append(s.Payload, r.bytes[r.payload:r.end]...)
			}
		}
	}
	kind, notes := s.Kind, s.Kind == limiter.Named && r.bytes != nil || step.Traits().Spends // perhaps
	if sh.notes.Reset(); notes {
		s.Notes = &sh.notes
	}
	changed, err := step.Do(s, nowNs)
	if !direct && !step.Traits().KeepsPayload && cap(s.Payload) > cap(sh.scratch) && cap(s.Payload) <= keepScratch {
		sh.scratch = s.Payload[:0] // of the step's making, and not its own
	}
	switch {
	case !changed:
		if notes = notes && direct; direct && len(s.Payload) != r.end-r.payload {
			t.rewrite(b, slot, &r, s.Payload, false) // the payload was tidied up
		}
	case nowNs >= sh.frozenNs:
		err = sh.frozenBy
	case r.bytes != nil && s.Kind == kind && s.ExpiresNs > nowNs && t.rewrite(b, slot, &r, s.Payload, true):
		t.changeTAT(k.hash, b, slot, s.ExpiresNs)
		sh.changedLocked(k.hash)
	default:
		if direct && b.place(slot) == placeArena && (!step.Traits().KeepsPayload || sameBuffer(s.Payload, r.bytes[r.payload:])) {
			s.Payload = append(sh.scratch[:0], s.Payload...) // arena records may move
		}
		it := sh.itemOf(k, key, s)
		it.forced = direct && !step.Traits().KeepsPayload // it has happened, whatever the bound is now
		if sh.storeLocked(nowNs, t, b, slot, &it) {
			sh.changedLocked(k.hash)
		} else {
			err = store.ErrFull
		}
	}
	if notes && (err == nil || !changed) { // the payload is kept
		if sh.noteLocked(key.Name, &sh.notes); !changed && sh.notes.HasSpent() { // a disk has the holds still
			t.noteNew(t.segmentOf(k.hash), b, slot)
		}
	}
	s.Payload = nil // it would stay alive
	return err
}

// surelyStoresLocked reports whether any state that results from a change in place can be written. A value
// changed so does not grow.
func (sh *shard) surelyStoresLocked() bool {
	return sh.frozenNs == store.Never && !sh.long.budget.refuses.Load()
}
