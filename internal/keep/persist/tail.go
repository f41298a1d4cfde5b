package persist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"cellserver/internal/keep/persist/disk"
)

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
