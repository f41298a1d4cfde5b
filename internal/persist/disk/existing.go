package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// OpenExisting is OpenOS for a directory that is only read: it makes neither that nor a file in it, which may be on a medium
// that cannot be written.
func OpenExisting(path string) (*OS, error) {
	lock, err := os.Open(filepath.Join(path, lockName))
	if errors.Is(err, fs.ErrNotExist) { // no server has been there, or it is a copy: nobody else needs to be kept out
		if lock, err = os.Open(path); err == nil {
			return &OS{path, lock}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if err := lockFile(lock); err != nil {
		return nil, err
	}
	return &OS{path, lock}, nil
}
