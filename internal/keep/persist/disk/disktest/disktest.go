// Package disktest is a directory in memory that fails on demand, and shows what a crash at any moment would
// leave.
package disktest

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"cellserver/internal/keep/persist/disk"
)

type Op string

// Operations that may fail, with a possible crash before and after each.
const (
	Create  Op = "create"
	Write   Op = "write"
	Sync    Op = "sync"
	Rename  Op = "rename"
	Remove  Op = "remove"
	SyncDir Op = "sync of the directory"
)

// Dir implements disk.Dir.
type Dir struct {
	// Before, if set, is called with each operation and may return its error. A failed write has written a
	// part.
	Before func(op Op, name string) error

	mu      sync.Mutex
	names   map[string]*content // current
	durable map[string]*content // at the last sync of the directory
	changes []change            // since then
	known   map[string]*content // created or opened
	gone    bool                // after Vanish
	other   bool                // after Return, before Regain
}

// change is an atomic change of names: one added, one removed.
type change struct {
	name string
	to   *content
	gone string // empty for none
}

type content struct {
	bytes  []byte
	synced int // synced part
}

func New() *Dir {
	return &Dir{names: map[string]*content{}, durable: map[string]*content{}, known: map[string]*content{}}
}

// Crash returns what a crash leaves: a random prefix of each file's unsynced data, perhaps with zeros at its
// end, and the first few unsynced changes of names.
func (d *Dir) Crash(rng *rand.Rand) *Dir {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := maps.Clone(d.durable)
	for _, c := range d.changes[:rng.IntN(len(d.changes)+1)] {
		c.apply(left)
	}
	crashed := New()
	copies := map[*content]*content{}
	for name, c := range left {
		if copies[c] == nil {
			copies[c] = c.crash(rng)
		}
		crashed.names[name], crashed.durable[name] = copies[c], copies[c]
	}
	return crashed
}

func (c *content) crash(rng *rand.Rand) *content {
	n := c.synced + rng.IntN(len(c.bytes)-c.synced+1)
	left := bytes.Clone(c.bytes[:n])
	if n > c.synced && rng.IntN(3) == 0 { // as if the length had reached the disk and a block had not
		clear(left[n-rng.IntN(n-c.synced+1):])
	}
	return &content{left, n}
}

func (c change) apply(names map[string]*content) {
	if c.to != nil {
		names[c.name] = c.to
	}
	delete(names, c.gone)
}

func (d *Dir) before(op Op, name string) error {
	if d.Before == nil {
		return nil
	}
	return d.Before(op, name)
}

func (d *Dir) changeLocked(c change) {
	c.apply(d.names)
	c.apply(d.known)
	d.changes = append(d.changes, c)
}

func (d *Dir) Create(name string) (disk.File, error) {
	if err := d.before(Create, name); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.goneLocked(); err != nil {
		return nil, err
	}
	if d.names[name] != nil {
		return nil, fmt.Errorf("create %s: %w", name, fs.ErrExist)
	}
	c := &content{}
	d.changeLocked(change{name: name, to: c})
	return &file{d, name, c}, nil
}

func (d *Dir) Open(name string) (disk.Reader, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.names[name]
	if c == nil {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	if d.known[name] == nil {
		d.known[name] = c
	}
	return reader{bytes.NewReader(c.bytes)}, nil
}

func (d *Dir) Rename(from, to string) error { return d.move(Rename, from, to) }

func (d *Dir) Remove(name string) error { return d.move(Remove, name, "") }

// move gives a file another name, or none.
func (d *Dir) move(op Op, from, to string) error {
	if err := d.before(op, from); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.goneLocked(); err != nil {
		return err
	}
	c := d.names[from]
	if c == nil {
		return fmt.Errorf("%s %s: %w", op, from, fs.ErrNotExist)
	}
	if to == "" {
		c = nil
	}
	d.changeLocked(change{to, c, from})
	return nil
}

func (d *Dir) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.names)), nil
}

func (d *Dir) SyncFile(name string) error {
	if err := d.before(Sync, name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.names[name]
	if c == nil {
		return fmt.Errorf("sync %s: %w", name, fs.ErrNotExist)
	}
	c.synced = len(c.bytes)
	return nil
}

func (d *Dir) SyncDir() error {
	if err := d.before(SyncDir, ""); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.durable, d.changes = maps.Clone(d.names), nil
	return nil
}

// Contents returns a file's bytes for modification, as by a bad disk, or nil.
func (d *Dir) Contents(name string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.names[name]; c != nil {
		return c.bytes
	}
	return nil
}

func (d *Dir) SetContents(name string, b []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &content{b, len(b)}
	d.names[name], d.durable[name] = c, c
}

type file struct {
	dir  *Dir
	name string
	*content
}

func (f *file) Write(b []byte) (n int, err error) {
	if err = f.dir.before(Write, f.name); err != nil {
		b = b[:len(b)/2]
	}
	f.dir.mu.Lock()
	defer f.dir.mu.Unlock()
	f.bytes = append(f.bytes, b...)
	return len(b), err
}

// Sync implements disk.File. After a failure, written data may be lost despite a later success.
func (f *file) Sync() error {
	if err := f.dir.before(Sync, f.name); err != nil {
		return err
	}
	f.dir.mu.Lock()
	defer f.dir.mu.Unlock()
	f.synced = len(f.bytes)
	return nil
}

func (f *file) Close() error { return nil }

type reader struct{ *bytes.Reader }

func (reader) Close() error { return nil }

// Kill returns the state after the process's end: nothing is lost, unless a crash follows.
func (d *Dir) Kill() *Dir {
	d.mu.Lock()
	defer d.mu.Unlock()
	copies := map[*content]*content{}
	copyOf := func(c *content) *content {
		if c != nil && copies[c] == nil {
			copies[c] = &content{bytes.Clone(c.bytes), c.synced}
		}
		return copies[c]
	}
	killed := New()
	for name, c := range d.names {
		killed.names[name] = copyOf(c)
	}
	for name, c := range d.durable {
		killed.durable[name] = copyOf(c)
	}
	for _, c := range d.changes {
		killed.changes = append(killed.changes, change{c.name, copyOf(c.to), c.gone})
	}
	return killed
}

// Vanish removes the directory with all files, as another program would.
func (d *Dir) Vanish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names, d.durable, d.changes = map[string]*content{}, map[string]*content{}, nil
	d.gone, d.other = true, false
}

// Return creates an empty directory after Vanish, or one with another's files.
func (d *Dir) Return(of *Dir) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone, d.other = false, true
	if of != nil {
		d.names, d.durable, d.changes = of.names, of.durable, nil
	}
}

// Delete removes a file, as another program would.
func (d *Dir) Delete(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.names, name)
	d.durable, d.changes = maps.Clone(d.names), nil
}

func (d *Dir) goneLocked() error {
	if d.gone || d.other {
		return disk.ErrGone
	}
	return nil
}

func (d *Dir) Check(names ...string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range names {
		if was := d.known[name]; was != nil && d.names[name] != was {
			return fmt.Errorf("%w: %s", disk.ErrGone, name)
		}
	}
	return d.goneLocked()
}

func (d *Dir) Regain(accept func(there disk.Dir, isOther bool) error) (isOther bool, err error) {
	d.mu.Lock()
	gone, other := d.gone, d.other
	d.mu.Unlock()
	if gone {
		return false, disk.ErrGone
	}
	if !other {
		return false, nil
	}
	if err := accept(d, true); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.other, d.known = false, map[string]*content{}
	return true, nil
}
