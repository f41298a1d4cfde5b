package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

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
func SetAside(dir Dir, name string) error {
	for i := 1; ; i++ {
		aside := fmt.Sprintf("damaged-%d-%s", i, name)
		f, err := dir.Open(aside)
		if errors.Is(err, fs.ErrNotExist) {
			return dir.Rename(name, aside)
		}
		if err != nil {
			return err
		}
		_ = f.Close() // nothing was written
	}
}
