// Package logwriter keeps the log from holding up whoever writes to it: a Writer takes a copy of each line at once, and a
// goroutine of its own writes the copies to a sink that may be slow, or may never return, such as a pipe that nobody reads.
// A Writer is safe for concurrent use.
package logwriter

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// MaxBytes is how much waits for the sink at most; while the sink holds a part of it, as much again may wait.
	MaxBytes = 1 << 20
	// chunkBytes is how much the sink is given at a time, in whole lines unless one line is longer.
	chunkBytes = 16 << 10
	// keptBytes is the most that stays allocated while nothing waits.
	keptBytes = 64 << 10
)

// Writer is an io.Writer, one line per Write, in front of a sink. When MaxBytes wait, lines are dropped and counted.
type Writer struct {
	sink io.Writer
	note func(sink io.Writer, lost uint64)
	wake chan struct{} // holds one wake-up
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex // guards all below
	waiting []byte
	spare   []byte // the goroutine's buffer while it has nothing to write
	dropped uint64 // lines since the start
	noted   uint64 // of those, how many a note has told of
	closed  bool
}

// New returns a Writer in front of a sink. When the sink takes lines again after some were lost, note is called with their
// number, to write a line about it to the sink.
func New(sink io.Writer, note func(sink io.Writer, lost uint64)) *Writer {
	w := &Writer{sink: sink, note: note, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// Write implements io.Writer. It never waits for the sink, and never fails.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	if w.closed || len(w.waiting)+len(line) > MaxBytes {
		w.dropped++
	} else {
		w.waiting = append(w.waiting, line...)
	}
	w.mu.Unlock()
	w.wakeUp()
	return len(line), nil
}

func (w *Writer) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Dropped returns how many lines were lost since the start.
func (w *Writer) Dropped() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Close has what waits written, but returns after the timeout at the latest. Later lines are dropped.
func (w *Writer) Close(timeout time.Duration) {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wakeUp()
	late := time.NewTimer(timeout)
	defer late.Stop()
	select {
	case <-w.done:
	case <-late.C:
	}
}

func (w *Writer) run() {
	defer close(w.done)
	for range w.wake {
		for {
			lines, closed := w.take()
			if len(lines) == 0 && closed {
				return
			}
			if len(lines) == 0 {
				break
			}
			w.write(lines)
		}
	}
}

// take takes what waits, and leaves the spare buffer in its place.
func (w *Writer) take() (lines []byte, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return nil, w.closed
	}
	lines = w.waiting
	w.waiting, w.spare = w.spare, nil
	return lines, w.closed
}

// write gives the sink lines, and then tells of those that were lost meanwhile.
func (w *Writer) write(lines []byte) {
	failed := uint64(0)
	for rest := lines; len(rest) > 0; {
		chunk := rest[:chunkLen(rest)]
		rest = rest[len(chunk):]
		if _, err := w.sink.Write(chunk); err != nil { // such as a full disk
			failed += uint64(bytes.Count(chunk, []byte("\n")))
		}
	}
	w.mu.Lock()
	if cap(lines) <= keptBytes {
		w.spare = lines[:0]
	}
	w.dropped += failed
	lost := w.dropped - w.noted
	if failed == 0 {
		w.noted = w.dropped
	}
	w.mu.Unlock()
	if failed == 0 && lost > 0 {
		w.note(w.sink, lost)
	}
}

// chunkLen returns the length of the lines at the beginning of b that fit into a chunk, of one line at least.
func chunkLen(b []byte) int {
	if len(b) <= chunkBytes {
		return len(b)
	}
	if end := bytes.LastIndexByte(b[:chunkBytes], '\n'); end >= 0 {
		return end + 1
	}
	if end := bytes.IndexByte(b, '\n'); end >= 0 {
		return end + 1
	}
	return len(b)
}
