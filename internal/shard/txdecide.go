package shard

import (
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

const (
	// txSpare is the room in a copied payload for appending, beside a share of a long one.
	txSpare      = 64
	txSpareShare = 32
	// maxBufferBytes bounds the buffer of a pooled transaction: a payload with as many holds as may be.
	maxBufferBytes = 320 << 10
	// txPayloadBytes bounds a transaction's payloads: reading takes a millisecond, writing, while others
	// wait, another.
	txPayloadBytes = 4 << 20
	// txCopyBytes bounds the payloads copied while others wait: each write after a Save copies. Measured: 8
	// MiB take 2 ms, 4 on a busy machine.
	txCopyBytes = 8 << 20
	// mostGrowth exceeds any single growth of a payload.
	mostGrowth = 512 << 10
)

// Throttle implements store.Keys. Requests see earlier writes of the transaction. Here and below, the time is
// that of its beginning.
func (t *tx) Throttle(_ int64, batch []store.Request) store.Pending {
	for i := range batch {
		q := &batch[i]
		if st := t.state(&q.Key); q.Rule.Kind == limiter.Funnel && q.Rule.Flags == 0 && st.state.Kind == limiter.Funnel {
			q.End(t.throttle(st, q))
		} else {
			err := t.do(st, q)
			if err != nil && q.Rule.ForgoBlock(&q.Result) {
				err = t.do(st, q)
			}
			q.End(err)
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

func (t *tx) Apply(_ int64, key store.Key, step store.Step) error { return t.do(t.state(&key), step) }

// do applies a step to a state. It copies a payload that is shared or may have to be restored.
func (t *tx) do(st *txState, step store.Step) error {
	if err := t.load(st); err != nil {
		return err
	}
	s := &t.work
	*s = st.state
	notes := st.notes
	if s.Kind == limiter.Named || step.Traits().Spends { // it may have holds
		s.Notes = &st.notes
	}
	inPlace := st.own && t.surelyStores(st)
	if len(s.Payload) > 0 && !inPlace && !step.Traits().KeepsPayload {
		if t.phase == txLocked && !t.copies.may(len(s.Payload)) {
			return store.ErrTooLarge
		}
		s.Payload = append(make([]byte, 0, len(s.Payload)+txSpare), s.Payload...)
	}
	changed, err := step.Do(s, t.nowNs)
	s.Notes = nil
	if changed {
		if err = t.mayStore(st, s); err == nil {
			st.own = st.own || !sameBuffer(s.Payload, st.state.Payload)
			st.state, st.written = *s, true
			t.joined = t.joined || step.Traits().Joined
			notes = st.notes
		}
	} else if inPlace && st.state.ExpiresNs > t.nowNs {
		st.state.Payload = s.Payload // it may be tidied
		notes = st.notes
	}
	st.notes = notes // of what is kept
	if err == nil {
		t.counts.count(step.Outcome())
	}
	return err
}

// sameBuffer reports whether two payloads share their start.
func sameBuffer(a, b []byte) bool { return cap(a) > 0 && cap(b) > 0 && &a[:1][0] == &b[:1][0] }

// copies counts bytes of payloads copied under locks.
type copies int

// may counts bytes to copy and reports whether they are permitted.
func (c *copies) may(bytes int) bool {
	if int(*c)+bytes > txCopyBytes {
		return false
	}
	*c += copies(bytes)
	return true
}

// load reads a state's initial payload. If others have changed it, the state becomes an absent key's: the
// transaction will fail.
func (t *tx) load(st *txState) error {
	if st.loaded {
		return nil
	}
	sh := t.lockFor(st)
	defer t.unlockFor(sh)
	if t.phase == txReleased && sh.identityLocked(t.nowNs, st.ref, &st.key) != st.found {
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
	st.state.Payload, st.own = append(t.room(len(payload)), payload...), true
	st.bytes = table.entryBytes(b, slot)
	return nil
}

// room returns an empty buffer for a payload until the transaction's end, with room for appending. A large
// one is kept for the next transaction.
func (t *tx) room(bytes int) []byte {
	bytes += txSpare + bytes/txSpareShare
	from := len(t.buffer)
	if from+bytes > cap(t.buffer) {
		if bytes > maxBufferBytes {
			return make([]byte, 0, bytes)
		}
		t.buffer, from = make([]byte, 0, max(bytes, min(2*cap(t.buffer), maxBufferBytes))), 0 // earlier payloads keep theirs
	}
	t.buffer = t.buffer[:from+bytes]
	return t.buffer[from:from:len(t.buffer)]
}

// surelyStores reports whether any resulting state can be written.
func (t *tx) surelyStores(st *txState) bool {
	if t.phase == txReleased || t.held+mostGrowth > txPayloadBytes { // it may be frozen at any time
		return false
	}
	return t.store.shardOf(st.ref.hash).surelyStoresLocked()
}

// mayStore reports whether a state may be written, and counts its bytes.
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

// hasRoom reports whether a new or grown state fits. The budget is not reserved, so Commit may exceed it
// slightly.
func (t *tx) hasRoom(st *txState, s *limiter.State) error {
	sh := t.lockFor(st)
	defer t.unlockFor(sh)
	if t.nowNs >= sh.frozenNs {
		return sh.frozenBy
	}
	it := sh.itemOf(st.ref, &st.key, s)
	table := sh.tableOf(&it)
	if s.ExpiresNs <= t.nowNs || !table.mayRefuse() {
		return nil
	}
	growth, made := t.growthLocked(sh, st, &it)
	bytes := &t.bytes
	if table.values {
		bytes = &t.valueBytes
	}
	if growth > 0 && !table.budget.admits(*bytes+growth) {
		table.refused++
		return store.ErrFull
	}
	if made {
		st.added = true
		t.added++
	}
	*bytes += growth
	if table.long {
		st.bytes = max(st.bytes, it.recordBytes())
	}
	return nil
}

// growthLocked returns a state's approximate growth beyond what was found and granted, and whether it creates
// a key.
func (t *tx) growthLocked(sh *shard, st *txState, it *item) (growth int, made bool) {
	if st.found.expiresNs > t.nowNs || st.added {
		if !sh.tableOf(it).long || it.recordBytes() <= st.bytes || it.kind == limiter.Funnel && st.found.kind == limiter.Funnel {
			return 0, false
		}
		return it.recordBytes() - st.bytes, false
	}
	table := sh.tableOf(it)
	growth = table.growth(it)
	if table.directory != nil && int(table.segmentOf(st.ref.hash).used)+t.added >= int(table.full()) {
		growth += segmentBytes // all additions may be in one segment
	}
	if t.added > 0 && table.long {
		growth = max(growth, it.recordBytes()) // additions may have used the free bytes
	}
	return growth, true
}
