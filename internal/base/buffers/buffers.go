// Package buffers reuses large byte slices, which many clients would otherwise turn into garbage faster than
// it is collected. A Pool is safe for concurrent use, a Queue is not.
package buffers

import (
	"math/bits"
	"sync"
)

// Sizes of kept buffers, powers of two. The collector copes with smaller ones; larger ones are too much to
// keep.
const (
	leastKept = 16 << 10
	mostKept  = 16 << 20
	classes   = 11
)

// Pool keeps unused buffers for up to two garbage collections. The zero value is ready.
type Pool struct {
	kept   [classes]sync.Pool // of *[]byte
	chunks sync.Pool          // of *chunk
}

// Get returns at least n bytes of arbitrary contents.
func (p *Pool) Get(n int) []byte {
	n = 1 << bits.Len(uint(max(1, n)-1))
	if c := class(n); c >= 0 {
		if b, ok := p.kept[c].Get().(*[]byte); ok {
			return *b
		}
	}
	return make([]byte, n)
}

// Put takes back a whole slice from Get, which must not be used afterwards.
func (p *Pool) Put(b []byte) {
	if c := class(len(b)); c >= 0 {
		p.keep(c, b)
	}
}

func (p *Pool) keep(class int, b []byte) { p.kept[class].Put(&b) }

// class returns the index of a size, or -1.
func class(size int) int {
	if size < leastKept || size > mostKept {
		return -1
	}
	return bits.Len(uint(size)) - bits.Len(uint(leastKept))
}
