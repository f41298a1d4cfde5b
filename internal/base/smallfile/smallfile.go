// Package smallfile reads files named by an operator, whole and bounded: a wrong name may be a device's or an
// endless pipe's. It is safe for concurrent use.
package smallfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"
)

// MaxBytes is the longest file of Read.
const MaxBytes = 4 << 20

// patience bounds the time for a pipe to end.
const patience = 10 * time.Second

var errNoEnd = errors.New("the pipe was not written and closed within " + patience.String())

// Read returns a file's contents. An error is a *fs.PathError.
func Read(path string) ([]byte, error) { return read(path, MaxBytes, patience) }

// ReadUpTo is Read for a file of up to maxBytes, a multiple of 1 MiB.
func ReadUpTo(path string, maxBytes int) ([]byte, error) { return read(path, maxBytes, patience) }

// Cause returns an error of Read without its path.
func Cause(err error) error {
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

func read(path string, maxBytes int, patience time.Duration) ([]byte, error) {
	flags := os.O_RDONLY
	info, err := os.Stat(path)
	isPipe := err == nil && info.Mode()&fs.ModeNamedPipe != 0
	if isPipe {
		flags |= syscall.O_NONBLOCK // else opening waits for a writer
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	var text []byte
	if isPipe {
		text, err = readPipe(f, maxBytes, time.Now().Add(patience))
	} else {
		text, err = readAll(f, maxBytes)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: Cause(err)}
	}
	return text, nil
}

func readAll(f *os.File, maxBytes int) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(f, int64(maxBytes)+1))
	if err == nil && len(text) > maxBytes {
		err = errors.New("it is longer than " + strconv.Itoa(maxBytes>>20) + " MiB")
	}
	return text, err
}

// pipePoll is the interval of looks at a pipe without a writer, which reads as ended.
const pipePoll = 10 * time.Millisecond

func readPipe(f *os.File, maxBytes int, until time.Time) ([]byte, error) {
	if err := f.SetReadDeadline(until); err != nil {
		return nil, err
	}
	for {
		text, err := readAll(f, maxBytes)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), err == nil && len(text) == 0 && time.Now().After(until):
			return nil, errNoEnd
		case err != nil, len(text) > 0:
			return text, err
		}
		time.Sleep(pipePoll)
	}
}
