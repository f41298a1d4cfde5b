package remote

import (
	"sync"
	"time"
)

// deadlines lists the waiting batches by deadline, with one timer for the first.
type deadlines struct {
	expire func(b *batch)

	mu          sync.Mutex // rank 60: guards all below
	first, last *batch
	timer       *time.Timer // nil until first used
	armed       bool
	closed      bool
}

// add appends a batch, whose deadline is the last. It returns false if the store is closed.
func (d *deadlines) add(b *batch, timeout time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	b.deadline = time.Now().Add(timeout)
	b.before, b.behind = d.last, nil
	if d.last == nil {
		d.first = b
	} else {
		d.last.behind = b
	}
	d.last = b
	if !d.armed {
		d.armLocked(timeout)
	}
	return true
}

func (d *deadlines) armLocked(in time.Duration) {
	d.armed = true
	if d.timer == nil {
		d.timer = time.AfterFunc(in, d.due)
		return
	}
	d.timer.Reset(in)
}

// remove removes a batch, if it is still there.
func (d *deadlines) remove(b *batch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeLocked(b)
}

func (d *deadlines) removeLocked(b *batch) {
	if d.first != b && b.before == nil {
		return
	}
	if b.before == nil {
		d.first = b.behind
	} else {
		b.before.behind = b.behind
	}
	if b.behind == nil {
		d.last = b.before
	} else {
		b.behind.before = b.before
	}
	b.before, b.behind = nil, nil
}

// due expires batches after their deadlines.
func (d *deadlines) due() {
	for {
		b := d.nextDue()
		if b == nil {
			return
		}
		d.expire(b)
	}
}

// nextDue removes and returns a batch after its deadline, or arms the timer for the first one.
func (d *deadlines) nextDue() *batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed = false
	if d.first == nil {
		return nil
	}
	if in := time.Until(d.first.deadline); in > 0 && !d.closed {
		d.armLocked(in)
		return nil
	}
	b := d.first
	d.removeLocked(b)
	return b
}

// close expires all batches and accepts no more.
func (d *deadlines) close() {
	d.mu.Lock()
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
	d.mu.Unlock()
	d.due()
}
