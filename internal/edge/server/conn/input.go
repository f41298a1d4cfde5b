package conn

import "cellserver/internal/base/buffers"

// Input is a connection's read buffer: reads append at its end, commands are consumed at its front. All of
// its buffers come from one pool.
type Input struct {
	buf        []byte
	start, end int  // bounds of the unconsumed bytes
	full       bool // the last Read filled the buffer
}

const (
	minInputBytes = 4 << 10
	// MaxKeptInput bounds a buffer that grows to save reads, and one that is kept when empty. A single
	// command may need more.
	MaxKeptInput = 64 << 10
)

// Free returns free space to read into, at least one byte.
func (b *Input) Free(pool *buffers.Pool) []byte {
	switch {
	case b.start == b.end:
		b.start, b.end = 0, 0
		switch {
		case b.buf == nil || len(b.buf) > MaxKeptInput:
			b.replace(pool, minInputBytes)
		case b.full && len(b.buf) < MaxKeptInput:
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
func (b *Input) replace(pool *buffers.Pool, size int) {
	other := pool.Get(size)
	n := copy(other, b.Unread())
	pool.Put(b.buf)
	b.buf, b.start, b.end = other, 0, n
}

// GrownBytes returns the size to which Free is about to grow the buffer for one command, or 0.
func (b *Input) GrownBytes() int {
	if b.start != b.end && b.end == len(b.buf) && b.start < len(b.buf)/2 {
		return 2 * len(b.buf)
	}
	return 0
}

// Filled records that n bytes were read into what Free returned.
func (b *Input) Filled(n int) {
	b.end += n
	b.full = b.end == len(b.buf)
}

func (b *Input) HasBuffer() bool { return b.buf != nil }

// Unread returns the unconsumed bytes.
func (b *Input) Unread() []byte { return b.buf[b.start:b.end] }

// Spare returns the unused bytes of the buffer.
func (b *Input) Spare() int { return len(b.buf) - (b.end - b.start) }

// Consumed removes n bytes from the front.
func (b *Input) Consumed(n int) { b.start += n }

// Scrap drops all input and returns space for bytes to throw away.
func (b *Input) Scrap(pool *buffers.Pool) []byte {
	b.start, b.end = 0, 0
	return b.Free(pool)
}

// Keep copies rest into a new buffer; the input must be empty.
func (b *Input) Keep(pool *buffers.Pool, rest []byte) {
	b.buf = pool.Get(max(minInputBytes, len(rest)+1))
	b.start, b.end = 0, copy(b.buf, rest)
}

// ReleaseIfEmpty releases the buffer once all of it is consumed.
func (b *Input) ReleaseIfEmpty(pool *buffers.Pool) {
	if b.start == b.end {
		b.Release(pool)
	}
}

// Release returns the buffer, with whatever it holds, to the pool.
func (b *Input) Release(pool *buffers.Pool) {
	pool.Put(b.buf)
	*b = Input{}
}
