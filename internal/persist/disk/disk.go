// Package disk is the part of a file system that the log needs: one directory of files that are written from their
// beginning to their end, and then only read. It is an interface, so that a test's can fail, or lose what was not synced.
package disk

import (
	"errors"
	"io"
)

// Dir is a directory. What Create, Rename and Remove have done survives a crash after SyncDir.
type Dir interface {
	// Create makes a file. That there is one is an error.
	Create(name string) (File, error)
	// Open opens a file to be read.
	Open(name string) (Reader, error)
	// Rename gives a file another name, in place of what has that name.
	Rename(from, to string) error
	Remove(name string) error
	// SyncFile does File.Sync for what an earlier process has written, and maybe had no time to sync.
	SyncFile(name string) error
	// List returns the names of all files.
	List() (names []string, err error)
	SyncDir() error
	// Check returns ErrGone if the directory, its lock, or one of these files, of those that were made or
	// opened, is not there any more: it was removed, or something else has its name.
	Check(names ...string) error
	// Regain is for a directory that Check has found gone. If there is one of its path again, it locks and
	// takes that, and reports whether it is another one than before. It makes no directory. Unless the one
	// that is there was locked last by this Dir, it changes nothing if accept returns an error, which is
	// asked with what is there.
	Regain(accept func(there Dir, isOther bool) error) (isOther bool, err error)
}

// File is a file that is being written. What was written survives a crash after Sync.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// Reader is a file that is read, in parts at once or from its beginning on.
type Reader interface {
	io.Reader
	io.ReaderAt
	io.Closer
	Size() int64
}

// ErrGone is that the directory or a part of it was removed, moved or replaced.
var ErrGone = errors.New("disk: it was removed, moved or replaced while the server uses it")

// ErrInUse is that another process has locked the directory.
var ErrInUse = errors.New("disk: another process uses the directory")
