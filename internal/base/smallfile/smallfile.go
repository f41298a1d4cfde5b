// Package smallfile reads the files that an operator names, such as those of passwords, certificates and
// limits, each as a whole and within bounds: a wrong name may be that of a device or of a pipe without an
// end. Its functions may be called from any goroutine.
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

// MaxBytes is how long a file may be.
const MaxBytes = 4 << 20

// patience is how long a pipe may take to end.
const patience = 10 * time.Second

var (
	errTooLong = errors.New("it is longer than " + strconv.Itoa(MaxBytes>>20) + " MiB")
	errNoEnd   = errors.New("nobody has written to this pipe and closed it within " + patience.String())
)

// Read returns what is in a file. An error is a *fs.PathError.
func Read(path string) ([]byte, error) { return read(path, patience) }

// Cause returns an error of Read without the path, for messages that name it already.
func Cause(err error) error {
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

func read(path string, patience time.Duration) ([]byte, error) {
	flags := os.O_RDONLY
	info, err := os.Stat(path)
	isPipe := err == nil && info.Mode()&fs.ModeNamedPipe != 0
	if isPipe {
		flags |= syscall.O_NONBLOCK // else it is waited for whoever opens the other end
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	var text []byte
	if isPipe {
		text, err = readPipe(f, time.Now().Add(patience))
	} else {
		text, err = readAll(f)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: Cause(err)}
	}
	return text, nil
}

func readAll(f *os.File) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err == nil && len(text) > MaxBytes {
		err = errTooLong
	}
	return text, err
}

// pipePoll is how often a pipe is looked at that nobody has opened for writing yet, which reads as one that
// has ended.
const pipePoll = 10 * time.Millisecond

func readPipe(f *os.File, until time.Time) ([]byte, error) {
	if err := f.SetReadDeadline(until); err != nil {
		return nil, err
	}
	for {
		text, err := readAll(f)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), err == nil && len(text) == 0 && time.Now().After(until):
			return nil, errNoEnd
		case err != nil, len(text) > 0:
			return text, err
		}
		time.Sleep(pipePoll)
	}
}
