package shadow

import (
	"context"
	"errors"
	"sync/atomic"
)

const (
	queuedLines = 1 << 16 // beyond it the source buffers
	queuedBytes = 64 << 20
)

// lines queues MONITOR's lines from one goroutine to another.
type lines struct {
	c     chan []byte
	bytes atomic.Int64
	freed chan struct{} // signals free space
}

func newLines() *lines {
	return &lines{c: make(chan []byte, queuedLines), freed: make(chan struct{}, 1)}
}

// fill queues a stream's lines until it ends; nil stands for one that is too long.
func (q *lines) fill(ctx context.Context, stream *conn) error {
	for {
		line, err := stream.line()
		if err != nil && !errors.Is(err, errLongLine) {
			return err
		}
		if err == nil {
			line = append(make([]byte, 0, len(line)), line...)
		}
		for q.bytes.Load() > queuedBytes {
			select {
			case <-q.freed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		q.bytes.Add(int64(len(line)))
		select {
		case q.c <- line:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// noteTaken accounts for a line taken from c.
func (q *lines) noteTaken(line []byte) {
	if left := q.bytes.Add(-int64(len(line))); left <= queuedBytes {
		select {
		case q.freed <- struct{}{}:
		default:
		}
	}
}
