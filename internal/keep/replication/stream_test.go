package replication

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// FuzzFrames: a frame ends within its bytes, a stream is encoded to the same bytes again, and no prefix of a
// frame is one.
func FuzzFrames(f *testing.F) {
	one := appendFrame(nil, flagEnd, 7, []byte("content"))
	f.Add(one)
	f.Add(appendFrame(one, flagState|flagDefinitions, -1, nil))
	f.Add(appendFrame(nil, flagState|flagComplete, 1<<60, bytes.Repeat([]byte{0xff}, 300)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		var out []byte
		for rest := in; len(rest) > 0; {
			one, raw, left, err := readFrame(rest)
			if err != nil {
				if raw != nil || len(left) != len(rest) {
					t.Errorf("with an error: %d bytes, %d are left of %d", len(raw), len(left), len(rest))
				}
				break
			}
			if len(raw)+len(left) != len(rest) || len(raw) != headerBytes+len(one.content) {
				t.Fatalf("%d bytes, with %d of content, and %d are left of %d", len(raw), len(one.content), len(left), len(rest))
			}
			if _, _, _, err := readFrame(raw[:len(raw)-1]); err == nil {
				t.Error("a part of a frame is one")
			}
			out, rest = appendFrame(out, one.flags, one.clockNs, one.content), left
		}
		if !bytes.HasPrefix(in, out) {
			t.Errorf("%x is encoded as %x", in, out)
		}
	})
}

func TestUnknownFlags(t *testing.T) {
	for bit := range 8 {
		flags := uint8(1) << bit
		_, _, _, err := readFrame(appendFrame(nil, flags, 0, nil))
		if known := flags&(flagEnd|flagDefinitions|flagState|flagComplete) != 0; (err == nil) != known {
			t.Errorf("flag %d: %v", flags, err)
		}
	}
}

// frames returns the frames of a round with contents of some lengths.
func frames(lengths ...int) (all [][]byte) {
	for i, n := range lengths {
		all = append(all, appendFrame(nil, 0, int64(i), make([]byte, n)))
	}
	if len(all) > 0 {
		all[len(all)-1][4] |= flagEnd
	}
	return all
}

// TestBacklog: at each boundary of a frame it goes on with the frames from there, as long as it has them;
// somebody else can be there only at the end of a round.
func TestBacklog(t *testing.T) {
	const most = 1000
	l := backlog{max: most}
	l.reset(500)
	if !l.has(500) || l.has(499) || l.has(501) {
		t.Error("an empty one has more than its place")
	}
	var stream []byte // from 500 on
	ends, rounds := []int64{500}, []int64{500}
	for round := range 200 {
		added := frames(slices.Repeat([]int{round % 97}, round%4)...)
		for _, raw := range added {
			stream = append(stream, raw...)
			ends = append(ends, 500+int64(len(stream)))
		}
		rounds = append(rounds, ends[len(ends)-1])
		l.add(added)
		if l.end != 500+int64(len(stream)) || l.bytes > most || l.bytes < 0 || l.start() != l.end-l.bytes {
			t.Fatalf("round %d: it ends at %d with %d bytes, and the stream at %d", round, l.end, l.bytes, 500+len(stream))
		}
		for _, from := range ends {
			there := from >= l.start()
			known := there && slices.Contains(rounds, from) && (from != l.start() || l.has(from)) // not after a frame that is gone
			if l.covers(from) != there || l.has(from) != known || l.has(from+1) && !slices.Contains(rounds, from+1) {
				t.Fatalf("round %d: covers %d: %t, has it: %t, of %d to %d", round, from, l.covers(from), l.has(from), l.start(), l.end)
			}
			if !there {
				continue
			}
			for _, size := range []int{1, 100, most} {
				got, next := l.from(nil, from, size)
				if want := stream[from-500 : next-500]; !bytes.Equal(got, want) || !slices.Contains(ends, next) {
					t.Fatalf("round %d: from %d it goes to %d, with %d bytes", round, from, next, len(got))
				}
				if next != l.end && len(got) < size || from < l.end && next == from {
					t.Fatalf("round %d: %d bytes from %d, of %d wanted", round, len(got), from, size)
				}
			}
		}
	}
	if _, next := l.from([]byte("x"), l.end, 1); next != l.end {
		t.Errorf("after the end there is %d", next)
	}
	l.max = 10
	if l.add(nil); l.bytes > 10 || !l.has(l.end) {
		t.Errorf("lowered to 10, it has %d bytes", l.bytes)
	}
	l.reset(7)
	if l.end != 7 || l.bytes != 0 || l.max != 10 {
		t.Errorf("reset, it is %+v", l)
	}
}

// TestLargeFrames: one frame that exceeds the bound leaves an empty backlog at its end.
func TestLargeFrames(t *testing.T) {
	l := backlog{max: 100}
	l.add(frames(10, 200))
	if l.bytes != 0 || l.has(0) || !l.has(l.end) || l.end != 210+2*headerBytes {
		t.Errorf("it is %+v", l)
	}
}

func TestHistories(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		id := newHistory()
		if seen[id] || len(id) != 40 || len(fmt.Sprintf("%x", id)) != 80 {
			t.Errorf("got %q", id)
		}
		seen[id] = true
	}
}
