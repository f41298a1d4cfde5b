package shard

import (
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

const (
	// txSpare is the room that a copy of a payload has for what is appended.
	txSpare = 64
	// txPayloadBytes is how much a transaction may hold of payloads: so much is read in a millisecond, and written in another
	// while others wait.
	txPayloadBytes = 4 << 20
	// txCopyBytes is how much of payloads a transaction may copy while others wait, beside reading them: what is written behind a
	// Save is written to a copy, as often as there is one. Measured: 8 MiB take 2 ms, or 4 on a busy machine.
	txCopyBytes = 8 << 20
	// mostGrowth is more than a payload can grow at a time.
	mostGrowth = 512 << 10
)

// Throttle implements store.Keys. A request sees what the transaction has written before. The time is the one at
// which the transaction began, here and below.
func (t *tx) Throttle(_ int64, batch []store.Request) store.Pending {
	for i := range batch {
		q := &batch[i]
		if st := t.state(&q.Key); q.Rule.Kind == limiter.Funnel && st.state.Kind == limiter.Funnel {
			q.End(t.throttle(st, q))
		} else {
			q.End(t.do(st, q))
		}
	}
	return nil
}

// throttle is do for a plain funnel.
func (t *tx) throttle(st *txState, q *store.Request) error {
	tatNs, r := q.Rule.Funnel.ThrottleIn(q.Rule.Unit, st.state.ExpiresNs, t.nowNs, q.Quantity)
	if tatNs != st.state.ExpiresNs {
		if err := t.mayStore(st, &limiter.State{ExpiresNs: tatNs}); err != nil {
			return err
		}
		st.state.ExpiresNs, st.written = tatNs, true
	}
	t.counts.add(limiter.Funnel, q.Quantity, r.Limited)
	q.Result = r
	return nil
}

// Apply implements store.Keys.
func (t *tx) Apply(_ int64, key store.Key, step store.Step) error { return t.do(t.state(&key), step) }

// do does a step to a state. A payload that others may have, or to which the state may have to go back, is
// copied before.
func (t *tx) do(st *txState, step store.Step) error {
	if err := t.load(st); err != nil {
		return err
	}
	s := &t.work
	*s = st.state
	inPlace := st.own && t.surelyStores(st)
	if len(s.Payload) > 0 && !inPlace && !step.Traits().KeepsPayload {
		if t.phase == txLocked && !t.copies.may(len(s.Payload)) {
			return store.ErrTooLarge
		}
		s.Payload = append(make([]byte, 0, len(s.Payload)+txSpare), s.Payload...)
	}
	changed, err := step.Do(s, t.nowNs)
	if changed {
		if err = t.mayStore(st, s); err == nil {
			st.own = st.own || !sameBuffer(s.Payload, st.state.Payload)
			st.state, st.written = *s, true
		}
	} else if inPlace && st.state.ExpiresNs > t.nowNs {
		st.state.Payload = s.Payload // it may have been tidied up
	}
	if err == nil {
		t.counts.count(step.Outcome())
	}
	return err
}

// sameBuffer reports whether two payloads begin at the same place.
func sameBuffer(a, b []byte) bool { return cap(a) > 0 && cap(b) > 0 && &a[:1][0] == &b[:1][0] }

// copies counts the bytes of payloads that are copied under locks.
type copies int

// may says whether so many more may be copied, and counts them.
func (c *copies) may(bytes int) bool {
	if int(*c)+bytes > txCopyBytes {
		return false
	}
	*c += copies(bytes)
	return true
}

// load gives a state the payload that it had at the beginning. Where others have changed it since, the state becomes that of no
// key: the transaction will not be committed.
func (t *tx) load(st *txState) error {
	if st.loaded {
		return nil
	}
	sh := t.store.shardOf(st.ref.hash)
	if t.phase == txReleased {
		sh.mu.Lock()
		defer sh.mu.Unlock()
	}
	if sh.identityLocked(t.nowNs, st.ref, &st.key) != st.found {
		t.stale, st.loaded, st.state = true, true, limiter.State{ExpiresNs: t.nowNs}
		return nil
	}
	table, b, slot := sh.find(st.ref, &st.key)
	payload := table.payloadAt(b, slot)
	if t.held+len(payload) > txPayloadBytes {
		return store.ErrTooLarge
	}
	t.held += len(payload)
	st.loaded = true
	st.state.Payload, st.own = append(make([]byte, 0, len(payload)+txSpare), payload...), true
	st.bytes = table.entryBytes(b, slot)
	return nil
}

// surelyStores says whether a state can be written, whatever it becomes.
func (t *tx) surelyStores(st *txState) bool {
	if t.phase == txReleased || t.held+mostGrowth > txPayloadBytes { // when it may be frozen at any time
		return false
	}
	return t.store.shardOf(st.ref.hash).surelyStoresLocked()
}

// mayStore says whether a key may have a state, and counts what the transaction holds then.
func (t *tx) mayStore(st *txState, s *limiter.State) error {
	more := len(s.Payload) - len(st.state.Payload)
	if more > 0 && t.held+more > txPayloadBytes {
		return store.ErrTooLarge
	}
	if err := t.hasRoom(st, s); err != nil {
		return err
	}
	t.held += more
	return nil
}

// hasRoom says whether there is room for a state: one that was not found, or has grown, needs room where keys are refused. It is
// kept for the transaction, in bytes of the budget that others may take nevertheless: then Commit goes beyond it by that little.
func (t *tx) hasRoom(st *txState, s *limiter.State) error {
	sh := t.store.shardOf(st.ref.hash)
	if t.phase == txReleased {
		sh.mu.Lock()
		defer sh.mu.Unlock()
	}
	if sh.frozen {
		return store.ErrFrozen
	}
	if s.ExpiresNs <= t.nowNs || !t.store.budget.refuses.Load() {
		return nil
	}
	it := itemOf(st.ref, &st.key, s)
	growth, made := t.growthLocked(sh, st, &it)
	if growth > 0 && !t.store.budget.fits(t.bytes+growth) {
		sh.refused++
		return store.ErrFull
	}
	if made {
		st.added = true
		t.added++
	}
	t.bytes += growth
	if !it.isInline() {
		st.bytes = max(st.bytes, it.recordBytes())
	}
	return nil
}

// growthLocked returns how many bytes a state takes in addition to what was found of it and what it was granted, or almost, and
// whether it makes a key.
func (t *tx) growthLocked(sh *shard, st *txState, it *item) (growth int, made bool) {
	if st.found.expiresNs > t.nowNs || st.added {
		if it.isInline() || it.recordBytes() <= st.bytes || it.kind == limiter.Funnel && st.found.kind == limiter.Funnel {
			return 0, false
		}
		return it.recordBytes() - st.bytes, false
	}
	table := sh.tableOf(it)
	growth = table.growth(it)
	if table.directory != nil && int(table.segmentOf(st.ref.hash).used)+t.added >= int(table.full()) {
		growth += segmentBytes // as all that were added may be in this one
	}
	if t.added > 0 && table.long {
		growth = max(growth, it.recordBytes()) // as those that were added may have taken what is free
	}
	return growth, true
}
