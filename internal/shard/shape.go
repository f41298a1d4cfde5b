package shard

import (
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Most states are of a few shapes. One of a numbered shape is stored without a payload, with the number in
// the meta of a short key: a named limit's single funnel as a plain funnel, others in the packed table with
// the shape's words. Where a table has more shapes than numbers, states of the others have payloads.
type shapes struct {
	all    [mostShapes + 1]limiter.Shape // by number; 0 is none
	states [mostShapes + 1]int           // that have the number
}

const mostShapes = 1<<shapeBits - 1

// number returns a shape's number, which it may get by this call, or 0.
func (s *shapes) number(f *limiter.Shape) int {
	free := 0
	for i := mostShapes; i > 0; i-- {
		switch {
		case s.all[i] == *f:
			return i
		case s.states[i] == 0:
			free = i
		}
	}
	if free > 0 {
		s.all[free] = *f
	}
	return free
}

// pack gives an item's shape a number, if the item is one of a shape.
func (sh *shard) pack(it *item, s *limiter.State) {
	f, w, ok := limiter.Pack(s)
	if !ok {
		return
	}
	words := f.Words()
	if t := sh.tableOfWords(it.key, words); !t.long {
		it.shape, it.words, it.numWords = t.shapes.number(&f), w, words
	}
}

// shape returns the number of an entry's shape, 0 for none.
func (t *table) shape(b *bucket, slot int) int {
	if t.long {
		return 0
	}
	return int(b.inlineCode(slot) >> shapeShift & mostShapes)
}

// decideShapeLocked is decideAgainLocked for a state of a shape.
func (sh *shard) decideShapeLocked(nowNs int64, k keyRef, q *store.Request) (done bool) {
	t := sh.tableOfRequest(q)
	if t.long {
		return false
	}
	b, slot := t.find(k, &q.Key)
	if b == nil || !sh.surelyStoresLocked() {
		return false
	}
	n := t.shape(b, slot)
	if n == 0 {
		return false
	}
	f, beforeNs := &t.shapes.all[n%len(t.shapes.all)], b.tatNs(slot)
	var expiresNs int64
	var changed, ok bool
	if f.Words() == 0 {
		expiresNs, changed, ok = q.Rule.DecideFunnel(f, beforeNs, nowNs, q.Quantity, &q.Result)
	} else if f.Kind() == q.Rule.Kind {
		expiresNs, changed, ok = sh.decideWordsLocked(nowNs, b, slot, f, q)
	}
	if !ok {
		return false
	}
	if changed {
		if beforeNs <= nowNs {
			sh.expired++
		}
		t.changeTAT(k.hash, b, slot, expiresNs)
		sh.changedLocked(k.hash)
		sh.debitedLocked(nowNs, q)
	}
	sh.answeredLocked(q)
	return true
}

// decideWordsLocked decides on a copy of the payload and changes the words.
func (sh *shard) decideWordsLocked(nowNs int64, b *bucket, slot int, f *limiter.Shape, q *store.Request) (expiresNs int64, changed, ok bool) {
	sh.scratch = f.AppendPayload(sh.scratch[:0], b.tatNs(slot), sh.packed.wordsAt(b, slot, f))
	payload := sh.scratch
	expiresNs, changed, ok = q.Rule.DecideAgain(payload, b.tatNs(slot), nowNs, q.Quantity, &q.Result)
	if !ok || !changed {
		return expiresNs, changed, ok
	}
	w, ok := f.Repack(payload)
	if ok {
		b.setWords(slot, w, f.Words())
	}
	return expiresNs, changed, ok
}
