package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
)

func (d *OS) Check(names ...string) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.checkLocked(names...)
}

func (d *OS) checkLocked(names ...string) error {
	h := &d.held
	if info, err := os.Stat(d.path); err != nil || !os.SameFile(info, h.info) {
		return gone(d.path, err)
	}
	if err := h.check(d.path, lockName); err != nil {
		return err
	}
	for _, name := range names {
		if err := h.check(d.path, name); err != nil {
			return err
		}
	}
	return nil
}

func (h *held) check(path, name string) error {
	was, ok := h.files[name]
	if !ok {
		return nil
	}
	if info, err := h.root.Lstat(name); err != nil || !was.is(info) {
		return gone(filepath.Join(path, name), err)
	}
	return nil
}

// gone returns ErrGone if a path leads to no file or to another one. Other errors are returned as they are.
func gone(path string, err error) error {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w: %s", ErrGone, path)
}

func (d *OS) Regain(accept func(there Dir, isOther bool) error) (isOther bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.checkLocked(); err == nil {
		return false, nil
	}
	there, err := d.reopenLocked()
	if err != nil {
		return false, err
	}
	isOther = there.root != d.held.root
	accepted := func() error { return accept(&OS{path: d.path, held: there}, isOther) }
	if err := d.lockAgain(&there, accepted); err != nil {
		there.release(&d.held)
		return false, err
	}
	before := d.held
	d.held = there
	before.release(&d.held)
	return isOther, nil
}

// reopenLocked returns the directory now at the path, locked but for its file LOCK.
func (d *OS) reopenLocked() (there held, err error) {
	if info, err := os.Stat(d.path); err == nil && os.SameFile(info, d.held.info) {
		there, there.lock = d.held, nil
		there.files = maps.Clone(d.held.files)
		return there, nil
	}
	if there, err = open(d.path); err != nil {
		return held{}, gone(d.path, err)
	}
	if err := there.lockSelf(); err != nil {
		there.release(&held{})
		return held{}, err
	}
	return there, nil
}

// lockAgain locks the new directory, creating LOCK if permitted.
func (d *OS) lockAgain(there *held, accept func() error) error {
	info, err := there.root.Lstat(lockName)
	switch was := d.held.files[lockName]; {
	case err == nil && os.SameFile(info, was.info): // it is locked
		there.lock, there.files[lockName] = d.held.lock, was
	case err == nil:
		err = there.lockBy(os.O_RDWR)
	case errors.Is(err, fs.ErrNotExist):
		if err = accept(); err == nil {
			err = there.lockBy(os.O_CREATE | os.O_EXCL | os.O_RDWR)
		}
	}
	if err == nil && !there.signedBy(d.mark) { // now nobody else can change the directory
		err = accept()
	}
	if err == nil {
		there.signBy(d.mark)
	}
	return there.named(err)
}
