package shard

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A chunk is a piece of an arena: the next chunk's number, its own index in the arena, and bytes.
type chunk [chunkBytes]byte

const (
	chunkBytes  = 1 << 10
	headerBytes = 8
	roomBytes   = chunkBytes - headerBytes

	// Chunks are allocated in slabs of a word's bits, so that finding one reads little.
	slabShift  = 6
	slabChunks = 1 << slabShift

	// An unused slab is returned only beside spareChunks free chunks, to avoid allocating it again at once.
	spareChunks = 16
	// sparseShare is the share of free chunks that starts moving chunks together.
	sparseShare = 32

	// mostChunks keeps numbers within a locator's bits, including a splitting segment's needs.
	mostChunks = 1<<(64-chunkShift) - 1<<12
)

func (c *chunk) next() uint32 { return binary.LittleEndian.Uint32(c[:]) }

func (c *chunk) setNext(id uint32) { binary.LittleEndian.PutUint32(c[:], id) }

// place returns the chunk's index in its arena.
func (c *chunk) place() int { return int(binary.LittleEndian.Uint32(c[4:])) }

func (c *chunk) setPlace(n int) { binary.LittleEndian.PutUint32(c[4:], uint32(n)) }

type slab [slabChunks]chunk

// chunks allocates and reuses chunks, lowest numbers first, so that slabs become empty and are freed. Number
// 0 is no chunk.
type chunks struct {
	slabs  []*slab // nil once freed
	absent []int   // indexes of freed slabs
	free   bitset  // used chunks, by number less one
	fresh  bitset  // unused chunks by that number; not counted before the first write
	idle   int     // index, plus one, of a retained empty slab; 0 for none

	count  int // of chunks that are not fresh
	unused int // the free ones of count
}

func (c *chunks) at(id uint32) *chunk {
	id--
	s := c.slabs[id>>slabShift]
	if s == nil { // keeps the compiler from reading the first chunk
		panic("shard: a chunk of a slab that was given back")
	}
	return &s[id%slabChunks]
}

func (c *chunks) inUse() int { return c.count - c.unused }

func (c *chunks) bytes() int { return c.count*chunkBytes + cap(c.slabs)*pointerBytes }

// growth returns the bytes for n more chunks, apart from the list of slabs.
func (c *chunks) growth(n int) int { return max(0, n-c.unused) * chunkBytes }

func (c *chunks) take() (id uint32) {
	var i int
	if c.unused > 0 {
		i = c.free.takeFirst()
		c.unused--
	} else {
		if c.fresh.isEmpty() {
			c.newSlab()
		}
		i = c.fresh.takeFirst()
		c.count++
	}
	if i>>slabShift == c.idle-1 {
		c.idle = 0
	}
	return uint32(i + 1)
}

func (c *chunks) newSlab() {
	at := len(c.slabs)
	if n := len(c.absent); n > 0 {
		at = c.absent[n-1]
		c.absent = c.absent[:n-1]
		c.slabs[at] = new(slab)
	} else {
		c.slabs = append(c.slabs, new(slab))
	}
	c.free.setWord(at, 0)
	c.fresh.setWord(at, math.MaxUint64)
}

func (c *chunks) give(id uint32) {
	i := int(id - 1)
	at := i >> slabShift
	c.free.setWord(at, c.free[0][at]|1<<(i%slabChunks))
	c.unused++
	switch {
	case c.free[0][at]|c.fresh[0][at] != math.MaxUint64:
	case c.idle == 0:
		c.idle = at + 1
	default:
		c.drop(at)
	}
	if c.unused >= slabChunks+spareChunks {
		c.dropIdle()
	}
}

func (c *chunks) dropIdle() {
	if c.idle > 0 {
		c.drop(c.idle - 1)
		c.idle = 0
	}
}

// drop frees an empty slab.
func (c *chunks) drop(at int) {
	c.forget(at)
	c.fresh.setWord(at, 0)
	c.slabs[at] = nil
	c.absent = append(c.absent, at)
}

// forget makes a slab's free chunks fresh.
func (c *chunks) forget(at int) {
	free := c.free[0][at]
	c.count -= bits.OnesCount64(free)
	c.unused -= bits.OnesCount64(free)
	c.free.setWord(at, 0)
	c.fresh.setWord(at, c.fresh[0][at]|free)
}

// trim copies the last used slab without its free chunks, which then take no memory.
func (c *chunks) trim() {
	c.dropIdle()
	at := len(c.slabs) - 1
	for at >= 0 && c.slabs[at] == nil {
		at--
	}
	if at < 0 || c.free[0][at] == 0 {
		return
	}
	c.forget(at)
	old := c.slabs[at]
	c.slabs[at] = new(slab)
	for used := ^c.fresh[0][at]; used != 0; used &= used - 1 {
		i := bits.TrailingZeros64(used)
		c.slabs[at][i] = old[i]
	}
}

// giveChain returns a chunk and its successors.
func (c *chunks) giveChain(id uint32) {
	for id != 0 {
		next := c.at(id).next()
		c.give(id)
		id = next
	}
}

// isSparse reports whether moving chunks together pays.
func (c *chunks) isSparse() bool {
	return c.unused >= slabChunks+spareChunks && c.unused > c.inUse()/sparseShare
}

// bitset is a set of numbers that finds its minimum fast: each level has a bit for each nonzero word below.
type bitset [3][]uint64

// setWord sets 64 numbers as bits.
func (s *bitset) setWord(i int, word uint64) {
	for level := range s {
		for i >= len(s[level]) {
			s[level] = append(s[level], 0)
		}
		s[level][i] = word
		if level+1 == len(s) {
			return
		}
		above, bit := uint64(0), uint64(1)<<(i&63)
		if i>>6 < len(s[level+1]) {
			above = s[level+1][i>>6]
		}
		if word != 0 {
			above |= bit
		} else {
			above &^= bit
		}
		i, word = i>>6, above
	}
}

func (s *bitset) isEmpty() bool {
	for _, word := range s[2] {
		if word != 0 {
			return false
		}
	}
	return true
}

// first returns the least number of a nonempty set.
func (s *bitset) first() int {
	i := 0
	for s[2][i] == 0 {
		i++
	}
	for level := 2; level >= 0; level-- {
		i = i<<6 + bits.TrailingZeros64(s[level][i])
	}
	return i
}

func (s *bitset) takeFirst() int {
	i := s.first()
	s.setWord(i>>6, s[0][i>>6]&(s[0][i>>6]-1))
	return i
}
