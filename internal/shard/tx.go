package shard

import (
	"bytes"
	"cmp"
	"slices"

	"cellserver/internal/funnel"
)

// Tx reads and writes several keys as one step. From Begin to Commit or Rollback it holds the locks of their
// shards, taken in index order, so that no two transactions wait for each other. What it writes is kept aside
// until Commit. Keys are named by their place in the list that Begin was given; the same key may stand in it
// more than once.
type Tx struct {
	store  *Store
	nowNs  int64
	states []txState // sorted by hash, and so by shard; each key once
	place  []int     // of a key of Begin's list in states
	done   bool
}

type txState struct {
	key     Key
	ref     keyRef
	tatNs   int64 // nowNs if absent
	written bool
	allowed uint64
	denied  uint64
}

// Begin locks the keys. The caller must end the Tx, best by a deferred Rollback, which does nothing after Commit.
func (s *Store) Begin(nowNs int64, keys []Key) *Tx {
	tx := &Tx{store: s, nowNs: nowNs, states: make([]txState, 0, len(keys)), place: make([]int, len(keys))}
	tx.arrange(keys)
	for i := range tx.states {
		if tx.firstOfShard(i) {
			tx.shard(i).mu.Lock()
		}
	}
	for i := range tx.states {
		st := &tx.states[i]
		st.tatNs = tx.shard(i).tatLocked(nowNs, st.ref, &st.key)
	}
	return tx
}

func (tx *Tx) arrange(keys []Key) {
	all := make([]txState, len(keys))
	order := make([]int, len(keys))
	for i, key := range keys {
		all[i], order[i] = txState{key: key, ref: tx.store.ref(&key)}, i
	}
	slices.SortFunc(order, func(a, b int) int { return compareKeys(&all[a], &all[b]) })
	for n, i := range order {
		if n == 0 || compareKeys(&all[i], &all[order[n-1]]) != 0 {
			tx.states = append(tx.states, all[i])
		}
		tx.place[i] = len(tx.states) - 1
	}
}

func compareKeys(a, b *txState) int {
	return cmp.Or(cmp.Compare(a.ref.hash, b.ref.hash), cmp.Compare(a.key.DB, b.key.DB), bytes.Compare(a.key.Name, b.key.Name))
}

func (tx *Tx) shard(i int) *shard { return tx.store.shardOf(tx.states[i].ref.hash) }

func (tx *Tx) firstOfShard(i int) bool { return i == 0 || tx.shard(i) != tx.shard(i-1) }

// Exists reports whether a key is live.
func (tx *Tx) Exists(key int) bool { return tx.states[tx.place[key]].tatNs > tx.nowNs }

// Delete removes a key, and reports whether it was live.
func (tx *Tx) Delete(key int) bool {
	existed := tx.Exists(key)
	if existed {
		st := &tx.states[tx.place[key]]
		st.tatNs, st.written = tx.nowNs, true
	}
	return existed
}

// Throttle asks a key's funnel for quantity units. It sees what the Tx has written before.
func (tx *Tx) Throttle(key int, limit funnel.Limit, quantity int64) funnel.Result {
	st := &tx.states[tx.place[key]]
	tatNs, r := limit.Throttle(st.tatNs, tx.nowNs, quantity)
	if tatNs != st.tatNs {
		st.tatNs, st.written = tatNs, true
	}
	if r.Limited {
		st.denied++
	} else {
		st.allowed++
	}
	return r
}

// Commit makes all that was written visible at once, and unlocks.
func (tx *Tx) Commit() {
	if tx.done {
		return
	}
	for i := range tx.states {
		st, sh := &tx.states[i], tx.shard(i)
		sh.allowed += st.allowed
		sh.denied += st.denied
		if st.written {
			b, slot := sh.table.find(st.ref, &st.key)
			sh.table.set(st.ref, &st.key, b, slot, tx.nowNs, st.tatNs)
		}
	}
	tx.unlock()
}

// Rollback forgets all that was written, and unlocks.
func (tx *Tx) Rollback() {
	if !tx.done {
		tx.unlock()
	}
}

func (tx *Tx) unlock() {
	tx.done = true
	for i := range tx.states {
		if tx.firstOfShard(i) {
			tx.shard(i).mu.Unlock()
		}
	}
}
