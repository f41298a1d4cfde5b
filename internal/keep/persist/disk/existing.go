package disk

import (
	"errors"
	"io/fs"
	"os"
)

// OpenExisting is OpenOS for a directory that is only read: it makes neither that nor a file in it, which may
// be on a medium that cannot be written.
func OpenExisting(path string) (*OS, error) {
	h, err := open(path)
	if err != nil {
		return nil, err
	}
	if err = h.lockSelf(); err == nil {
		err = h.lockBy(os.O_RDONLY)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be a copy without LOCK
		h.release(&held{})
		return nil, err
	}
	return &OS{path: path, held: h}, nil
}
