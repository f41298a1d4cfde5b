package buffers

// Queue is a queue of bytes in chunks, which are neither copied as it grows nor kept until it is empty. The
// zero value is empty.
type Queue struct {
	first, last *chunk
	bytes       int // not taken yet
	held        int
}

type chunk struct {
	next       *chunk
	start, end int // of the bytes not taken yet
	buf        []byte
}

const (
	ChunkBytes = 64 << 10
	// minChunkBytes is the size of the first chunk: most queues stay short.
	minChunkBytes = 4 << 10
)

func (q *Queue) Len() int { return q.bytes }

// Held returns the approximate memory of the queue.
func (q *Queue) Held() int { return q.held }

// Add copies b to the end. A queue always uses the same pool.
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

// grow adds a chunk for up to n bytes.
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

// Front returns the next bytes, none for an empty queue.
func (q *Queue) Front() []byte {
	if q.first == nil {
		return nil
	}
	return q.first.buf[q.first.start:q.first.end]
}

// Take removes n bytes, at most Front's length. A slice from Front is invalid once all of it is taken.
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
