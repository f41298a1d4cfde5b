package logwriter

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sink keeps its input, unless it is held or fails.
type sink struct {
	held chan struct{} // if set, a Write waits until it is closed

	mu     sync.Mutex // guards all below
	fails  bool
	chunks []string
}

var errSink = errors.New("no space left on device")

func (s *sink) Write(b []byte) (int, error) {
	if s.held != nil {
		<-s.held
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return 0, errSink
	}
	s.chunks = append(s.chunks, string(b))
	return len(b), nil
}

func (s *sink) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.chunks, "")
}

func note(to io.Writer, lost uint64) { _, _ = fmt.Fprintf(to, "lost %d\n", lost) }

func TestLinesArriveInOrder(t *testing.T) {
	s := &sink{}
	w := New(s, note)
	var want strings.Builder
	for i := range 10_000 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		if n, err := io.WriteString(w, line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	w.Close(time.Minute)
	if s.text() != want.String() || w.Dropped() != 0 {
		t.Errorf("%d bytes of %d arrived, %d lines dropped", len(s.text()), want.Len(), w.Dropped())
	}
	for _, chunk := range s.chunks {
		if len(chunk) > chunkBytes || !strings.HasSuffix(chunk, "\n") {
			t.Fatalf("a chunk of %d bytes, which ends in %q", len(chunk), chunk[len(chunk)-1:])
		}
	}
}

// TestSinkThatHangs: writers do not wait, the backlog is bounded, and afterwards one line reports the loss.
func TestSinkThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{held: make(chan struct{})}
		w := New(s, note)
		line := strings.Repeat("x", 1023) + "\n"
		_, _ = io.WriteString(w, line) // held by the sink
		synctest.Wait()
		const lines = MaxBytes >> 10
		for range lines + 7 {
			_, _ = io.WriteString(w, line)
		}
		if w.Dropped() != 7 || len(w.waiting) != MaxBytes {
			t.Errorf("%d lines dropped, %d bytes wait", w.Dropped(), len(w.waiting))
		}
		begin := time.Now()
		w.Close(time.Second)
		if took := time.Since(begin); took != time.Second {
			t.Errorf("Close returned after %s", took)
		}
		close(s.held)
		synctest.Wait()
		if got := s.text(); got != strings.Repeat(line, 1+lines)+"lost 7\n" && got != line+"lost 7\n"+strings.Repeat(line, lines) {
			t.Errorf("in the end the sink has %d bytes, %q", len(got), got[max(0, len(got)-20):])
		}
	})
}

func TestSinkThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{fails: true}
		w := New(s, note)
		for range 3 {
			_, _ = io.WriteString(w, "a\n")
			synctest.Wait()
		}
		s.fails = false
		for range 2 {
			_, _ = io.WriteString(w, "b\n")
			synctest.Wait()
		}
		if got := s.text(); got != "b\nlost 3\nb\n" || w.Dropped() != 3 {
			t.Errorf("got %q, %d dropped", got, w.Dropped())
		}
		w.Close(time.Second)
		if _, _ = io.WriteString(w, "late\n"); w.Dropped() != 4 || strings.Contains(s.text(), "late") {
			t.Errorf("after Close: %q, %d dropped", s.text(), w.Dropped())
		}
	})
}

func TestLineLongerThanAChunk(t *testing.T) {
	s := &sink{}
	w := New(s, note)
	long := strings.Repeat("x", 3*chunkBytes) + "\n"
	for _, line := range []string{"a\n", long, "b\n"} {
		_, _ = io.WriteString(w, line)
	}
	w.Close(time.Minute)
	if s.text() != "a\n"+long+"b\n" {
		t.Errorf("%d bytes arrived", len(s.text()))
	}
}

// TestUnreadPipe: a write to a real pipe never returns.
func TestUnreadPipe(t *testing.T) {
	r, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	w := New(pipe, note)
	line := strings.Repeat("x", 999) + "\n"
	for w.Dropped() == 0 {
		_, _ = io.WriteString(w, line)
	}
	w.Close(time.Millisecond)
	_ = pipe.Close()
}

// TestMemoryIsReleased after a burst.
func TestMemoryIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{held: make(chan struct{})}
		w := New(s, note)
		line := strings.Repeat("x", 1023) + "\n"
		for range 2 * MaxBytes >> 10 {
			_, _ = io.WriteString(w, line)
		}
		close(s.held)
		synctest.Wait()
		_, _ = io.WriteString(w, line)
		synctest.Wait()
		if got := cap(w.waiting) + cap(w.spare); got > 2*keptBytes {
			t.Errorf("%d bytes are kept", got)
		}
		w.Close(time.Second)
	})
}

// TestWriteDoesNotAllocate once there are buffers.
func TestWriteDoesNotAllocate(t *testing.T) {
	w := New(io.Discard, note)
	line := []byte(strings.Repeat("x", 199) + "\n")
	for range 1000 {
		_, _ = w.Write(line)
	}
	for waits := true; waits; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		waits = len(w.waiting) > 0
		w.mu.Unlock()
	}
	if n := testing.AllocsPerRun(10_000, func() { _, _ = w.Write(line) }); n >= 1 {
		t.Errorf("%v allocations", n)
	}
	w.Close(time.Minute)
}

func TestConcurrently(t *testing.T) {
	s := &sink{}
	w := New(s, note)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				_, _ = io.WriteString(w, "12345678\n")
			}
		})
	}
	wg.Wait()
	w.Close(time.Minute)
	if got := len(s.text()); got != 4*1000*9 {
		t.Errorf("%d bytes arrived", got)
	}
}

// TestAwait waits for no longer than it is to, and not behind the end.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, done := time.Now(), make(chan struct{})
		for _, timeout := range []time.Duration{time.Second, time.Millisecond, 50, 0} {
			Await(done, timeout)
			if took := time.Since(began); took != max(timeout, 50) {
				t.Errorf("%s: it took %s", timeout, took)
			}
			began = time.Now()
		}
		close(done)
		if Await(done, time.Hour); time.Since(began) != 0 {
			t.Error("it waits for what is done")
		}
	})
}
