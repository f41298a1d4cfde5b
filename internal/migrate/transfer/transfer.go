// Package transfer moves the states of keys between servers, data directories and files. States are absolute,
// such as a TAT in Unix nanoseconds, so moving twice is harmless; only the clocks' difference between two
// running servers shifts them.
//
// A file is a stream, which detects damage (StreamWriter documents the format), or CSV (CSVWriter).
//
// All types belong to one goroutine at a time.
package transfer

import (
	"bytes"
	"errors"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Entry is a key's state.
type Entry struct {
	Key   store.Key
	State limiter.State
}

// clone copies the memory that the next Read reuses.
func (e *Entry) clone() Entry {
	c := *e
	c.Key.Name, c.State.Payload = bytes.Clone(e.Key.Name), bytes.Clone(e.State.Payload)
	return c
}

// Writer takes entries. Close completes the output.
type Writer interface {
	Write(e Entry) error
	Close() error
}

// Reader returns entries, then io.EOF. A key's name and payload are valid until the next call.
type Reader interface {
	Read() (Entry, error)
}

var (
	// ErrNewer reports a stream of a later version.
	ErrNewer = errors.New("the dump has a newer format; use the version that wrote it, or a later one")
	// ErrDamaged reports a changed or truncated file.
	ErrDamaged = errors.New("the dump is damaged or truncated")
	// ErrNoDump reports a file of another type.
	ErrNoDump = errors.New("not a cellserver dump; a CSV file needs --format csv")
)
