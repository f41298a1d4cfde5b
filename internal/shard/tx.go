package shard

import (
	"bytes"
	"cmp"
	"slices"

	"cellserver/internal/funnel"
)

// Tx reads and writes several keys as one step. Begin locks their shards, in index order, so that no two
// transactions wait for each other, and reads all states: from then on the Tx works on those, and what it writes is
// kept aside until Commit. It ends with Commit or Rollback, best with a deferred Rollback, which does nothing after
// Commit; until then its goroutine must not use the store but through it, unless it has called Release.
//
// Keys are named by their place in the list that Begin was given; the same key may stand in it more than once. A
// Tx can begin anew when it has ended, and then allocates nothing for a few keys.
type Tx struct {
	store  *Store
	nowNs  int64
	phase  txPhase
	states []txState  // sorted by hash, and so by shard; each key once
	place  []int      // of a key of Begin's list in states
	order  []txListed // what Begin sorts by
}

type txPhase uint8

const (
	txEnded txPhase = iota
	txLocked
	txReleased
)

type txState struct {
	key     Key
	ref     keyRef
	first   int   // the key's first place in Begin's list
	foundNs int64 // the TAT at Begin; nowNs if absent
	tatNs   int64 // as it is in the Tx
	written bool
	counts  counts
}

type txListed struct {
	hash  uint64
	place int
}

// keepTxKeys is for how many keys a Tx that has ended keeps its memory.
const keepTxKeys = 64

// Begin returns a Tx that has locked and read the keys.
func (s *Store) Begin(nowNs int64, keys []Key) *Tx {
	tx := new(Tx)
	tx.Begin(s, nowNs, keys)
	return tx
}

// Begin is Store.Begin with a Tx that has ended or is new; one that has not is rolled back. The names must stay
// as they are until its end.
func (tx *Tx) Begin(s *Store, nowNs int64, keys []Key) {
	tx.Rollback()
	tx.store, tx.nowNs = s, nowNs
	tx.arrange(keys)
	tx.lock()
	for i := range tx.states {
		st := &tx.states[i]
		st.foundNs = tx.shard(i).tatLocked(nowNs, st.ref, &st.key)
		st.tatNs = st.foundNs
	}
}

func (tx *Tx) arrange(keys []Key) {
	tx.order, tx.place = slices.Grow(tx.order[:0], len(keys)), slices.Grow(tx.place[:0], len(keys))[:len(keys)]
	tx.states = slices.Grow(tx.states[:0], len(keys))
	for i := range keys {
		tx.order = append(tx.order, txListed{hashKey(tx.store.seed, keys[i].DB, keys[i].Name), i})
	}
	slices.SortFunc(tx.order, func(a, b txListed) int {
		return cmp.Or(compareKeys(a.hash, &keys[a.place], b.hash, &keys[b.place]), a.place-b.place)
	})
	for _, o := range tx.order {
		key, n := &keys[o.place], len(tx.states)
		if n == 0 || compareKeys(o.hash, key, tx.states[n-1].ref.hash, &tx.states[n-1].key) != 0 {
			tx.states = append(tx.states, txState{key: *key, ref: refOf(key, o.hash), first: o.place})
		}
		tx.place[o.place] = len(tx.states) - 1
	}
}

func compareKeys(hashA uint64, a *Key, hashB uint64, b *Key) int {
	if hashA != hashB {
		return cmp.Compare(hashA, hashB)
	}
	return cmp.Or(cmp.Compare(a.DB, b.DB), bytes.Compare(a.Name, b.Name))
}

func (tx *Tx) shard(i int) *shard { return tx.store.shardOf(tx.states[i].ref.hash) }

func (tx *Tx) firstOfShard(i int) bool { return i == 0 || tx.shard(i) != tx.shard(i-1) }

func (tx *Tx) lock() {
	tx.phase = txLocked
	for i := range tx.states {
		if tx.firstOfShard(i) {
			tx.shard(i).mu.Lock()
		}
	}
}

func (tx *Tx) unlock() {
	tx.phase = txReleased
	for i := range tx.states {
		if tx.firstOfShard(i) {
			tx.shard(i).mu.Unlock()
		}
	}
}

// Release gives the locks up and keeps the states that were read. Others may then change the keys, and Commit
// finds out whether they did: for a transaction that takes longer than others should wait.
func (tx *Tx) Release() {
	if tx.phase == txLocked {
		tx.unlock()
	}
}

// Find returns a key's place in Begin's list, the first if it has several, and false if it is not in it.
func (tx *Tx) Find(key Key) (place int, ok bool) {
	if st := tx.find(&key); st != nil {
		return st.first, true
	}
	return 0, false
}

func (tx *Tx) find(key *Key) *txState {
	hash := hashKey(tx.store.seed, key.DB, key.Name)
	from, to := 0, len(tx.states)
	for from < to {
		middle := int(uint(from+to) / 2)
		st := &tx.states[middle]
		switch c := compareKeys(st.ref.hash, &st.key, hash, key); {
		case c == 0:
			return st
		case c < 0:
			from = middle + 1
		default:
			to = middle
		}
	}
	return nil
}

func (tx *Tx) at(place int) *txState { return &tx.states[tx.place[place]] }

// TAT returns a key's TAT in Unix nanoseconds, and false if it is absent.
func (tx *Tx) TAT(place int) (tatNs int64, ok bool) { return tx.tat(tx.at(place)) }

// Delete removes a key, and reports whether it was live.
func (tx *Tx) Delete(place int) bool { return tx.delete(tx.at(place)) }

// Throttle asks a key's funnel for quantity units. It sees what the Tx has written before.
func (tx *Tx) Throttle(place int, limit funnel.Limit, quantity int64) funnel.Result {
	return tx.throttle(tx.at(place), limit, quantity)
}

func (tx *Tx) tat(st *txState) (tatNs int64, ok bool) { return st.tatNs, st.tatNs > tx.nowNs }

func (tx *Tx) delete(st *txState) bool {
	existed := st.tatNs > tx.nowNs
	if existed {
		st.tatNs, st.written = tx.nowNs, true
	}
	return existed
}

func (tx *Tx) throttle(st *txState, limit funnel.Limit, quantity int64) funnel.Result {
	tatNs, r := limit.Throttle(st.tatNs, tx.nowNs, quantity)
	if tatNs != st.tatNs {
		st.tatNs, st.written = tatNs, true
	}
	st.counts.add(quantity, r.Limited)
	return r
}

// Commit makes all that was written visible at once, ends the Tx, and reports whether it did. It does not, and
// then nothing has happened, if the Tx was released, has written, and finds a key in another state than it read.
func (tx *Tx) Commit() bool {
	if tx.phase == txEnded {
		return false
	}
	defer tx.Rollback()
	if tx.phase == txReleased {
		if !tx.written() {
			tx.countApart()
			return true
		}
		if tx.lock(); !tx.unchangedLocked() {
			return false
		}
	}
	for i := range tx.states {
		st, sh := &tx.states[i], tx.shard(i)
		sh.counts.merge(&st.counts)
		if st.written {
			b, slot := sh.table.find(st.ref, &st.key)
			sh.table.set(st.ref, &st.key, b, slot, tx.nowNs, st.tatNs)
			sh.changedLocked(st.ref.hash)
		}
	}
	return true
}

// Rollback forgets all that was written, and ends the Tx.
func (tx *Tx) Rollback() {
	tx.Release()
	tx.phase = txEnded
	if len(tx.place) > keepTxKeys {
		*tx = Tx{}
	}
	clear(tx.states) // the names are the caller's
	tx.states = tx.states[:0]
}

// unchangedLocked compares TATs, and so misses a key that was changed and changed back. That is right: a TAT is
// the whole state, so the Tx would have read and written the same now. For the same reason one that has written
// nothing needs no look: it has happened when it read.
func (tx *Tx) unchangedLocked() bool {
	for i := range tx.states {
		st := &tx.states[i]
		if tx.shard(i).tatLocked(tx.nowNs, st.ref, &st.key) != st.foundNs {
			return false
		}
	}
	return true
}

func (tx *Tx) written() bool {
	return slices.ContainsFunc(tx.states, func(st txState) bool { return st.written })
}

// countApart counts what a Tx that needs no locks has asked.
func (tx *Tx) countApart() {
	for i := range tx.states {
		if st, sh := &tx.states[i], tx.shard(i); st.counts != (counts{}) {
			sh.mu.Lock()
			sh.counts.merge(&st.counts)
			sh.mu.Unlock()
		}
	}
}
