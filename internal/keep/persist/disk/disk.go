// Package disk is the log's view of a file system: a directory of files that are written sequentially and
// then only read. As an interface, it lets tests inject failures and lose unsynced data.
package disk

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
)

// Dir is a directory. Effects of Create, Rename and Remove survive a crash after SyncDir.
type Dir interface {
	// Create creates a file that must not exist.
	Create(name string) (File, error)
	Open(name string) (Reader, error)
	// Rename replaces any file with the new name.
	Rename(from, to string) error
	Remove(name string) error
	// SyncFile syncs a file of an earlier process, which may have ended before its sync.
	SyncFile(name string) error
	List() (names []string, err error)
	SyncDir() error
	// Check returns ErrGone if the directory, its lock or one of these files, once created or opened, was
	// removed or replaced.
	Check(names ...string) error
	// Regain takes and locks the directory now at the path, after Check has found it gone, and reports
	// whether it is another one. It creates none. If somebody else may have locked it since, accept is asked
	// first; on its error nothing changes.
	Regain(accept func(there Dir, isOther bool) error) (isOther bool, err error)
}

// File is a file being written. Its data survives a crash after Sync.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// Reader is a file being read, randomly or sequentially.
type Reader interface {
	io.Reader
	io.ReaderAt
	io.Closer
	Size() int64
}

// ErrGone reports a directory or file that was removed, moved or replaced.
var ErrGone = errors.New("disk: it was removed, moved or replaced while the server uses it")

// gone returns ErrGone if a path leads to no file or to another one. Other errors are returned as they are.
func gone(path string, err error) error {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w: %s", ErrGone, path)
}

// ErrInUse reports a directory locked by another process.
var ErrInUse = errors.New("disk: another process uses the directory")

// Replace replaces a file's contents. After any failure, either the old or the new file is there.
func Replace(dir Dir, name string, b []byte) error {
	next := name + ".new"
	if err := dir.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := dir.Create(next)
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := dir.Rename(next, name); err != nil {
		return err
	}
	return dir.SyncDir()
}

// ReadAll returns the contents of a file of up to mostBytes.
func ReadAll(dir Dir, name string, mostBytes int64) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, mostBytes))
	return b, errors.Join(err, f.Close())
}

// SetAside gives a file an unused name.
func SetAside(dir Dir, name string) error { return SetAsideAs(dir, name, name) }

// SetAsideAs is SetAside of a file that had another name when it was damaged.
func SetAsideAs(dir Dir, now, name string) error {
	for i := 1; ; i++ {
		aside := fmt.Sprintf("damaged-%d-%s", i, name)
		f, err := dir.Open(aside)
		if errors.Is(err, fs.ErrNotExist) {
			return dir.Rename(now, aside)
		}
		if err != nil {
			return err
		}
		_ = f.Close() // nothing was written
	}
}

// The small files of text end with a line of their checksum in every format, as it is checked before the
// format is believed:
//
//	crc32c 1a2b3c4d
const (
	sumWord  = "crc32c "
	sumBytes = len(sumWord) + 8 + 1
)

func Checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// AppendSum appends the line with its checksum to a text.
func AppendSum(text []byte) []byte { return fmt.Appendf(text, "%s%08x\n", sumWord, Checksum(text)) }

// CutSum cuts that line off, and reports whether it is there and right.
func CutSum(text []byte) (rest []byte, ok bool) {
	at := len(text) - sumBytes
	if at < 0 {
		return text, false
	}
	rest = text[:at:at]
	return rest, bytes.Equal(AppendSum(rest)[at:], text[at:])
}
