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
	// Check returns ErrGone if the directory, its lock, or one of these files was removed, or something else has
	// its name. A file counts once it was made or opened.
	Check(names ...string) error
	// Regain takes and locks the directory that has the path again, after Check has found it gone, and reports
	// whether it is another one than before. It makes no directory. If somebody else may have locked that one
	// since, accept is asked first, and where it returns an error nothing is changed.
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

// ErrGone means that the directory, or a file in it, was removed, moved or replaced.
var ErrGone = errors.New("disk: it was removed, moved or replaced while the server uses it")

// ErrInUse is that another process has locked the directory.
var ErrInUse = errors.New("disk: another process uses the directory")
