package server

// blocks is a queue of bytes that a client has yet to take. One long buffer would be copied again each time it
// grows, and would be kept until its last byte is taken.
type blocks struct {
	list  [][]byte
	bytes int // that are not taken
}

// blockBytes is how much is queued in one piece, and written at most between two looks at what is pending.
const blockBytes = 64 << 10

// minBlockBytes is the first block's size: most queues stay short.
const minBlockBytes = 4 << 10

// add copies b to the end.
func (q *blocks) add(b []byte) {
	q.bytes += len(b)
	for len(b) > 0 {
		last := len(q.list) - 1
		if last < 0 || len(q.list[last]) == cap(q.list[last]) {
			size := blockBytes
			if last < 0 && len(b) <= minBlockBytes {
				size = minBlockBytes
			}
			q.list = append(q.list, make([]byte, 0, size))
			last++
		}
		block := q.list[last]
		n := min(len(b), cap(block)-len(block))
		q.list[last] = append(block, b[:n]...)
		b = b[n:]
	}
}

// front returns the bytes that are to be taken next; none if the queue is empty.
func (q *blocks) front() []byte {
	if len(q.list) == 0 {
		return nil
	}
	return q.list[0]
}

// take removes n bytes, at most the length of front.
func (q *blocks) take(n int) {
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
