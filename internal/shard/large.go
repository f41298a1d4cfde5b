package shard

import "slices"

// large holds records too long for an arena, each in its own buffer, which its entry keeps when it moves. A
// number is an index of bufs; 0 is none.
type large struct {
	bufs  [][]byte
	free  []uint32
	bytes int // capacity of the buffers
	names int // of names in the buffers
}

func (a *large) totalBytes() int { return a.bytes + sliceHeaderBytes*len(a.bufs) }

func (a *large) set(id uint32, buf []byte) {
	a.bytes += cap(buf) - cap(a.bufs[id])
	a.bufs[id] = buf
}

func (a *large) take(buf []byte, nameBytes int) (id uint32) {
	a.names += nameBytes
	if n := len(a.free); n > 0 {
		id = a.free[n-1]
		a.free = a.free[:n-1]
	} else {
		if len(a.bufs) == 0 {
			a.bufs = append(a.bufs, nil)
		}
		id = uint32(len(a.bufs))
		a.bufs = append(a.bufs, nil)
	}
	a.set(id, buf)
	return id
}

func (a *large) give(id uint32, nameBytes int) {
	a.names -= nameBytes
	a.set(id, nil)
	a.free = append(a.free, id)
	if len(a.free) == len(a.bufs)-1 {
		*a = large{}
	}
}

// newBuf returns an empty buffer with the whole size class.
func newBuf(bytes int) []byte { return slices.Grow([]byte(nil), bytes) }
