// Package logwriter decouples logging from its sink, which may be slow or block forever, such as a pipe
// without a reader: a goroutine writes copies of the lines. A Writer is safe for concurrent use.
package logwriter

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// MaxBytes bounds the waiting lines, apart from those being written.
	MaxBytes = 1 << 20
	// chunkBytes bounds a single write, in whole lines unless one is longer.
	chunkBytes = 16 << 10
	// keptBytes bounds the memory kept while idle.
	keptBytes = 64 << 10
)

// Writer is an io.Writer for one line a Write. Beyond MaxBytes, it drops and counts lines.
type Writer struct {
	sink io.Writer
	note func(sink io.Writer, lost uint64)
	wake chan struct{} // holds one wake-up
	done chan struct{} // closed at the goroutine's end

	mu      sync.Mutex // rank 95: guards all below
	waiting []byte
	spare   []byte // the goroutine's idle buffer
	dropped uint64 // number of lines
	noted   uint64 // number of reported lines
	closed  bool
}

// New returns a Writer to sink. After a loss, it calls note with the number of lost lines as soon as the sink
// accepts lines again.
func New(sink io.Writer, note func(sink io.Writer, lost uint64)) *Writer {
	w := &Writer{sink: sink, note: note, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// Write never waits and never fails.
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

func (w *Writer) Dropped() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Close writes the waiting lines, for at most timeout. Later lines are dropped.
func (w *Writer) Close(timeout time.Duration) {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wakeUp()
	Await(w.done, timeout)
}

// Await waits for done, for at most timeout. A process that a busy machine gives no turn does not use that
// up: it is counted in parts, each of which lets other goroutines run.
func Await(done <-chan struct{}, timeout time.Duration) {
	const parts = 50
	ticks := time.NewTicker(max(timeout/parts, 1))
	defer ticks.Stop()
	for range parts {
		select {
		case <-done:
			return
		case <-ticks.C:
		}
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

// take swaps the waiting lines for the spare buffer.
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

// write writes lines and then reports lost ones.
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

// chunkLen returns the length of the first lines of b that fit into a chunk, at least one.
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
