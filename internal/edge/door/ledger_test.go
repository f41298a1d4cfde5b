package door

import (
	"slices"
	"strings"
	"testing"
	"time"

	h2 "cellserver/internal/test/http2test"
)

// take has a ledger read what a client sends, in pieces of a size, and reports whether that is a flood.
func take(l *ledger, size int, b []byte) (flood bool) {
	for piece := range slices.Chunk(b, size) {
		if _, err := l.received(piece); err != nil {
			return true
		}
	}
	return false
}

// answer has a ledger read an answer.
func answer(l *ledger, stream uint32) {
	l.sent(h2.Frame(h2.Headers, h2.EndHeaders, stream, "h"))
	l.sent(h2.Frame(h2.Data, h2.EndStream, stream, "answer"))
}

// opens returns a request that resets its stream or not.
func opens(stream uint32, reset bool) []byte {
	b := h2.Frame(h2.Headers, h2.EndHeaders|h2.EndStream, stream, "h")
	if reset {
		b = append(b, h2.Frame(h2.Reset, 0, stream, "code")...)
	}
	return b
}

// TestResets: a client may reset all streams of a connection once, and as many more as it lets be answered.
func TestResets(t *testing.T) {
	for _, size := range []int{1, 7, 1 << 20} {
		l, stream := newLedger(false), uint32(1)
		next := func() uint32 { stream += 2; return stream }
		for range 3 * maxResets { // one of two
			reset, answered := next(), next()
			if take(l, size, append(opens(reset, true), opens(answered, false)...)) {
				t.Fatal("as many resets as answers are a flood")
			}
			answer(l, answered)
		}
		for i := range maxResets {
			if take(l, size, opens(next(), true)) {
				t.Fatalf("reset %d is a flood", i)
			}
		}
		if !take(l, size, opens(next(), true)) {
			t.Error("one more is none")
		}
	}
}

// TestFramesThatAskNothing: PING and the like are bounded, more of them beside requests and by time.
func TestFramesThatAskNothing(t *testing.T) {
	for name, frame := range map[string][]byte{
		"PING":          h2.Frame(h2.Ping, 0, 0, "12345678"),
		"SETTINGS":      h2.Frame(h2.Settings, 0, 0, ""),
		"PRIORITY":      h2.Frame(h2.Priority, 0, 1, "12345"),
		"WINDOW_UPDATE": h2.Frame(h2.Window, 0, 0, "\x00\x00\x00\x01"),
		"CONTINUATION":  h2.Frame(h2.Continuation, 0, 1, ""),
		"unknown":       h2.Frame(77, 0, 0, "x"),
		"empty DATA":    h2.Frame(h2.Data, 0, 1, ""),
		"short DATA":    h2.Frame(h2.Data, 0, 1, "x"),
		"DATA of none":  h2.Frame(h2.Data, 0, 9, strings.Repeat("x", 1000)),
	} {
		l := newLedger(false)
		_, _ = l.received(opens(1, false))
		if take(l, 1000, slices.Repeat(frame, maxIdleFrames)) {
			t.Errorf("%s: %d are a flood", name, maxIdleFrames)
		}
		l.since = time.Now().Add(-10 * time.Second)
		if take(l, 1000, slices.Repeat(frame, 10*framesASecond)) {
			t.Errorf("%s: those of ten seconds are a flood", name)
		}
		if !take(l, 1000, slices.Repeat(frame, maxIdleFrames)) {
			t.Errorf("%s: twice as many are none", name)
		}
	}
	l := newLedger(false)
	for stream := range uint32(1000) { // a client that reads its answers piece by piece
		b := append(opens(2*stream+1, false), slices.Repeat(h2.Frame(h2.Window, 0, 0, "\x00\x00\x00\x01"), framesAnAnswer)...)
		if take(l, 1000, b) {
			t.Fatal("windows of a client that reads answers are a flood")
		}
		answer(l, 2*stream+1)
	}
}

// TestHeld: streams hold memory until their answer ends, and data until the client's window has it back.
func TestHeld(t *testing.T) {
	l := newLedger(false)
	held := 0
	in := func(b []byte) {
		grown, _ := l.received(b)
		held += grown
	}
	out := func(b []byte) {
		_, grown := l.sent(b)
		held += grown
	}
	out(h2.Frame(h2.Window, 0, 0, "\x00\x0f\x00\x01")) // the window is larger than HTTP/2's
	in(h2.Frame(h2.Headers, 0, 1, strings.Repeat("h", 500)))
	in(h2.Frame(h2.Continuation, h2.EndHeaders, 1, strings.Repeat("h", 300)))
	in(h2.Frame(h2.Data, 0, 1, strings.Repeat("x", 1000)))
	in(h2.Frame(h2.Headers, h2.EndHeaders, 3, ""))
	if want := 2*streamBytes + 500 + 300 + 1000; held != want {
		t.Errorf("%d bytes are held, want %d", held, want)
	}
	out(h2.Frame(h2.Window, 0, 1, "\x00\x00\x03\xe8")) // the stream's
	out(h2.Frame(h2.Window, 0, 0, "\x00\x00\x03\xe8"))
	answer(l, 9) // no such stream
	if want := 2*streamBytes + 800; held != want {
		t.Errorf("once the data is read %d bytes are held, want %d", held, want)
	}
	out(h2.Frame(h2.Headers, h2.EndHeaders|h2.EndStream, 1, "h"))
	in(h2.Frame(h2.Reset, 0, 3, "code"))
	if held != 0 {
		t.Errorf("in the end %d bytes are held", held)
	}
}
