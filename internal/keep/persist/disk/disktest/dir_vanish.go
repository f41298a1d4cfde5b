package disktest

import (
	"fmt"
	"maps"

	"cellserver/internal/keep/persist/disk"
)

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
