package server

import "cellserver/internal/base/buffers"

// input is a connection's read buffer: reads append at its end, commands are consumed at its front. All of
// its buffers come from one pool.
type input struct {
	buf        []byte
	start, end int  // bounds of the unconsumed bytes
	full       bool // the last read filled the buffer
}

const (
	minInputBytes = 4 << 10
	// maxKeptInput bounds a buffer that grows to save reads, and one that is kept when empty. A single
	// command may need more.
	maxKeptInput = 64 << 10
)

// free returns free space to read into, at least one byte.
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

// replace moves the unconsumed bytes to a buffer of another size.
func (b *input) replace(pool *buffers.Pool, size int) {
	other := pool.Get(size)
	n := copy(other, b.unread())
	pool.Put(b.buf)
	b.buf, b.start, b.end = other, 0, n
}

// grownBytes returns the size to which free is about to grow the buffer for one command, or 0.
func (b *input) grownBytes() int {
	if b.start != b.end && b.end == len(b.buf) && b.start < len(b.buf)/2 {
		return 2 * len(b.buf)
	}
	return 0
}

// filled records that n bytes were read into what free returned.
func (b *input) filled(n int) {
	b.end += n
	b.full = b.end == len(b.buf)
}

// unread returns the unconsumed bytes.
func (b *input) unread() []byte { return b.buf[b.start:b.end] }

// spare returns the unused bytes of the buffer.
func (b *input) spare() int { return len(b.buf) - (b.end - b.start) }

// consumed removes n bytes from the front.
func (b *input) consumed(n int) { b.start += n }

// scrap drops all input and returns space for bytes to throw away.
func (b *input) scrap(pool *buffers.Pool) []byte {
	b.start, b.end = 0, 0
	return b.free(pool)
}

// keep copies rest into a new buffer; the input must be empty.
func (b *input) keep(pool *buffers.Pool, rest []byte) {
	b.buf = pool.Get(max(minInputBytes, len(rest)+1))
	b.start, b.end = 0, copy(b.buf, rest)
}

// release returns the buffer, with whatever it holds, to the pool.
func (b *input) release(pool *buffers.Pool) {
	pool.Put(b.buf)
	*b = input{}
}
