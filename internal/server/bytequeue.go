package server

// byteQueue is a queue of bytes that a client has yet to take. One long buffer would be copied again each time it
// grows, and would be kept until its last byte is taken.
type byteQueue struct {
	list  [][]byte
	bytes int // that are not taken
}

// chunkBytes is how much is queued in one piece, and written at most between two looks at what is pending.
const chunkBytes = 64 << 10

// minChunkBytes is the first chunk's size: most queues stay short.
const minChunkBytes = 4 << 10

// add copies b to the end.
func (q *byteQueue) add(b []byte) {
	q.bytes += len(b)
	for len(b) > 0 {
		last := len(q.list) - 1
		if last < 0 || len(q.list[last]) == cap(q.list[last]) {
			size := chunkBytes
			if last < 0 && len(b) <= minChunkBytes {
				size = minChunkBytes
			}
			q.list = append(q.list, make([]byte, 0, size))
			last++
		}
		chunk := q.list[last]
		n := min(len(b), cap(chunk)-len(chunk))
		q.list[last] = append(chunk, b[:n]...)
		b = b[n:]
	}
}

// held returns how much memory the queue takes, about.
func (q *byteQueue) held() int {
	if len(q.list) == 1 && q.bytes <= minChunkBytes {
		return minChunkBytes
	}
	return len(q.list) * chunkBytes
}

// front returns the bytes that are to be taken next; none if the queue is empty.
func (q *byteQueue) front() []byte {
	if len(q.list) == 0 {
		return nil
	}
	return q.list[0]
}

// take removes n bytes, at most the length of front.
func (q *byteQueue) take(n int) {
	q.bytes -= n
	if n < len(q.list[0]) {
		q.list[0] = q.list[0][n:]
		return
	}
	q.list[0] = nil // or the list would keep it
	q.list = q.list[1:]
	if len(q.list) == 0 {
		q.list = nil
	}
}
