package shadow

import (
	"context"
	"errors"
	"sync/atomic"
)

const (
	queuedLines = 1 << 16 // of MONITOR, beyond which the source has to keep them
	queuedBytes = 64 << 20
)

// lines are those of MONITOR that came and were not handled yet. One goroutine fills it, another empties it.
type lines struct {
	c     chan []byte
	bytes atomic.Int64
	freed chan struct{} // when there is room again
}

func newLines() *lines {
	return &lines{c: make(chan []byte, queuedLines), freed: make(chan struct{}, 1)}
}

// fill passes on the lines of a stream until it ends. nil stands for one that is too long.
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

// took notes that a line was taken out.
func (q *lines) took(line []byte) {
	if left := q.bytes.Add(-int64(len(line))); left <= queuedBytes {
		select {
		case q.freed <- struct{}{}:
		default:
		}
	}
}
