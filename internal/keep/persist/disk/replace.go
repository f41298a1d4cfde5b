package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Replace makes a file of a name what it is given. Whatever happens, the file from before or the new one is there.
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

// ReadAll returns what is in a file, as far as it is at most so long.
func ReadAll(dir Dir, name string, mostBytes int64) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, mostBytes))
	return b, errors.Join(err, f.Close())
}

// SetAside gives a file a name that nothing else has.
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
