package shard

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

const (
	// Below leastSorted requests, sorting costs more than it saves.
	leastSorted = 4
	// pieceRequests bounds the stack used for a long batch.
	pieceRequests = 128
	// windowRequests is the least number of requests decided under common locks, so that their cache misses
	// overlap with any number of shards. Half as many hold fewer locks, but take a tenth longer on a store
	// beyond the cache.
	windowRequests = 16
)

// Throttle implements store.Keys and decides at once.
func (s *Store) Throttle(nowNs int64, batch []store.Request) store.Pending {
	for len(batch) >= leastSorted {
		piece := batch[:min(len(batch), pieceRequests)]
		s.throttleSorted(nowNs, piece)
		batch = batch[len(piece):]
	}
	for i := range batch {
		q := &batch[i]
		k := s.ref(&q.Key)
		sh := s.shardOf(k.hash)
		sh.mu.Lock()
		sh.throttleLocked(nowNs, k, q)
		sh.mu.Unlock()
	}
	return nil
}

// throttleSorted decides requests shard by shard, in order within each shard and so for each key. It takes
// each lock once.
func (s *Store) throttleSorted(nowNs int64, batch []store.Request) {
	var hashes [pieceRequests]uint64
	var order, shardOf [pieceRequests]uint8
	var place [maxShards]uint8 // of a shard's next request
	long := false              // a key is long or may have a payload
	for i := range batch {
		key := &batch[i].Key
		hash := hashKey(s.seed, key.DB, key.Name)
		long = long || !isInline(key) || batch[i].Rule.Kind != limiter.Funnel
		sh := uint8(hash >> s.shift)
		hashes[i], shardOf[i] = hash, sh
		place[sh]++
	}
	sum := uint8(0)
	for i := range s.shards {
		n := place[i]
		place[i] = sum
		sum += n
	}
	for i := range batch {
		p := &place[shardOf[i]]
		order[*p%pieceRequests] = uint8(i)
		*p++
	}
	for first := 0; first < len(batch); {
		end := first
		for end < len(batch) && end-first < windowRequests {
			sh := shardOf[order[end]]
			s.shards[sh].mu.Lock() // in index order, like transactions
			end = int(place[sh])
		}
		s.throttleWindow(nowNs, batch, &hashes, order[first:end], long)
		for at := first; at < end; {
			sh := shardOf[order[at]]
			s.shards[sh].mu.Unlock()
			at = int(place[sh])
		}
		first = end
	}
}

func (s *Store) throttleWindow(nowNs int64, batch []store.Request, hashes *[pieceRequests]uint64, window []uint8, long bool) {
	if len(window) > 1 {
		sum := uint64(0)
		if long {
			sum = s.touchLong(batch, hashes, window)
		} else {
			for _, i := range window {
				hash := hashes[i%pieceRequests]
				sum += s.shardOf(hash).inline.touch(hash)
			}
		}
		s.shardOf(hashes[window[0]%pieceRequests]).touched = sum
	}
	for _, i := range window {
		q, hash := &batch[i], hashes[i%pieceRequests]
		s.shardOf(hash).throttleLocked(nowNs, refOf(&q.Key, hash), q)
	}
}

// touch loads both cache lines of a key's home bucket, and the insert's part of the segment unless homeRecord
// decides that. Independent loads overlap; those of successive decisions do not. The sum keeps the compiler
// from removing them.
func (t *table) touch(hash uint64) uint64 {
	seg := t.segmentFor(hash)
	if seg == nil {
		return 0
	}
	b := &seg.buckets[homeOf(hash)]
	sum := b[0] + b[len(b)-1]
	if !t.long {
		sum += uint64(seg.used)
	}
	return sum
}

// touchLong is touch for batches with long keys. Their records are loaded after touch has loaded the
// locators; finding these first leaves few instructions between overlapping loads.
func (s *Store) touchLong(batch []store.Request, hashes *[pieceRequests]uint64, window []uint8) (sum uint64) {
	long := false
	for _, i := range window {
		hash := hashes[i%pieceRequests]
		t := s.shardOf(hash).tableOfRequest(&batch[i])
		sum += t.touch(hash)
		long = long || t.long
	}
	if !long {
		return sum
	}
	var records [2 * windowRequests]recordEnds
	for len(window) > 0 {
		n := 0
		for _, i := range window[:min(len(window), len(records))] {
			hash := hashes[i%pieceRequests]
			if t := s.shardOf(hash).tableOfRequest(&batch[i]); t.long {
				records[n%len(records)] = t.homeRecord(hash)
				n++
			}
		}
		for _, r := range records[:n] {
			if r.chunk != nil {
				sum += uint64(r.chunk[r.first%chunkBytes]) + uint64(r.chunk[r.last%chunkBytes])
			} else if r.large != nil {
				sum += uint64(*r.large)
			}
		}
		window = window[min(len(window), len(records)):]
	}
	return sum
}

// recordEnds locates a record's first and last byte within its first chunk, or a large record.
type recordEnds struct {
	chunk       *chunk
	large       *byte
	first, last uint32
}

// homeRecord locates the first possible record of a key in its home bucket.
func (t *table) homeRecord(hash uint64) (r recordEnds) {
	seg := t.segmentFor(hash)
	if seg == nil {
		return r
	}
	b := &seg.buckets[homeOf(hash)]
	found := b.candidates(hash)
	if found == 0 { // a new key: load the insert's part of the segment
		r.first = uint32(seg.used)
		return r
	}
	slot := lowestLane(found, laneBits)
	at := b.locator(slot)
	if b.place(slot) == placeLarge {
		r.large = &t.large.bufs[numberOf(at)][0]
		return r
	}
	r.chunk = t.chunks.at(chunkOf(at))
	r.first, r.last = uint32(offsetOf(at)), uint32(min(offsetOf(at)+lengthOf(at), chunkBytes)-1)
	return r
}

func (sh *shard) throttleLocked(nowNs int64, k keyRef, q *store.Request) {
	if q.Rule.Kind != limiter.Funnel || q.Rule.Flags != 0 {
		sh.decideLocked(nowNs, k, q)
		return
	}
	t, b, slot := sh.find(k, &q.Key)
	tatNs := nowNs
	if b != nil {
		if t.kindAt(b, slot) != limiter.Funnel {
			sh.decideLocked(nowNs, k, q)
			return
		}
		tatNs = max(b.tatNs(slot), nowNs)
	}
	newTATNs, r := q.Rule.Funnel.ThrottleIn(q.Rule.Unit, tatNs, nowNs, q.Quantity)
	if newTATNs != tatNs {
		if nowNs >= sh.frozenNs {
			q.Result, q.Err = funnel.Result{}, sh.frozenBy
			return
		}
		if b != nil && newTATNs > nowNs {
			if b.tatNs(slot) <= nowNs {
				sh.expired++
			}
			t.changeTAT(k.hash, b, slot, newTATNs)
		} else if !sh.storeLocked(nowNs, t, b, slot, &item{ref: k, key: &q.Key, expiresNs: newTATNs}) {
			q.Result, q.Err = funnel.Result{}, store.ErrFull
			return
		}
		sh.changedLocked(k.hash)
	}
	sh.counts.add(limiter.Funnel, q.Quantity, r.Limited)
	q.Result, q.Err = r, nil
}
