package disk

import (
	"errors"
	"io/fs"
	"os"
)

// OpenExisting is OpenOS for reading only: it creates nothing, as on a read-only medium.
func OpenExisting(path string) (*OS, error) {
	h, err := open(path)
	if err != nil {
		return nil, err
	}
	if err = h.lockSelf(); err == nil {
		err = h.lockBy(os.O_RDONLY)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a copy may have no LOCK
		h.release(&held{})
		return nil, err
	}
	return &OS{path: path, held: h}, nil
}
