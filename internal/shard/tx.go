package shard

import (
	"bytes"
	"cmp"
	"slices"

	"cellserver/internal/funnel"
	"cellserver/internal/store"
)

// tx implements store.Transaction. Its begin locks the shards of its keys, in index order, so that no two
// transactions wait for each other, and reads all states: from then on it works on those, and what it writes is
// buffered until Commit.
type tx struct {
	store  *Store
	nowNs  int64
	phase  txPhase
	states []txState // sorted by hash, and so by shard; each key once. None when it has ended
	added  int       // keys that it will make
	bytes  int       // that they take at the most, or almost
}

type txPhase uint8

const (
	txEnded txPhase = iota
	txLocked
	txReleased
)

type txState struct {
	key     store.Key
	ref     keyRef
	foundNs int64 // the TAT at the beginning; nowNs if absent
	tatNs   int64 // as it is in the transaction
	written bool
	added   bool // there is room for it
	counts  counts
}

// Begin implements store.Transactor.
func (s *Store) Begin(nowNs int64, keys []store.Key) store.Transaction { return s.begin(nowNs, keys) }

func (s *Store) begin(nowNs int64, keys []store.Key) *tx {
	t := &tx{store: s, nowNs: nowNs, states: s.arrange(keys)}
	t.lock()
	for i := range t.states {
		t.touchLocked(i)
		st := &t.states[i]
		st.foundNs = t.shard(i).tatLocked(nowNs, st.ref, &st.key)
		st.tatNs = st.foundNs
	}
	return t
}

// arrange sorts keys by their hashes, and leaves out those that are there already.
func (s *Store) arrange(keys []store.Key) []txState {
	type place struct { // smaller to sort than a state
		hash uint64
		i    int
	}
	order := make([]place, 0, 16) // on the stack for so many
	for i := range keys {
		order = append(order, place{hashKey(s.seed, keys[i].DB, keys[i].Name), i})
	}
	slices.SortFunc(order, func(a, b place) int { return compareKeys(a.hash, &keys[a.i], b.hash, &keys[b.i]) })
	states := make([]txState, 0, len(keys))
	for _, o := range order {
		key, n := &keys[o.i], len(states)
		if n == 0 || compareKeys(o.hash, key, states[n-1].ref.hash, &states[n-1].key) != 0 {
			states = append(states, txState{key: *key, ref: refOf(key, o.hash)})
		}
	}
	return states
}

func compareKeys(hashA uint64, a *store.Key, hashB uint64, b *store.Key) int {
	if hashA != hashB {
		return cmp.Compare(hashA, hashB)
	}
	return cmp.Or(cmp.Compare(a.DB, b.DB), bytes.Compare(a.Name, b.Name))
}

func (t *tx) shard(i int) *shard { return t.store.shardOf(t.states[i].ref.hash) }

func (t *tx) firstOfShard(i int) bool { return i == 0 || t.shard(i) != t.shard(i-1) }

// touchLocked loads what a key and those behind it are looked up in, so that the cache misses of many keys overlap: others
// wait for all of them.
func (t *tx) touchLocked(i int) {
	if i%windowRequests != 0 || len(t.states) < windowRequests {
		return
	}
	sum := uint64(0)
	for j := i; j < min(i+windowRequests, len(t.states)); j++ {
		ref := t.states[j].ref
		sum += t.shard(j).tableOf(ref).touch(ref.hash)
	}
	t.shard(i).touched = sum
}

func (t *tx) lock() {
	t.phase = txLocked
	for i := range t.states {
		if t.firstOfShard(i) {
			t.shard(i).mu.Lock()
		}
	}
}

func (t *tx) unlock() {
	t.phase = txReleased
	for i := range t.states {
		if t.firstOfShard(i) {
			t.shard(i).mu.Unlock()
		}
	}
}

// Release implements store.Transaction: it gives the locks up.
func (t *tx) Release() {
	if t.phase == txLocked {
		t.unlock()
	}
}

// state finds a key among those of the transaction.
func (t *tx) state(key *store.Key) *txState {
	hash := hashKey(t.store.seed, key.DB, key.Name)
	from, to := 0, len(t.states)
	for from < to {
		middle := int(uint(from+to) / 2)
		st := &t.states[middle]
		switch c := compareKeys(st.ref.hash, &st.key, hash, key); {
		case c == 0:
			return st
		case c < 0:
			from = middle + 1
		default:
			to = middle
		}
	}
	panic("shard: a key was not given to the transaction's Begin")
}

// Throttle implements store.Keys. A request sees what the transaction has written before. The time is the one at
// which the transaction began, here and below.
func (t *tx) Throttle(_ int64, batch []store.Request) store.Pending {
	for i := range batch {
		q := &batch[i]
		st := t.state(&q.Key)
		tatNs, r := q.Limit.Throttle(st.tatNs, t.nowNs, q.Quantity)
		if tatNs != st.tatNs {
			if err := t.mayStore(st, tatNs); err != nil {
				q.Result, q.Err = funnel.Result{}, err
				continue
			}
			st.tatNs, st.written = tatNs, true
		}
		st.counts.add(q.Quantity, r.Limited)
		q.Result, q.Err = r, nil
	}
	return nil
}

// mayStore says whether a key may have a TAT: one that was not found needs room, where keys are refused. It is kept for
// the transaction, in bytes of the budget that others may take nevertheless: then Commit goes beyond it by that little.
func (t *tx) mayStore(st *txState, tatNs int64) error {
	sh := t.store.shardOf(st.ref.hash)
	if t.phase == txReleased {
		sh.mu.Lock()
		defer sh.mu.Unlock()
	}
	if sh.frozen {
		return store.ErrFrozen
	}
	if st.foundNs > t.nowNs || st.added || tatNs <= t.nowNs || !t.store.budget.refuses.Load() {
		return nil
	}
	table := sh.tableOf(st.ref)
	growth := table.growth(st.ref, &st.key)
	if table.directory != nil && int(table.segmentOf(st.ref.hash).used)+t.added >= int(table.full()) {
		growth += segmentBytes // as all that were added may be in this one
	}
	if t.added > 0 && st.ref.isLong() {
		growth = max(growth, recordBytes(&st.key)) // as those that were added may have taken what is free
	}
	if growth > 0 && !t.store.budget.fits(t.bytes+growth) {
		sh.refused++
		return store.ErrFull
	}
	st.added, t.added, t.bytes = true, t.added+1, t.bytes+growth
	return nil
}

// holds implements pins: no key of a transaction is evicted for another.
func (t *tx) holds(hash uint64) bool {
	_, found := slices.BinarySearchFunc(t.states, hash, func(st txState, hash uint64) int { return cmp.Compare(st.ref.hash, hash) })
	return found
}

// TAT implements store.Keys.
func (t *tx) TAT(_ int64, key store.Key) (tatNs int64, ok bool, err error) {
	st := t.state(&key)
	return st.tatNs, st.tatNs > t.nowNs, nil
}

// Delete implements store.Keys.
func (t *tx) Delete(_ int64, keys []store.Key) (deleted int, err error) {
	for i := range keys {
		if st := t.state(&keys[i]); st.tatNs > t.nowNs {
			st.tatNs, st.written = t.nowNs, true
			deleted++
		}
	}
	return deleted, nil
}

// SetIf implements store.Keys.
func (t *tx) SetIf(_ int64, key store.Key, tatNs int64, when store.Condition) (foundNs int64, found bool, err error) {
	st := t.state(&key)
	foundNs, found = st.tatNs, st.tatNs > t.nowNs
	if !when.Holds(found) || !found && tatNs <= t.nowNs {
		return foundNs, found, nil
	}
	if err = t.mayStore(st, tatNs); err == nil {
		st.tatNs, st.written = max(tatNs, t.nowNs), true
	}
	return foundNs, found, err
}

// SetTAT implements store.Restorer. With the state that was found, nothing has been written.
func (t *tx) SetTAT(key store.Key, tatNs int64) {
	st := t.state(&key)
	st.tatNs = max(tatNs, t.nowNs)
	st.written = st.tatNs != st.foundNs
}

// Commit implements store.Transaction.
func (t *tx) Commit() bool {
	if t.phase == txEnded {
		return false
	}
	defer t.Rollback()
	if t.phase == txReleased {
		if !t.written() {
			t.countReleased()
			return true
		}
		if t.lock(); !t.unchangedLocked() {
			return false
		}
	}
	for i := range t.states {
		st, sh := &t.states[i], t.shard(i)
		sh.counts.merge(&st.counts)
		if st.written {
			b, slot := sh.find(st.ref, &st.key)
			sh.pins = t
			sh.forceLocked(st.ref, &st.key, b, slot, t.nowNs, st.tatNs)
			sh.pins = nil
			sh.changedLocked(st.ref.hash)
		}
	}
	return true
}

// Rollback implements store.Transaction.
func (t *tx) Rollback() {
	t.Release()
	t.phase, t.states = txEnded, nil // the names are the caller's
}

// unchangedLocked compares TATs, and so misses a key that was changed and changed back. That is right: a TAT is
// the whole state, so the transaction would have read and written the same now. For the same reason one that has
// written nothing needs no look: it happened when it read.
func (t *tx) unchangedLocked() bool {
	for i := range t.states {
		t.touchLocked(i)
		st := &t.states[i]
		if t.shard(i).tatLocked(t.nowNs, st.ref, &st.key) != st.foundNs {
			return false
		}
	}
	return true
}

func (t *tx) written() bool {
	return slices.ContainsFunc(t.states, func(st txState) bool { return st.written })
}

// countReleased counts the requests of a transaction that has nothing to write, and so needs no two locks at once.
func (t *tx) countReleased() {
	for i := range t.states {
		if st, sh := &t.states[i], t.shard(i); st.counts != (counts{}) {
			sh.mu.Lock()
			sh.counts.merge(&st.counts)
			sh.mu.Unlock()
		}
	}
}
