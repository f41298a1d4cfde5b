package shard

import "math/bits"

// A segment is a fixed hash table of buckets, without pointers, so that the collector does not look into it. It
// fills one of the allocator's size classes exactly; a test holds that. The entries of a segment are all inline, or all
// of the long table.
type segment struct {
	used      uint8
	depth     uint8 // how many leading bits its entries share
	passed    bool  // a bucket has its overflow mark
	holed     bool  // an entry was removed since the overflow marks were last exact
	listed    bool  // see changes
	evictions uint8 // and around again
	arena     arena // of the long table

	_       [128 - 24]byte
	buckets [segmentBuckets]bucket
}

const (
	segmentBytes   = 4096
	segmentBuckets = 31
)

// A bucket is two cache lines. The first word is its meta, which has some bits for each slot and bitPassed; behind it
// stand the TATs of the slots. The rest is as in inlinebucket.go or longbucket.go.
type bucket [16]uint64

const (
	tatWord = 1 // of the first slot

	// bitPassed is the overflow mark: an entry whose home is here or before found no room and went on. It may
	// outlive those entries; only what builds a segment anew makes it exact.
	bitPassed = 1 << 60
)

// homeOf maps the hash's low half to a bucket. It takes no bit that a directory takes.
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

// isZero is 1 for 0, and else 0.
func isZero(x uint64) uint64 { return ((x - 1) &^ x) >> 63 }

// clear makes a segment empty and its marks exact. It keeps the depth and the arena.
func (g *segment) clear() {
	g.used, g.passed, g.holed = 0, false, false
	for i := range g.buckets {
		g.buckets[i][0] = 0
	}
}

// An entry's index in its segment is its bucket's and its slot's in three bits.
const (
	slotIndexBits = 3
	indexBits     = 8
)

func indexOf(bucket, slot int) uint64 { return uint64(bucket<<slotIndexBits | slot) }

// entryAt is indexOf's opposite. It looks at no higher bits.
func (g *segment) entryAt(index uint64) (b *bucket, slot int) {
	return &g.buckets[index&(1<<indexBits-1)>>slotIndexBits], int(index & (1<<slotIndexBits - 1))
}

// lowestLane returns the number of the first lane of so many bits that has a bit set.
func lowestLane(set uint64, laneBits int) int { return bits.TrailingZeros64(set) / laneBits }
