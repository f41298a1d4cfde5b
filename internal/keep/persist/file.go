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

const (
	kindLog      = "LOG\x00"
	kindSnapshot = "SNAP"
)

var (
	// ErrNewer reports a file of a later version, as a *NewerError.
	ErrNewer = errors.New("of a newer format")
	// ErrDamaged reports a damaged file.
	ErrDamaged = errors.New("persist: the file is damaged")
)

// NewerError has a file's format and the newest known one.
type NewerError struct {
	File           string
	Format, Newest int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s is of format %d, and this version reads formats up to %d",
		e.File, e.Format, e.Newest)
}

func (e *NewerError) Unwrap() error { return ErrNewer }

// Advise adds advice to the error of a start with a later version's directory.
func (e *NewerError) Advise() error {
	return fmt.Errorf("persist: %w; start the later version that wrote it, or choose another directory", e)
}

func fileHeader(kind string, generation uint64) []byte {
	le := binary.LittleEndian
	b := append([]byte(fileMagic), kind...)
	b = le.AppendUint64(le.AppendUint32(b, format), generation)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// readHeader checks a file's kind and generation.
func readHeader(f disk.Reader, kind string, generation uint64) error {
	b := make([]byte, fileHeaderBytes)
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	le := binary.LittleEndian
	switch {
	case string(b[:8]) != fileMagic || crc32.Checksum(b[:24], castagnoli()) != le.Uint32(b[24:]):
		return fmt.Errorf("%w: no header", ErrDamaged)
	case le.Uint32(b[12:]) > format:
		return &NewerError{nameOf(kind, generation), int(le.Uint32(b[12:])), format}
	case string(b[8:12]) != kind || le.Uint64(b[16:]) != generation:
		return fmt.Errorf("%w: it belongs elsewhere", ErrDamaged)
	}
	return nil
}

// writer appends frames to a file, each with one write.
type writer struct {
	file  disk.File
	next  frame // next header, apart from the clock
	bytes int64 // length of the file
	buf   []byte
}

func createFile(dir disk.Dir, name, kind string, generation, sequence uint64) (*writer, error) {
	f, err := dir.Create(name)
	if err != nil {
		return nil, err
	}
	header := fileHeader(kind, generation)
	if _, err := f.Write(header); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &writer{file: f, next: frame{generation: generation, sequence: sequence}, bytes: int64(len(header))}, nil
}

// write appends a frame of up to maxPayloadBytes. After an error the file must be abandoned, as its end is
// unknown.
func (w *writer) write(clockNs int64, payload []byte) error {
	w.buf = append(beginFrame(w.buf[:0]), payload...)
	w.next.clockNs = clockNs
	endFrame(w.buf, 0, w.next)
	if _, err := w.file.Write(w.buf); err != nil {
		return err
	}
	w.bytes += int64(len(w.buf))
	w.next.sequence++
	return nil
}

func (w *writer) sync() error { return w.file.Sync() }

// readBytes is the most to read at once, more than a frame.
const readBytes = 2 * (frameHeaderBytes + maxPayloadBytes)

// readFile visits a file's frames in order, and returns their bytes and the expected next header. A torn last
// write of an ended server may follow, without any frame after it; anything else is an error.
func readFile(f disk.Reader, kind string, from frame, visit func(f frame, payload []byte) error) (valid int64, next frame, err error) {
	if err := readHeader(f, kind, from.generation); err != nil {
		return 0, from, err
	}
	window := window{file: f, at: fileHeaderBytes}
	for {
		b, err := window.atLeast(frameHeaderBytes + maxPayloadBytes)
		if err != nil || len(b) == 0 {
			return window.at, from, err
		}
		got, payload, rest, err := readFrame(b)
		if err != nil || got.generation != from.generation || got.sequence != from.sequence {
			valid := window.at
			found, err := window.toNextFrame(from)
			if found {
				err = fmt.Errorf("%w: byte %d is no frame, and byte %d is", ErrDamaged, valid, window.at)
			}
			return valid, from, err
		}
		if err := got.checkClock(); err != nil {
			return window.at, from, fmt.Errorf("%w: byte %d: %w", ErrDamaged, window.at, err)
		}
		if err := visit(got, payload); err != nil {
			return window.at, from, err
		}
		from.sequence, from.clockNs = from.sequence+1, got.clockNs
		window.skip(len(b) - len(rest))
	}
}

type window struct {
	file disk.Reader
	at   int64 // position of b
	b    []byte
	buf  []byte
}

// atLeast returns at least n of the following bytes, or all.
func (w *window) atLeast(n int) ([]byte, error) {
	if left := w.file.Size() - w.at; len(w.b) < n && int64(len(w.b)) < left {
		size := min(left, readBytes)
		if int64(len(w.buf)) < size {
			w.buf = make([]byte, size)
		}
		w.b = w.buf[:size]
		if _, err := w.file.ReadAt(w.b, w.at); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	return w.b, nil
}

func (w *window) skip(n int) { w.at, w.b = w.at+int64(n), w.b[n:] }

// searchBytes bounds the checking of apparent frames: only a crafted file has more.
const searchBytes = 1 << 30

// toNextFrame moves to a frame not before from, and reports whether there is one.
func (w *window) toNextFrame(from frame) (found bool, err error) {
	for checked := 0; ; {
		b, err := w.atLeast(frameHeaderBytes + maxPayloadBytes)
		if err != nil || len(b) == 0 {
			return false, err
		}
		if f, n, ok := readFrameHeader(b); ok && f.generation == from.generation && f.sequence >= from.sequence {
			if _, _, _, err := readFrame(b); err == nil {
				return true, nil
			}
			if checked += n; checked > searchBytes {
				return false, fmt.Errorf("%w: behind byte %d is too much that looks like frames", ErrDamaged, w.at)
			}
		}
		if i := bytes.Index(b[1:], []byte(frameMagic)); i >= 0 {
			w.skip(1 + i)
		} else {
			w.skip(max(1, len(b)-len(frameMagic)+1))
		}
	}
}

// recoverFile is readFile for a damaged file: it visits the remaining frames and returns the errors.
func recoverFile(f disk.Reader, kind string, from frame, visit func(f frame, payload []byte) error) (next frame, damage []error, err error) {
	if err := readHeader(f, kind, from.generation); errors.Is(err, ErrDamaged) {
		damage = append(damage, err)
	} else if err != nil {
		return from, nil, err
	}
	for window := (window{file: f, at: min(fileHeaderBytes, f.Size())}); ; {
		at := window.at
		found, err := window.toNextFrame(from)
		if window.at > at {
			damage = append(damage, fmt.Errorf("%w: bytes %d to %d are no frames", ErrDamaged, at, window.at))
		}
		if err != nil || !found {
			return from, damage, err
		}
		got, payload, rest, err := readFrame(window.b)
		if err != nil {
			return from, damage, err
		}
		if err := got.checkClock(); err != nil { // its contents count from that time, too
			damage = append(damage, fmt.Errorf("%w: byte %d: %w", ErrDamaged, window.at, err))
			got.clockNs = from.clockNs
		} else if err := visit(got, payload); err != nil {
			return from, damage, err
		}
		from.sequence, from.clockNs = got.sequence+1, got.clockNs
		window.skip(len(window.b) - len(rest))
	}
}

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

	// format is the written format, also of the manifest. Older ones can be read: format 1 had only funnels,
	// format 2 no quotas, and of named limits only funnels; format 4 is a manifest's that names files beside.
	// Up to format 4 funnels of named limits have no interval, up to format 5 their keys no holds, up to
	// format 6 these no begin, and nothing says what was spent.
	format = 7

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
