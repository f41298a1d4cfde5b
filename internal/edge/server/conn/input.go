package conn

import "cellserver/internal/base/buffers"

// Input is a connection's read buffer: bytes are read in at its end and consumed at its front. All its buffers are of one
// pool.
type Input struct {
	buf        []byte
	start, end int  // of what is not consumed
	full       bool // the last Read filled the buffer
}

const (
	minInputBytes = 4 << 10
	// MaxKeptInput is what a buffer grows to for the sake of fewer reads, and the largest that is kept once it
	// is empty. A single command may need more.
	MaxKeptInput = 64 << 10
)

// Free returns room to read into, at least one byte.
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

// replace goes on with a buffer of another size.
func (b *Input) replace(pool *buffers.Pool, size int) {
	other := pool.Get(size)
	n := copy(other, b.Unread())
	pool.Put(b.buf)
	b.buf, b.start, b.end = other, 0, n
}

// GrownBytes returns how large the buffer will be after Free has made it larger for the sake of one command, or 0.
func (b *Input) GrownBytes() int {
	if b.start != b.end && b.end == len(b.buf) && b.start < len(b.buf)/2 {
		return 2 * len(b.buf)
	}
	return 0
}

// Filled notes that n bytes were read into the room that Free has returned.
func (b *Input) Filled(n int) {
	b.end += n
	b.full = b.end == len(b.buf)
}

// HasBuffer reports whether there is a buffer at all.
func (b *Input) HasBuffer() bool { return b.buf != nil }

// Unread returns what is not consumed.
func (b *Input) Unread() []byte { return b.buf[b.start:b.end] }

// Spare returns how much of the buffer is in no use.
func (b *Input) Spare() int { return len(b.buf) - (b.end - b.start) }

// Consumed takes n bytes off the front.
func (b *Input) Consumed(n int) { b.start += n }

// Scrap returns room for bytes that nobody wants.
func (b *Input) Scrap(pool *buffers.Pool) []byte {
	b.start, b.end = 0, 0
	return b.Free(pool)
}

// Keep puts b into a buffer of its own. The input was empty.
func (b *Input) Keep(pool *buffers.Pool, rest []byte) {
	b.buf = pool.Get(max(minInputBytes, len(rest)+1))
	b.start, b.end = 0, copy(b.buf, rest)
}

// ReleaseIfEmpty gives the buffer back once all of it is consumed.
func (b *Input) ReleaseIfEmpty(pool *buffers.Pool) {
	if b.start == b.end {
		b.Release(pool)
	}
}

// Release gives the buffer back, whatever is in it.
func (b *Input) Release(pool *buffers.Pool) {
	pool.Put(b.buf)
	*b = Input{}
}
