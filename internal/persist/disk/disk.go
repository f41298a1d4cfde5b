// Package disk is the part of a file system that the log needs: one directory of files that are written from their
// beginning to their end, and then only read. It is an interface, so that a test's can fail, or lose what was not synced.
package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// ErrInUse is that another process has locked the directory.
var ErrInUse = errors.New("disk: another process uses the directory")

const lockName = "LOCK"

// OS is a directory of the operating system, locked against other processes.
type OS struct {
	path string
	lock *os.File
}

// OpenOS makes the directory if there is none, and locks it until Close. The lock ends with the process.
func OpenOS(path string) (*OS, error) {
	if _, err := os.Stat(path); err != nil {
		if err := errors.Join(os.MkdirAll(path, 0o700), syncDir(filepath.Dir(path))); err != nil {
			return nil, err
		}
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(lock); err != nil {
		return nil, err
	}
	return &OS{path, lock}, nil
}

// lockFile locks a file against other processes, or closes it.
func lockFile(lock *os.File) error {
	inUse, err := tryLock(lock)
	if err == nil {
		return nil
	}
	_ = lock.Close()
	if inUse {
		return ErrInUse
	}
	return fmt.Errorf("disk: lock %s: %w", lock.Name(), err)
}

// Close lets others at the directory.
func (d *OS) Close() error { return d.lock.Close() }

// Create implements Dir.
func (d *OS) Create(name string) (File, error) {
	f, err := os.OpenFile(d.at(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return created{f}, nil
}

type created struct{ *os.File }

// Sync implements File.
func (c created) Sync() error { return syncData(c.File) }

// Open implements Dir.
func (d *OS) Open(name string) (Reader, error) {
	f, err := os.Open(d.at(name))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return sized{f, info.Size()}, nil
}

type sized struct {
	*os.File
	size int64
}

func (s sized) Size() int64 { return s.size }

// Rename implements Dir.
func (d *OS) Rename(from, to string) error { return os.Rename(d.at(from), d.at(to)) }

// Remove implements Dir.
func (d *OS) Remove(name string) error { return os.Remove(d.at(name)) }

// SyncFile implements Dir.
func (d *OS) SyncFile(name string) error {
	f, err := os.Open(d.at(name))
	if err != nil {
		return err
	}
	return errors.Join(syncData(f), f.Close())
}

// List implements Dir.
func (d *OS) List() (names []string, err error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != lockName {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// SyncDir implements Dir.
func (d *OS) SyncDir() error { return syncDir(d.path) }

func (d *OS) at(name string) string { return filepath.Join(d.path, name) }
