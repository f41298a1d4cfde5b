package disktest

import "bytes"

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
