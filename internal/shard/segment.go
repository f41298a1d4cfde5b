package shard

import "math/bits"

// A segment is a fixed hash table of buckets without pointers, which the collector skips. It fills a size
// class exactly, which a test checks. Its entries are all inline or all of the long table.
type segment struct {
	used      uint8
	depth     uint8 // number of leading bits shared by all entries
	passed    bool  // a bucket has an overflow mark
	holed     bool  // a removal may have left stale overflow marks
	listed    bool  // see changes
	evictions uint8 // wraps around
	arena     arena // of the long table

	_       [128 - 24]byte
	buckets [segmentBuckets]bucket
}

const (
	segmentBytes   = 4096
	segmentBuckets = 31
)

// A bucket is two cache lines: the meta, with bits for each slot and bitPassed, the TATs, and the rest by
// inlinebucket.go or longbucket.go.
type bucket [16]uint64

const (
	tatWord = 1 // of the first slot

	// bitPassed is the overflow mark: an entry from here or before was placed further on. It may be stale
	// until the segment is rebuilt.
	bitPassed = 1 << 60
)

// homeOf maps a hash's low half, unused by the directory, to a bucket.
func homeOf(hash uint64) uint64 { return uint64(uint32(hash)) * segmentBuckets >> 32 }

func nextBucket(i uint64) uint64 {
	if i++; i < segmentBuckets {
		return i
	}
	return 0
}

func (b *bucket) tatNs(slot int) int64 { return int64(b[tatWord+slot]) }

func (b *bucket) setTAT(slot int, tatNs int64) { b[tatWord+slot] = uint64(tatNs) }

func (b *bucket) passed() bool { return b[0]&bitPassed != 0 }

// isZero returns 1 for 0, else 0.
func isZero(x uint64) uint64 { return ((x - 1) &^ x) >> 63 }

// clear empties a segment but for its depth and arena.
func (g *segment) clear() {
	g.used, g.passed, g.holed = 0, false, false
	for i := range g.buckets {
		g.buckets[i][0] = 0
	}
}

// An entry's index consists of its bucket's number and three bits for its slot.
const (
	slotIndexBits = 3
	indexBits     = 8
)

func indexOf(bucket, slot int) uint64 { return uint64(bucket<<slotIndexBits | slot) }

// entryAt is the inverse of indexOf. It ignores higher bits.
func (g *segment) entryAt(index uint64) (b *bucket, slot int) {
	return &g.buckets[index&(1<<indexBits-1)>>slotIndexBits], int(index & (1<<slotIndexBits - 1))
}

// lowestLane returns the number of the first lane with a bit set.
func lowestLane(set uint64, laneBits int) int { return bits.TrailingZeros64(set) / laneBits }
