package persist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"cellserver/internal/keep/persist/disk"
)

// A file is a header, which identifies kind, format and generation, and frames:
//
//	"CELLSRVR" | kind: 4 bytes | format: u32 | generation: u64 | CRC32C of these: u32
//
// A frame is written at once, and read whole or not at all:
//
//	"FRAM" | length of the payload: u32 | generation: u64 | sequence: u64 | clock: i64 |
//	CRC32C of these and the payload: u32 | payload
//
// Numbers are little endian. Sequences grow by one within a log. The generation distinguishes frames from an
// older file's in reused blocks; the clock is the latest Unix time in nanoseconds that the server had seen.
const (
	fileHeaderBytes  = 8 + 4 + 4 + 8 + 4
	frameHeaderBytes = 4 + 4 + 8 + 8 + 8 + 4

	fileMagic  = "CELLSRVR"
	frameMagic = "FRAM"

	// format is the written format. Older ones can be read: format 1 had only funnels, format 2 no quotas,
	// and of named limits only funnels.
	format = 3

	// maxPayloadBytes bounds the payload of a frame.
	maxPayloadBytes = 4 << 20
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) } // computed once

// errNoFrame reports an invalid or incomplete frame.
var errNoFrame = errors.New("persist: no frame")

// frame is a frame's header.
type frame struct {
	generation uint64
	sequence   uint64
	clockNs    int64
}

// endOfTimeNs is the end of 2200. A server that adopted a later time would go on from it, and soon exceed 64
// bits.
const endOfTimeNs = 7_289_654_400 * int64(time.Second)

var errClock = errors.New("is beyond the year 2200")

func (f *frame) checkClock() error {
	if f.clockNs >= endOfTimeNs {
		return fmt.Errorf("the frame's clock, %s, %w", dayOf(f.clockNs), errClock)
	}
	return nil
}

// checkNow returns an error for a time that could not be read again.
func checkNow(nowNs int64) error {
	if nowNs >= endOfTimeNs {
		return fmt.Errorf("persist: the system's clock, %s, %w: set it, then start again",
			dayOf(nowNs), errClock)
	}
	return nil
}

func dayOf(ns int64) string { return time.Unix(0, ns).UTC().Format(time.DateOnly) }

// beginFrame reserves space for the header before a payload.
func beginFrame(buf []byte) []byte { return append(buf, make([]byte, frameHeaderBytes)...) }

// endFrame fills in the header of the frame at a position.
func endFrame(buf []byte, at int, f frame) {
	header, payload := buf[at:at+frameHeaderBytes], buf[at+frameHeaderBytes:]
	le := binary.LittleEndian
	copy(header, frameMagic)
	le.PutUint32(header[4:], uint32(len(payload)))
	le.PutUint64(header[8:], f.generation)
	le.PutUint64(header[16:], f.sequence)
	le.PutUint64(header[24:], uint64(f.clockNs))
	le.PutUint32(header[32:], checksum(header[:32], payload))
}

func checksum(header, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(header, castagnoli()), castagnoli(), payload)
}

// readFrameHeader returns the header of the frame that b begins with and may be complete.
func readFrameHeader(b []byte) (f frame, payloadBytes int, ok bool) {
	if len(b) < frameHeaderBytes || string(b[:4]) != frameMagic {
		return frame{}, 0, false
	}
	le := binary.LittleEndian
	n := le.Uint32(b[4:])
	if n > maxPayloadBytes || int(n) > len(b)-frameHeaderBytes {
		return frame{}, 0, false
	}
	return frame{le.Uint64(b[8:]), le.Uint64(b[16:]), int64(le.Uint64(b[24:]))}, int(n), true
}

// readFrame returns the first frame of b, its payload and the rest.
func readFrame(b []byte) (f frame, payload, rest []byte, err error) {
	f, n, ok := readFrameHeader(b)
	if !ok {
		return frame{}, nil, b, errNoFrame
	}
	payload = b[frameHeaderBytes : frameHeaderBytes+n]
	if checksum(b[:32], payload) != binary.LittleEndian.Uint32(b[32:]) {
		return frame{}, nil, b, errNoFrame
	}
	return f, payload, b[frameHeaderBytes+n:], nil
}

// Tail is what follows the last frame or line of a file that is appended to, and is dropped.
type Tail struct {
	File      string
	At, Bytes int64
	// Complete says that nothing of it is missing, so that its checksum is wrong by damage, not by a write
	// that was under way.
	Complete bool
}

func (t *Tail) String() string {
	if t.Complete {
		return fmt.Sprintf("the last %d bytes, from byte %d on, are complete and their checksum is wrong, so they were damaged; "+
			"the change in them is lost", t.Bytes, t.At)
	}
	return fmt.Sprintf("the last %d bytes, from byte %d on, are an unfinished write of when the server ended", t.Bytes, t.At)
}

// tailOf returns what follows the frames of a log, whose next one would be want.
func tailOf(name string, file disk.Reader, at int64, want frame) (Tail, error) {
	t := Tail{File: name, At: at, Bytes: file.Size() - at}
	if t.Bytes < frameHeaderBytes {
		return t, nil
	}
	b := make([]byte, min(t.Bytes, frameHeaderBytes+maxPayloadBytes))
	if _, err := file.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
		return t, err
	}
	t.Complete = isDamagedFrame(b, want)
	return t, nil
}

// isDamagedFrame reports whether b, which begins with no readable frame, begins with all bytes of one.
func isDamagedFrame(b []byte, want frame) bool {
	f, n, ok := readFrameHeader(b)
	if ok && f.generation == want.generation && f.sequence == want.sequence {
		return !mayBeTorn(b[:frameHeaderBytes+n])
	}
	// Only the header may be wrong, if the rest has the checksum of a right one.
	whole := bytes.Clone(b)
	want.clockNs = int64(binary.LittleEndian.Uint64(b[24:]))
	endFrame(whole, 0, want)
	return bytes.Equal(whole[32:], b[32:])
}

// mayBeTorn reports whether a crash of the machine can have left a frame so: with its length, and zeros for
// blocks that were not written.
func mayBeTorn(frame []byte) bool {
	const sectorBytes = 512
	if frame[len(frame)-1] == 0 {
		return true
	}
	zeros := make([]byte, sectorBytes)
	return bytes.Contains(frame, zeros)
}
