package server

import "cellserver/internal/base/buffers"

// input is a connection's read buffer: bytes are read in at its end and consumed at its front. All its buffers are of one
// pool.
type input struct {
	buf        []byte
	start, end int  // of what is not consumed
	full       bool // the last Read filled the buffer
}

const (
	minInputBytes = 4 << 10
	// maxKeptInput is what a buffer grows to for the sake of fewer reads, and the largest that is kept once it
	// is empty. A single command may need more.
	maxKeptInput = 64 << 10
)

// free returns room to read into, at least one byte.
func (b *input) free(pool *buffers.Pool) []byte {
	switch {
	case b.start == b.end:
		b.start, b.end = 0, 0
		switch {
		case b.buf == nil || len(b.buf) > maxKeptInput:
			b.replace(pool, minInputBytes)
		case b.full && len(b.buf) < maxKeptInput:
			b.replace(pool, 2*len(b.buf))
		}
	case b.end == len(b.buf) && b.start >= len(b.buf)/2:
		b.end = copy(b.buf, b.buf[b.start:])
		b.start = 0
	case b.end == len(b.buf):
		b.replace(pool, 2*len(b.buf))
	}
	return b.buf[b.end:]
}

// replace goes on with a buffer of another size.
func (b *input) replace(pool *buffers.Pool, size int) {
	other := pool.Get(size)
	n := copy(other, b.unread())
	pool.Put(b.buf)
	b.buf, b.start, b.end = other, 0, n
}

// grownBytes returns how large the buffer will be after free has made it larger for the sake of one command, or 0.
func (b *input) grownBytes() int {
	if b.start != b.end && b.end == len(b.buf) && b.start < len(b.buf)/2 {
		return 2 * len(b.buf)
	}
	return 0
}

func (b *input) filled(n int) {
	b.end += n
	b.full = b.end == len(b.buf)
}

// hasBuffer reports whether there is a buffer at all.
func (b *input) hasBuffer() bool { return b.buf != nil }

func (b *input) unread() []byte { return b.buf[b.start:b.end] }

// spare returns how much of the buffer is in no use.
func (b *input) spare() int { return len(b.buf) - (b.end - b.start) }

func (b *input) consumed(n int) { b.start += n }

// scrap returns room for bytes that nobody wants.
func (b *input) scrap(pool *buffers.Pool) []byte {
	b.start, b.end = 0, 0
	return b.free(pool)
}

// keep puts b into a buffer of its own. The input was empty.
func (b *input) keep(pool *buffers.Pool, rest []byte) {
	b.buf = pool.Get(max(minInputBytes, len(rest)+1))
	b.start, b.end = 0, copy(b.buf, rest)
}

// releaseIfEmpty gives the buffer back once all of it is consumed.
func (b *input) releaseIfEmpty(pool *buffers.Pool) {
	if b.start == b.end {
		b.release(pool)
	}
}

func (b *input) release(pool *buffers.Pool) {
	pool.Put(b.buf)
	*b = input{}
}
