package shard

import (
	"slices"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// A named limit's state of a single funnel is stored as a plain funnel, with the number of its Single in
// place of a payload: in the meta of an inline key, or behind the name of a long one. Few limits have
// different ones. Where a shard has more than there are numbers for, the others' states have payloads.
type singles struct {
	all    [mostSingles + 1]limiter.Single // by number; 0 is none
	states [mostSingles + 1]int            // that have the number
}

const (
	mostSingles   = 1<<8 - 1
	inlineSingles = 1<<singleBits - 1 // the numbers of inline keys
	singleBytes   = 1                 // of a number behind a name
)

// number returns a Single's number, which it may get by this call, or 0.
func (n *singles) number(f limiter.Single) int {
	if i := slices.Index(n.all[1:], f); i >= 0 {
		return i + 1
	}
	for i := 1; i < len(n.all); i++ {
		if n.states[i] == 0 {
			n.all[i] = f
			return i
		}
	}
	return 0
}

// single returns the number of an entry's Single, 0 for none.
func (t *table) single(b *bucket, slot int) int {
	switch {
	case !t.long:
		return int(b.inlineCode(slot) >> singleShift & inlineSingles)
	case b.kind(slot) != laneSingle:
		return 0
	case b.place(slot) == placeLarge:
		buf := t.large.bufs[numberOf(b.locator(slot))]
		return int(buf[len(buf)-singleBytes])
	}
	record := t.record(b.locator(slot))
	return int(record[len(record)-singleBytes])
}

// decideSingleLocked is decideAgainLocked for a limit with a single funnel.
func (sh *shard) decideSingleLocked(nowNs int64, k keyRef, q *store.Request) (done bool) {
	t, b, slot := sh.find(k, &q.Key)
	if b == nil || !sh.surelyStoresLocked() {
		return false
	}
	n := t.single(b, slot)
	if n == 0 {
		return false
	}
	expiresNs, changed, ok := q.Rule.DecideSingle(sh.singles.all[n], b.tatNs(slot), nowNs, q.Quantity, &q.Result)
	if !ok {
		return false
	}
	if changed {
		if b.tatNs(slot) <= nowNs {
			sh.expired++
		}
		t.changeTAT(k.hash, b, slot, expiresNs)
		sh.changedLocked(k.hash)
	}
	q.Err = nil
	sh.counts.add(limiter.Named, q.Quantity, q.Result.Limited)
	if q.Result.Marks&funnel.Cut != 0 {
		sh.counts.cut++
	}
	return true
}
