// Package buffers keeps large byte slices to be used again: what many clients fill and leave would be garbage faster than
// it is collected. A Pool is safe for concurrent use, a Queue is not.
package buffers

import (
	"math/bits"
	"sync"
)

// Of these sizes buffers are kept; they are powers of two. Smaller ones are no burden to the collector, and larger ones too
// much to keep.
const (
	leastKept = 16 << 10
	mostKept  = 16 << 20
	classes   = 11
)

// Pool keeps what nobody uses until the collector has run twice, so that it takes nothing for long. The zero value is
// ready.
type Pool struct {
	kept   [classes]sync.Pool // of *[]byte
	chunks sync.Pool          // of *chunk
}

// Get returns a slice of n bytes or more, whose contents are of no meaning.
func (p *Pool) Get(n int) []byte {
	n = 1 << bits.Len(uint(max(1, n)-1))
	if c := class(n); c >= 0 {
		if b, ok := p.kept[c].Get().(*[]byte); ok {
			return *b
		}
	}
	return make([]byte, n)
}

// Put takes back what Get has returned, whole. Nobody may use it any more.
func (p *Pool) Put(b []byte) {
	if c := class(len(b)); c >= 0 {
		p.keep(c, b)
	}
}

func (p *Pool) keep(class int, b []byte) { p.kept[class].Put(&b) }

// class is where buffers of a size are kept, or -1.
func class(size int) int {
	if size < leastKept || size > mostKept {
		return -1
	}
	return bits.Len(uint(size)) - bits.Len(uint(leastKept))
}
