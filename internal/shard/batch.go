package shard

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

const (
	// A batch shorter than this is answered one request after the other: it gains less by its order than that costs.
	leastSorted = 4
	// pieceRequests bounds what a long batch keeps on the stack.
	pieceRequests = 128
	// windowRequests is how many requests, at the least, are answered with their shards locked together, so that
	// their cache misses overlap however many shards there are. Half as many hold fewer locks that others wait
	// for, but take a tenth longer on a store that is larger than the cache.
	windowRequests = 16
)

// Throttle implements store.Keys: it answers at once.
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

// throttleSorted answers the requests shard by shard, those of a shard in order, and so those of a key too. It
// takes each lock once.
func (s *Store) throttleSorted(nowNs int64, batch []store.Request) {
	var hashes [pieceRequests]uint64
	var order, shardOf [pieceRequests]uint8
	var place [maxShards]uint8 // of a shard's next request in order
	long := false              // a key is, or may have a payload
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
			s.shards[sh].mu.Lock() // in index order, as transactions do
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

// touch loads both cache lines of a key's home bucket, and what an insert reads of the segment unless homeRecord finds out
// whether the key is new. Loads that do not wait for each other overlap, which those of one decision after the other do not.
// The sum is there to be used, or they would not be made.
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

// touchLong is touch for keys of which some are in long tables. Their records are loaded where touch has loaded the places: these are
// found first, because only few instructions fit between loads that are to overlap.
func (s *Store) touchLong(batch []store.Request, hashes *[pieceRequests]uint64, window []uint8) (sum uint64) {
	for _, i := range window {
		hash := hashes[i%pieceRequests]
		sum += s.shardOf(hash).tableFor(&batch[i].Key, batch[i].Rule.Kind).touch(hash)
	}
	var records [2 * windowRequests]recordEnds
	for len(window) > 0 {
		n := 0
		for _, i := range window[:min(len(window), len(records))] {
			q, hash := &batch[i], hashes[i%pieceRequests]
			if t := s.shardOf(hash).tableFor(&q.Key, q.Rule.Kind); t.long {
				records[n%len(records)] = t.homeRecord(hash)
				n++
			}
		}
		for _, r := range records[:n] {
			if r.chunk != nil {
				sum += uint64(r.chunk[r.first%chunkBytes]) + uint64(r.chunk[r.last%chunkBytes])
			} else if r.alone != nil {
				sum += uint64(*r.alone)
			}
		}
		window = window[min(len(window), len(records)):]
	}
	return sum
}

// recordEnds is where a record begins in a chunk, and where it, or what of it is in that chunk, ends; or where one begins that
// stands alone.
type recordEnds struct {
	chunk       *chunk
	alone       *byte
	first, last uint32
}

// homeRecord returns where the first record is that may be a key's, of those in its home bucket.
func (t *table) homeRecord(hash uint64) (r recordEnds) {
	seg := t.segmentFor(hash)
	if seg == nil {
		return r
	}
	b := &seg.buckets[homeOf(hash)]
	found := b.candidates(hash)
	if found == 0 { // a new key: what an insert reads of the segment is loaded instead
		r.first = uint32(seg.used)
		return r
	}
	slot := lowestLane(found, laneBits)
	at := b.locator(slot)
	if b.place(slot) == placeAlone {
		r.alone = &t.alone.bufs[numberOf(at)][0]
		return r
	}
	r.chunk = t.chunks.at(chunkOf(at))
	r.first, r.last = uint32(offsetOf(at)), uint32(min(offsetOf(at)+lengthOf(at), chunkBytes)-1)
	return r
}

func (sh *shard) throttleLocked(nowNs int64, k keyRef, q *store.Request) {
	if q.Rule.Kind != limiter.Funnel {
		sh.decideLocked(nowNs, k, q)
		return
	}
	t, b, slot := sh.find(k, &q.Key)
	tatNs := nowNs
	if b != nil {
		if t.long && b.kind(slot) != limiter.Funnel {
			sh.decideLocked(nowNs, k, q)
			return
		}
		tatNs = max(b.tatNs(slot), nowNs)
	}
	newTATNs, r := q.Rule.Funnel.ThrottleIn(q.Rule.Unit, tatNs, nowNs, q.Quantity)
	if newTATNs != tatNs {
		if sh.frozen {
			q.Result, q.Err = funnel.Result{}, store.ErrFrozen
			return
		}
		if b != nil && newTATNs > nowNs {
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
