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

// The kinds of files.
const (
	kindLog      = "LOG\x00"
	kindSnapshot = "SNAP"
)

var (
	// ErrNewer is that a file was written by a later version; such an error is a *NewerError.
	ErrNewer = errors.New("of a newer format")
	// ErrDamaged is that a file is not as it was written.
	ErrDamaged = errors.New("persist: the file is damaged")
)

// NewerError says which format a file has, and what the newest is that this version reads.
type NewerError struct {
	File           string
	Format, Newest int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s is of format %d, and this version reads formats up to %d",
		e.File, e.Format, e.Newest)
}

// Unwrap returns ErrNewer.
func (e *NewerError) Unwrap() error { return ErrNewer }

// Advise adds to an error of a server's start what to do with a directory of a later version.
func (e *NewerError) Advise() error {
	return fmt.Errorf("persist: %w; start the later version that wrote it, or choose another directory", e)
}

func fileHeader(kind string, generation uint64) []byte {
	le := binary.LittleEndian
	b := append([]byte(fileMagic), kind...)
	b = le.AppendUint64(le.AppendUint32(b, format), generation)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// checkHeader says whether a file begins as one of the kind and generation.
func checkHeader(b []byte, kind string, generation uint64) error {
	le := binary.LittleEndian
	switch {
	case len(b) < fileHeaderBytes || string(b[:8]) != fileMagic || crc32.Checksum(b[:24], castagnoli()) != le.Uint32(b[24:]):
		return fmt.Errorf("%w: no header", ErrDamaged)
	case le.Uint32(b[12:]) > format:
		return &NewerError{nameOf(kind, generation), int(le.Uint32(b[12:])), format}
	case string(b[8:12]) != kind || le.Uint64(b[16:]) != generation:
		return fmt.Errorf("%w: it belongs elsewhere", ErrDamaged)
	}
	return nil
}

// writer appends frames to a file, one write each.
type writer struct {
	file  disk.File
	next  frame // what the next frame's header says, but for the clock
	bytes int64 // of the file
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

// write appends a frame, of at most maxPayloadBytes. After an error the file's end is unknown, and it must be left.
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

// readBytes is how much of a file is read at once: more than a frame.
const readBytes = 2 * (frameHeaderBytes + maxPayloadBytes)

// readFile calls visit with the frames of a file in their order, and returns how many bytes of it are those, and what
// the frame behind the last would say. What follows is torn where a write was under way when the server ended, and then no
// frame comes behind it; anything else is an error.
func readFile(f disk.Reader, kind string, from frame, visit func(f frame, payload []byte) error) (valid int64, next frame, err error) {
	header := make([]byte, fileHeaderBytes)
	if _, err := f.ReadAt(header, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, from, err
	}
	if err := checkHeader(header, kind, from.generation); err != nil {
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

// window is a part of a file.
type window struct {
	file disk.Reader
	at   int64 // where b begins
	b    []byte
	buf  []byte
}

// atLeast returns what follows in the file: so many bytes or more, or all.
func (w *window) atLeast(n int) ([]byte, error) {
	if left := w.file.Size() - w.at; len(w.b) < n && int64(len(w.b)) < left {
		if w.buf == nil {
			w.buf = make([]byte, readBytes)
		}
		w.b = w.buf[:min(left, int64(len(w.buf)))]
		if _, err := w.file.ReadAt(w.b, w.at); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	return w.b, nil
}

func (w *window) skip(n int) { w.at, w.b = w.at+int64(n), w.b[n:] }

// searchBytes is how much of what looks like frames is checked, in search of one: only a file that was made to be searched
// for long has more.
const searchBytes = 1 << 30

// toNextFrame goes on to a frame of the log that is not before another, and reports whether there is one.
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

// recoverFile is readFile for a damaged file: it visits the frames that are left, and tells what is wrong.
func recoverFile(f disk.Reader, kind string, from frame, visit func(f frame, payload []byte) error) (next frame, damage []error, err error) {
	header := make([]byte, fileHeaderBytes)
	if _, err := f.ReadAt(header, 0); err != nil && !errors.Is(err, io.EOF) {
		return from, nil, err
	}
	if err := checkHeader(header, kind, from.generation); errors.Is(err, ErrNewer) {
		return from, nil, err
	} else if err != nil {
		damage = append(damage, err)
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
		if err := got.checkClock(); err != nil { // what it holds is counted from that time, too
			damage = append(damage, fmt.Errorf("%w: byte %d: %w", ErrDamaged, window.at, err))
			got.clockNs = from.clockNs
		} else if err := visit(got, payload); err != nil {
			return from, damage, err
		}
		from.sequence, from.clockNs = got.sequence+1, got.clockNs
		window.skip(len(window.b) - len(rest))
	}
}
