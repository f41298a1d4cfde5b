package buffers

// Queue is a queue of bytes, in chunks: one long buffer would be copied again each time it grows, and be kept until its last
// byte is taken. The zero value is empty.
type Queue struct {
	first, last *chunk
	bytes       int // that are not taken
	held        int
}

type chunk struct {
	next       *chunk
	start, end int // of what is not taken
	buf        []byte
}

const (
	// ChunkBytes is how much is queued in one piece.
	ChunkBytes = 64 << 10
	// minChunkBytes is the first chunk's size: most queues stay short.
	minChunkBytes = 4 << 10
)

// Len returns how many bytes are not taken.
func (q *Queue) Len() int { return q.bytes }

// Held returns how much memory the queue takes, about.
func (q *Queue) Held() int { return q.held }

// Add copies b to the end. All that a queue is filled from is one pool.
func (q *Queue) Add(p *Pool, b []byte) {
	q.bytes += len(b)
	for len(b) > 0 {
		if q.last == nil || q.last.end == len(q.last.buf) {
			q.grow(p, len(b))
		}
		n := copy(q.last.buf[q.last.end:], b)
		q.last.end += n
		b = b[n:]
	}
}

// grow adds a chunk for n bytes, or the first of them.
func (q *Queue) grow(p *Pool, n int) {
	var c *chunk
	if q.last == nil && n <= minChunkBytes {
		c = &chunk{buf: make([]byte, minChunkBytes)}
	} else if c, _ = p.chunks.Get().(*chunk); c == nil {
		c = &chunk{buf: make([]byte, ChunkBytes)}
	}
	q.held += len(c.buf)
	if q.last == nil {
		q.first = c
	} else {
		q.last.next = c
	}
	q.last = c
}

// Front returns the bytes that are to be taken next; none if the queue is empty.
func (q *Queue) Front() []byte {
	if q.first == nil {
		return nil
	}
	return q.first.buf[q.first.start:q.first.end]
}

// Take removes n bytes, at most the length of Front. What Front has returned may not be used any more once all of it is
// taken.
func (q *Queue) Take(p *Pool, n int) {
	q.bytes -= n
	c := q.first
	if c.start += n; c.start < c.end {
		return
	}
	q.held -= len(c.buf)
	if q.first = c.next; q.first == nil {
		q.last = nil
	}
	p.putChunk(c)
}

// Clear empties the queue.
func (q *Queue) Clear(p *Pool) {
	for q.first != nil {
		q.Take(p, len(q.Front()))
	}
}

func (p *Pool) putChunk(c *chunk) {
	if len(c.buf) == ChunkBytes {
		c.next, c.start, c.end = nil, 0, 0
		p.chunks.Put(c)
	}
}
