package door

// Waiting returns how many requests wait for their body.
func (d *Door) Waiting() (n int) {
	d.waits.mu.Lock()
	defer d.waits.mu.Unlock()
	for _, l := range d.waits.hosts {
		n += l.Len()
	}
	return n
}
