package replication

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
)

// Format is the format of the stream. A replica says the newest one that it reads, and its leader which one
// follows, so a newer replica reads the stream of an older leader, but not the reverse. From format 2 on the
// leader says beforehand whether it has ever had states; in format 3 funnels of named limits have intervals,
// in format 4 their keys may have holds; in format 5 these have a begin, and the stream has what was spent.
const Format = 5

// The stream is a sequence of frames:
//
//	length of the content: u32 | flags: u8 | clock: i64 | content
//
// Numbers are little endian. The clock is the leader's time in Unix nanoseconds, not before any in the
// content. The content is records of changes, or with flagDefinitions a text. A round of changes is some
// frames, the last of which has flagEnd: they take effect together. An offset counts the bytes of all frames
// in a history, up to the end of a round. During a full sync there are frames with flagState between rounds,
// which offsets do not count, and the last one has flagComplete.
const (
	headerBytes = 4 + 1 + 8

	flagEnd         = 1
	flagDefinitions = 2
	flagState       = 4
	flagComplete    = 8
)

var errFrame = errors.New("replication: not a frame of this format")

type frame struct {
	flags   uint8
	clockNs int64
	content []byte
}

func appendFrame(b []byte, flags uint8, clockNs int64, content []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(content)))
	b = binary.LittleEndian.AppendUint64(append(b, flags), uint64(clockNs))
	return append(b, content...)
}

func readFrame(b []byte) (f frame, raw, rest []byte, err error) {
	if len(b) < headerBytes {
		return f, nil, b, errFrame
	}
	n := binary.LittleEndian.Uint32(b)
	if int64(n) > int64(len(b)-headerBytes) || b[4]&^(flagEnd|flagDefinitions|flagState|flagComplete) != 0 {
		return f, nil, b, errFrame
	}
	f.flags, f.clockNs = b[4], int64(binary.LittleEndian.Uint64(b[5:]))
	raw, rest = b[:headerBytes+n], b[headerBytes+n:]
	f.content = raw[headerBytes:]
	return f, raw, rest, nil
}

// backlog holds the newest frames of a stream.
type backlog struct {
	max    int64
	base   int64 // where the frames begin, -1 within a round
	end    int64 // offset after the last frame
	bytes  int64
	frames []sent
}

type sent struct {
	end int64
	raw []byte
}

// reset drops all frames and goes on from an offset.
func (l *backlog) reset(offset int64) { *l = backlog{max: l.max, base: offset, end: offset} }

func (l *backlog) add(frames [][]byte) {
	for _, raw := range frames {
		l.end += int64(len(raw))
		l.bytes += int64(len(raw))
		l.frames = append(l.frames, sent{l.end, raw})
	}
	drop := 0
	for ; l.bytes > l.max && drop < len(l.frames); drop++ {
		dropped := &l.frames[drop]
		if l.base = -1; dropped.raw[4]&flagEnd != 0 {
			l.base = dropped.end
		}
		l.bytes -= int64(len(dropped.raw))
		dropped.raw = nil
	}
	l.frames = l.frames[drop:]
}

func (l *backlog) start() int64 { return l.end - l.bytes }

// covers reports whether a stream that was sent up to an offset can go on.
func (l *backlog) covers(offset int64) bool { return l.start() <= offset && offset <= l.end }

// has is covers for an offset that somebody claims: a round ends there.
func (l *backlog) has(offset int64) bool {
	i, found := slices.BinarySearchFunc(l.frames, offset, func(s sent, offset int64) int { return cmp.Compare(s.end, offset) })
	return l.covers(offset) && (offset == l.base || offset == l.end || found && l.frames[i].raw[4]&flagEnd != 0)
}

// from appends frames from an offset, of about most bytes, and returns the next offset.
func (l *backlog) from(b []byte, offset int64, most int) (_ []byte, next int64) {
	i, _ := slices.BinarySearchFunc(l.frames, offset, func(s sent, offset int64) int {
		if s.end <= offset {
			return -1
		}
		return 1
	})
	for n := 0; i < len(l.frames) && n < most; i++ {
		b, offset = append(b, l.frames[i].raw...), l.frames[i].end
		n += len(l.frames[i].raw)
	}
	return b, offset
}

// newHistory returns 40 random hexadecimal digits.
func newHistory() string {
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}
