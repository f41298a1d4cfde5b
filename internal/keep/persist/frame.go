package persist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// A file is a header and then frames. The header says what the file is, in which format, and of which generation:
//
//	"CELLSRVR" | kind: 4 bytes | format: u32 | generation: u64 | CRC32C of these: u32
//
// A frame is written by one write, and read whole or not at all:
//
//	"FRAM" | length of the payload: u32 | generation: u64 | sequence: u64 | clock: i64 | CRC32C of these and the payload: u32 | payload
//
// The numbers are little endian. Sequences go up by one from frame to frame of a generation's log. The generation keeps what
// is left of an older file in a block that was used again from being taken for a frame of this one; the clock is the latest
// time in Unix nanoseconds that the server had seen.
const (
	fileHeaderBytes  = 8 + 4 + 4 + 8 + 4
	frameHeaderBytes = 4 + 4 + 8 + 8 + 8 + 4

	fileMagic  = "CELLSRVR"
	frameMagic = "FRAM"

	// format is what this version writes. Of older ones it reads all there were: format 1 had no limiters but funnels.
	format = 2

	// maxPayloadBytes is the longest payload that is written; a longer one is no frame.
	maxPayloadBytes = 4 << 20
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) } // which is made once

// errNoFrame is that what is read is no frame, or not all of one.
var errNoFrame = errors.New("persist: no frame")

// frame is what a frame's header says.
type frame struct {
	generation uint64
	sequence   uint64
	clockNs    int64
}

// endOfTimeNs is the end of the year 2200. No server has seen it: one that took such a time over would go on
// from there, and what it decides would soon not fit into 64 bits.
const endOfTimeNs = 7_289_654_400 * int64(time.Second)

var errClock = errors.New("is beyond the year 2200")

func (f *frame) checkClock() error {
	if f.clockNs >= endOfTimeNs {
		return fmt.Errorf("the frame's clock, %s, %w", dayOf(f.clockNs), errClock)
	}
	return nil
}

// checkNow says of a server's time whether what is written at it could be read.
func checkNow(nowNs int64) error {
	if nowNs >= endOfTimeNs {
		return fmt.Errorf("persist: the system's clock, %s, %w: set it, then start again",
			dayOf(nowNs), errClock)
	}
	return nil
}

func dayOf(ns int64) string { return time.Unix(0, ns).UTC().Format(time.DateOnly) }

// beginFrame makes room for a frame's header in front of the payload that is appended next.
func beginFrame(buf []byte) []byte { return append(buf, make([]byte, frameHeaderBytes)...) }

// endFrame fills in the header of the frame that began at a place in buf.
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

// readFrameHeader returns what a frame's header says, if b begins with one and with as much as its payload should be long.
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

// readFrame returns the frame that b begins with, its payload, and what is behind it.
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
