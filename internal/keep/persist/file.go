package persist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

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
