package shard

const (
	// A batch shorter than this is answered one request after the other: it gains less by its order than that costs.
	leastSorted = 4
	// pieceRequests bounds what a long batch keeps on the stack.
	pieceRequests = 128
)

// Throttle answers a batch of requests in order, all of them at one time.
func (s *Store) Throttle(nowNs int64, batch []Request) {
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
}

// throttleSorted answers the requests shard by shard, those of a shard in order, and so those of a key too. It
// takes each lock once, and what a group of requests misses in the cache it waits for at once.
func (s *Store) throttleSorted(nowNs int64, batch []Request) {
	var hashes [pieceRequests]uint64
	var order, shardOf [pieceRequests]uint8
	var place [maxShards]uint8 // of a shard's next request in order
	for i := range batch {
		hash := hashKey(s.seed, batch[i].Key.DB, batch[i].Key.Name)
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
		id := shardOf[order[first]]
		end := int(place[id])
		s.shards[id].throttleGroup(nowNs, batch, &hashes, order[first:end])
		first = end
	}
}

func (sh *shard) throttleGroup(nowNs int64, batch []Request, hashes *[pieceRequests]uint64, group []uint8) {
	sh.mu.Lock()
	if len(group) > 1 && sh.table.count > 0 {
		sum := uint64(0)
		for _, i := range group {
			sum += sh.table.touch(hashes[i%pieceRequests])
		}
		sh.touched = sum
	}
	for _, i := range group {
		q := &batch[i]
		k := refOf(&q.Key, hashes[i%pieceRequests])
		sh.throttleLocked(nowNs, k, q)
	}
	sh.mu.Unlock()
}

// touch loads both cache lines of a hash's home bucket. Loads that do not wait for each other overlap, which those
// of one decision after the other do not. The sum is there to be used, or they would not be made.
func (t *table) touch(hash uint64) uint64 {
	b := &t.segmentOf(hash).buckets[homeOf(hash)]
	return b.meta + b.key[bucketSlots-1][0]
}

func (sh *shard) throttleLocked(nowNs int64, k keyRef, q *Request) {
	b, slot := sh.table.find(k, &q.Key)
	tatNs := nowNs
	if b != nil {
		tatNs = max(b.tatNs[slot], nowNs)
	}
	var newTATNs int64
	newTATNs, q.Result = q.Limit.Throttle(tatNs, nowNs, q.Quantity)
	if q.Result.Limited {
		sh.denied++
	} else {
		sh.allowed++
	}
	if newTATNs != tatNs {
		sh.table.set(k, &q.Key, b, slot, nowNs, newTATNs)
	}
}
