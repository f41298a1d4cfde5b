package shard

import (
	"bytes"
	"cmp"
	"slices"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// tx implements store.Transaction. Beginning locks the shards of its keys in index order, against deadlocks,
// and reads their states; writes are buffered until Commit.
type tx struct {
	store      *Store
	nowNs      int64
	phase      txPhase
	states     []txState // sorted by hash, so by shard, without duplicates; none at the end
	added      int       // number of keys to create
	bytes      int       // their approximate maximal size
	valueBytes int       // of the values among them
	joined     bool      // a step is joined with those of other keys
	stale      bool      // a payload was requested after others had changed it
	held       int       // of payloads
	copies     copies
	counts     counts        // credited to the first key's shard
	work       limiter.State // of the current step
	buffer     []byte        // holds the first short payloads
}

type txPhase uint8

const (
	txPooled txPhase = iota // after Rollback
	txEnded                 // after Commit
	txLocked
	txReleased
)

type txState struct {
	key     store.Key
	ref     keyRef
	found   identity
	state   limiter.State // current, perhaps without a payload nobody has requested
	loaded  bool          // its payload is complete
	notes   limiter.Notes // of the holds, by its steps
	own     bool          // the payload is private
	written bool
	added   bool // room is granted
	bytes   int  // granted for its record
}

// identity distinguishes states of a key over time. An absent key expires at once.
type identity struct {
	kind      limiter.Kind
	expiresNs int64
	version   uint64 // of the payload
}

func (sh *shard) identityLocked(nowNs int64, k keyRef, key *store.Key) identity {
	t, b, slot := sh.find(k, key)
	if b == nil || b.tatNs(slot) <= nowNs {
		return identity{expiresNs: nowNs}
	}
	return identity{t.kindAt(b, slot), b.tatNs(slot), t.versionAt(b, slot)}
}

func (s *Store) Begin(nowNs int64, keys []store.Key) store.Transaction { return s.begin(nowNs, keys) }

func (s *Store) begin(nowNs int64, keys []store.Key) *tx {
	t := s.txs.Get().(*tx)
	t.nowNs = nowNs
	t.arrange(keys)
	t.lock()
	for i := range t.states {
		t.touchLocked(i)
		st := &t.states[i]
		st.found = t.shard(i).identityLocked(nowNs, st.ref, &st.key)
		st.state = limiter.State{Kind: st.found.kind, ExpiresNs: st.found.expiresNs}
		st.loaded = st.found.kind == limiter.Funnel
	}
	return t
}

// arrange sets the states: of the keys, sorted by hash, without duplicates.
func (t *tx) arrange(keys []store.Key) {
	type place struct { // cheaper to sort than a state
		hash uint64
		i    int
	}
	order := make([]place, 0, 16) // on the stack for a few
	for i := range keys {
		order = append(order, place{hashKey(t.store.seed, keys[i].DB, keys[i].Name), i})
	}
	slices.SortFunc(order, func(a, b place) int { return compareKeys(a.hash, &keys[a.i], b.hash, &keys[b.i]) })
	t.states = slices.Grow(t.states, len(keys))
	for _, o := range order {
		key, n := &keys[o.i], len(t.states)
		if n == 0 || compareKeys(o.hash, key, t.states[n-1].ref.hash, &t.states[n-1].key) != 0 {
			t.states = append(t.states, txState{key: *key, ref: refOf(key, o.hash)})
		}
	}
}

func compareKeys(hashA uint64, a *store.Key, hashB uint64, b *store.Key) int {
	if hashA != hashB {
		return cmp.Compare(hashA, hashB)
	}
	return cmp.Or(cmp.Compare(a.DB, b.DB), bytes.Compare(a.Name, b.Name))
}

func (t *tx) shard(i int) *shard { return t.store.shardOf(t.states[i].ref.hash) }

func (t *tx) firstOfShard(i int) bool { return i == 0 || t.shard(i) != t.shard(i-1) }

// touchLocked loads the buckets of this and the next keys, so that cache misses overlap while others wait.
func (t *tx) touchLocked(i int) {
	if i%windowRequests != 0 || len(t.states) < windowRequests {
		return
	}
	sum := uint64(0)
	for j := i; j < min(i+windowRequests, len(t.states)); j++ {
		st := &t.states[j]
		sum += t.shard(j).tableFor(&st.key, st.state.Kind).touch(st.ref.hash)
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

func (t *tx) Release() {
	if t.phase == txLocked {
		t.unlock()
	}
}

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

// holds implements pins: the transaction's keys are not evicted for one another.
func (t *tx) holds(hash uint64) bool {
	_, found := slices.BinarySearchFunc(t.states, hash, func(st txState, hash uint64) int { return cmp.Compare(st.ref.hash, hash) })
	return found
}

func (t *tx) Entry(_ int64, key store.Key) (e store.Entry, ok bool, err error) {
	st := t.state(&key)
	return store.Entry{Kind: st.state.Kind, ExpiresNs: st.state.ExpiresNs}, st.state.ExpiresNs > t.nowNs, nil
}

func (t *tx) State(_ int64, key store.Key) (s limiter.State, ok bool, err error) {
	st := t.state(&key)
	if err = t.load(st); err != nil {
		return s, false, err
	}
	s = st.state
	s.Payload = bytes.Clone(s.Payload)
	return s, s.ExpiresNs > t.nowNs, nil
}

func (t *tx) Delete(_ int64, keys []store.Key) (deleted int, err error) {
	for i := range keys {
		if st := t.state(&keys[i]); st.state.ExpiresNs > t.nowNs {
			if err := t.refusal(st); err != nil {
				return deleted, err
			}
			t.held -= len(st.state.Payload)
			st.state, st.loaded, st.written = limiter.State{ExpiresNs: t.nowNs}, true, true
			deleted++
		}
	}
	return deleted, nil
}

// lockFor returns a key's shard, locked also after Release, until unlockFor.
func (t *tx) lockFor(st *txState) *shard {
	sh := t.store.shardOf(st.ref.hash)
	if t.phase == txReleased {
		sh.mu.Lock()
	}
	return sh
}

func (t *tx) unlockFor(sh *shard) {
	if t.phase == txReleased {
		sh.mu.Unlock()
	}
}

// refusal returns why a key cannot be changed now, or nil.
func (t *tx) refusal(st *txState) error {
	sh := t.lockFor(st)
	defer t.unlockFor(sh)
	if t.nowNs >= sh.frozenNs {
		return sh.frozenBy
	}
	return nil
}

// isFrozenLocked reports whether changes are refused since the keys were released.
func (t *tx) isFrozenLocked() bool {
	for i := range t.states {
		if t.states[i].written && t.nowNs >= t.shard(i).frozenNs {
			return true
		}
	}
	return false
}

// Save implements store.Restorer. Later writes copy payloads first.
func (t *tx) Save() (undo func()) {
	type saved struct {
		state           limiter.State
		notes           limiter.Notes
		loaded, written bool
	}
	before, held := make([]saved, len(t.states)), t.held
	for i := range t.states {
		st := &t.states[i]
		st.own = false
		before[i] = saved{st.state, st.notes, st.loaded, st.written}
	}
	return func() {
		t.held = held
		for i := range t.states {
			st := &t.states[i]
			st.state, st.notes, st.own = before[i].state, before[i].notes, false
			st.loaded, st.written = before[i].loaded, before[i].written
		}
	}
}

func (t *tx) Commit() bool {
	if t.phase <= txEnded {
		return false
	}
	defer func() {
		t.end()
		t.phase = txEnded
	}()
	if t.phase == txReleased {
		if t.stale {
			return false
		}
		if !slices.ContainsFunc(t.states, func(st txState) bool { return st.written }) { // takes no two locks at once
			if t.counts != (counts{}) {
				t.shard(0).mu.Lock()
				t.countLocked()
				t.shard(0).mu.Unlock()
			}
			return true
		}
		if t.lock(); !t.unchangedLocked() || t.isFrozenLocked() {
			return false
		}
	}
	t.countLocked()
	var removes, stores bool
	written := 0
	for i := range t.states {
		st, sh := &t.states[i], t.shard(i)
		if st.written {
			written++
			live := st.state.ExpiresNs > t.nowNs
			removes, stores = removes || !live, stores || live
			it := sh.itemOf(st.ref, &st.key, &st.state)
			sh.pins = t
			sh.forceLocked(t.nowNs, &it)
			sh.pins = nil
			sh.changedLocked(st.ref.hash)
			sh.noteLocked(st.key.Name, &st.notes)
		}
	}
	if removes && stores || t.joined && written > 1 {
		t.store.moves.Add(1)
	}
	return true
}

func (t *tx) Rollback() {
	if t.phase == txPooled {
		return
	}
	t.end()
	t.store.txs.Put(t)
}

const (
	// maxPooledStates bounds the states for which a pooled transaction keeps room.
	maxPooledStates = 16
	// txBufferBytes hold a few counters.
	txBufferBytes = 256
)

// end drops everything that the transaction refers to: names are the caller's.
func (t *tx) end() {
	t.Release()
	states := t.states
	clear(states)
	if cap(states) > maxPooledStates {
		states = nil
	}
	*t = tx{store: t.store, states: states[:0], buffer: t.buffer[:0]}
}

// unchangedLocked compares identities, so a funnel changed back counts as unchanged. Rightly: a TAT is the
// whole state, so the transaction would do the same now. One without writes happened when it read.
func (t *tx) unchangedLocked() bool {
	for i := range t.states {
		t.touchLocked(i)
		st := &t.states[i]
		if t.shard(i).identityLocked(t.nowNs, st.ref, &st.key) != st.found {
			return false
		}
	}
	return true
}

// countLocked credits the transaction's counts to one shard: only their sum is visible.
func (t *tx) countLocked() {
	if t.counts != (counts{}) { // it may have no keys
		t.shard(0).counts.merge(&t.counts)
	}
}
