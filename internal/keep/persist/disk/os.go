package disk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

const lockName = "LOCK"

// OS is a directory of the operating system, locked against other processes. It only writes to the directory
// that it has locked, whatever is at the path. It is safe for concurrent use.
type OS struct {
	path string
	mark string // written to LOCK to recognize the directory

	mu   sync.RWMutex // rank 90: guards all below
	held held
}

// held is an open, locked directory.
type held struct {
	root  *os.Root
	info  os.FileInfo
	self  *os.File // the directory, locked where possible: a removed LOCK protects nothing
	lock  *os.File // the file LOCK; nil in a directory that is only read
	files map[string]seen
}

// seen is a file's identity when it was created or found.
type seen struct {
	info    os.FileInfo
	written bool // complete
}

func (s seen) is(info os.FileInfo) bool {
	return os.SameFile(s.info, info) && (!s.written || s.info.Size() == info.Size())
}

// OpenOS creates the directory if needed and locks it until Close. The lock ends with the process.
func OpenOS(path string) (*OS, error) {
	if _, err := os.Stat(path); err != nil {
		if err := errors.Join(os.MkdirAll(path, 0o700), syncDir(filepath.Dir(path))); err != nil {
			return nil, err
		}
	}
	h, err := open(path)
	if err != nil {
		return nil, err
	}
	d := &OS{path: path, mark: rand.Text(), held: h}
	if err = d.held.lockBy(os.O_CREATE | os.O_RDWR); err == nil {
		d.held.signBy(d.mark)
		err = d.Check() // it was not replaced since it was opened
	}
	if err != nil {
		d.held.release(&held{})
		return nil, err
	}
	return d, nil
}

// open opens a directory, and locks it if the system can lock one.
func open(path string) (h held, err error) {
	if h.root, err = os.OpenRoot(path); err != nil {
		return held{}, err
	}
	if h.self, err = h.root.Open("."); err == nil {
		h.info, err = h.self.Stat()
	}
	if err == nil {
		if inUse, _ := tryLockDir(h.self); inUse {
			err = ErrInUse
		}
	}
	if err != nil {
		h.release(&held{})
		return held{}, err
	}
	h.files = map[string]seen{}
	return h, nil
}

// release closes everything that but does not share.
func (h *held) release(but *held) {
	for _, f := range []struct{ own, others *os.File }{{h.lock, but.lock}, {h.self, but.self}} {
		if f.own != nil && f.own != f.others {
			_ = f.own.Close()
		}
	}
	if h.root != but.root {
		_ = h.root.Close()
	}
}

func (h *held) lockBy(flags int) error {
	lock, err := h.root.OpenFile(lockName, flags, 0o600)
	if err != nil {
		return h.named(err)
	}
	inUse, err := tryLock(lock)
	if err == nil {
		err = h.see(lockName, lock, false)
	}
	switch {
	case inUse:
		err = ErrInUse
	case err != nil:
		err = fmt.Errorf("disk: lock %s: %w", lock.Name(), err)
	default:
		h.lock = lock
		return nil
	}
	_ = lock.Close()
	return err
}

// signBy writes a mark to LOCK. Without space for it, the directory is not recognized later.
func (h *held) signBy(mark string) {
	if h.lock.Truncate(0) == nil {
		_, _ = h.lock.WriteAt([]byte(mark), 0)
	}
}

func (h *held) signedBy(mark string) bool {
	b := make([]byte, len(mark)+1)
	n, _ := h.lock.ReadAt(b, 0) // the file's end is an error
	return string(b[:n]) == mark
}

func (h *held) see(name string, f *os.File, written bool) error {
	info, err := f.Stat()
	if err == nil {
		h.files[name] = seen{info, written}
	}
	return err
}

// Close unlocks the directory.
func (d *OS) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held.release(&held{})
	return nil
}

func (d *OS) Create(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.checkLocked(); err != nil {
		return nil, err
	}
	f, err := d.held.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, d.held.named(err)
	}
	if err := d.held.see(name, f, false); err != nil {
		_ = f.Close()
		return nil, err
	}
	return created{f, d, name}, nil
}

type created struct {
	*os.File
	dir  *OS
	name string
}

func (c created) Sync() error { return syncData(c.File) }

func (c created) Close() error {
	info, err := c.Stat()
	if err != nil {
		return errors.Join(err, c.File.Close())
	}
	d := c.dir
	d.mu.Lock()
	if was, ok := d.held.files[c.name]; ok && os.SameFile(was.info, info) {
		d.held.files[c.name] = seen{info, true}
	}
	d.mu.Unlock()
	return c.File.Close()
}

func (d *OS) Open(name string) (Reader, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.held.root.Open(name)
	if err != nil {
		return nil, d.held.named(err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	if _, ok := d.held.files[name]; !ok {
		d.held.files[name] = seen{info, true}
	}
	return sized{f, info.Size()}, nil
}

type sized struct {
	*os.File
	size int64
}

func (s sized) Size() int64 { return s.size }

func (d *OS) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.checkLocked(); err != nil {
		return err
	}
	info, err := d.held.root.Lstat(from)
	if err == nil {
		err = d.held.root.Rename(from, to)
	}
	if err != nil {
		return d.held.named(err)
	}
	was, known := d.held.files[from]
	delete(d.held.files, from)
	d.held.files[to] = seen{info, !known || was.written} // one that is still being written grows
	return nil
}

func (d *OS) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.checkLocked(); err != nil {
		return err
	}
	if err := d.held.root.Remove(name); err != nil {
		return d.held.named(err)
	}
	delete(d.held.files, name)
	return nil
}

func (d *OS) SyncFile(name string) error { return d.sync(name, syncData) }

func (d *OS) SyncDir() error { return d.sync(".", syncOpenDir) }

func (d *OS) sync(name string, do func(f *os.File) error) error {
	f, err := d.openFile(name)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

// openFile opens a file, or the directory by the name of a dot.
func (d *OS) openFile(name string) (*os.File, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	f, err := d.held.root.Open(name)
	return f, d.held.named(err)
}

func (d *OS) List() (names []string, err error) {
	f, err := d.openFile(".")
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != lockName {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// named adds the directory's path to an error.
func (h *held) named(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) && !filepath.IsAbs(of.Path) {
		of.Path = filepath.Join(h.root.Name(), of.Path)
	}
	return err
}

// OpenExisting is OpenOS for reading only: it creates nothing, as on a read-only medium.
func OpenExisting(path string) (*OS, error) {
	h, err := open(path)
	if err != nil {
		return nil, err
	}
	if err = h.lockBy(os.O_RDONLY); err != nil && !errors.Is(err, fs.ErrNotExist) { // a copy may have no LOCK
		h.release(&held{})
		return nil, err
	}
	return &OS{path: path, held: h}, nil
}

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
