package shard

import (
	"slices"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Most states are of a few shapes. One of a numbered shape is stored without a payload: a named limit's single
// funnel as a plain one, with the number in the meta of an inline key or behind the name of a long one; and
// others with short keys, and the shape's words, in the packed table. Where a table has more shapes than
// numbers, states of the others have payloads.
type shapes struct {
	most   int             // number
	all    []limiter.Shape // by number, from 1 on
	states []int           // that have the number
}

const (
	mostInlineShapes = 1<<shapeBits - 1
	mostLongShapes   = 1<<8 - 1
	numberBytes      = 1 // of a number behind a name
)

// number returns a shape's number, which it may get by this call, or 0.
func (s *shapes) number(f *limiter.Shape) int {
	free := len(s.all)
	for i := 1; i < len(s.all); i++ {
		if s.all[i] == *f {
			return i
		}
		if s.states[i] == 0 {
			free = min(free, i)
		}
	}
	if free = max(free, 1); free > s.most {
		return 0
	}
	if free >= len(s.all) {
		s.all = slices.Grow(s.all, free+1-len(s.all))[:free+1]
		s.states = slices.Grow(s.states, free+1-len(s.states))[:free+1]
	}
	s.all[free] = *f
	return free
}

// pack gives an item's shape a number, if the item is one of a shape.
func (sh *shard) pack(it *item, s *limiter.State) {
	f, w, ok := limiter.Pack(s)
	if !ok {
		return
	}
	it.words, it.hasWords = w, f.HasWords()
	switch {
	case it.hasWords:
		if !it.ref.isLong() {
			it.shape = sh.packed.shapes.number(&f)
		}
	case !it.ref.isLong():
		it.shape = sh.inline.shapes.number(&f)
	default:
		it.shape = sh.long.shapes.number(&f)
	}
}

// shape returns the number of an entry's shape, 0 for none.
func (t *table) shape(b *bucket, slot int) int {
	switch {
	case !t.long:
		return int(b.inlineCode(slot) >> shapeShift & mostInlineShapes)
	case b.kind(slot) != laneShape:
		return 0
	case b.place(slot) == placeLarge:
		buf := t.large.bufs[numberOf(b.locator(slot))]
		return int(buf[len(buf)-numberBytes])
	}
	record := t.record(b.locator(slot))
	return int(record[len(record)-numberBytes])
}

func (t *table) wordsAt(b *bucket, slot int) (w limiter.Words) {
	if t.packed {
		copy(w[:], b[packedWord+len(w)*slot:])
	}
	return w
}

func (b *bucket) setWords(slot int, w limiter.Words) { copy(b[packedWord+len(w)*slot:], w[:]) }

// decideShapeLocked is decideAgainLocked for a state of a shape.
func (sh *shard) decideShapeLocked(nowNs int64, k keyRef, q *store.Request) (done bool) {
	t, b, slot := sh.findShape(k, q)
	if b == nil || !sh.surelyStoresLocked() {
		return false
	}
	n := t.shape(b, slot)
	if n == 0 {
		return false
	}
	f, beforeNs := &t.shapes.all[n], b.tatNs(slot)
	var expiresNs int64
	var changed, ok bool
	if !t.packed {
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
	}
	q.Err = nil
	sh.counts.add(q.Rule.Kind, q.Quantity, q.Result.Limited)
	if q.Result.Marks&funnel.Cut != 0 {
		sh.counts.cut++
	}
	return true
}

// findShape finds a key where states of the request's rule are most likely.
func (sh *shard) findShape(k keyRef, q *store.Request) (t *table, b *bucket, slot int) {
	t = sh.tableOfRequest(q)
	b, slot = t.find(k, &q.Key)
	return t, b, slot
}

// decideWordsLocked decides on a copy of the payload and changes the words.
func (sh *shard) decideWordsLocked(nowNs int64, b *bucket, slot int, f *limiter.Shape, q *store.Request) (expiresNs int64, changed, ok bool) {
	payload := f.AppendPayload(sh.scratch[:0], b.tatNs(slot), sh.packed.wordsAt(b, slot))
	expiresNs, changed, ok = q.Rule.DecideAgain(payload, b.tatNs(slot), nowNs, q.Quantity, &q.Result)
	if !ok || !changed {
		return expiresNs, changed, ok
	}
	after, w, ok := limiter.Pack(&limiter.State{Kind: q.Rule.Kind, ExpiresNs: expiresNs, Payload: payload})
	if !ok || after != *f {
		return 0, false, false
	}
	b.setWords(slot, w)
	return expiresNs, true, true
}
