// Package transfer moves the states of keys between servers, data directories and files. A state is absolute, such as a TAT in
// Unix nanoseconds, so what is moved twice does no harm; only where two running servers' clocks differ is it shifted by that.
//
// A file is a stream, which says when it is damaged or not all there (StreamWriter tells its format), or CSV (CSVWriter).
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

// clone returns an entry that stays as it is.
func (e *Entry) clone() Entry {
	c := *e
	c.Key.Name, c.State.Payload = bytes.Clone(e.Key.Name), bytes.Clone(e.State.Payload)
	return c
}

// Writer takes entries. Without Close what was written is not complete.
type Writer interface {
	Write(e Entry) error
	Close() error
}

// Reader returns entries, and then io.EOF. A key's name and its state's payload are valid until the next call.
type Reader interface {
	Read() (Entry, error)
}

var (
	// ErrNewer is that a stream was written by a later version.
	ErrNewer = errors.New("the dump is of a newer format than this version knows; use the version that wrote it, or a later one")
	// ErrDamaged is that a file is not as it was written, or not all there.
	ErrDamaged = errors.New("the dump is damaged or was cut off")
	// ErrNoDump is that a file is something else.
	ErrNoDump = errors.New("this is no dump of cellserver; a CSV file needs --format csv")
)
