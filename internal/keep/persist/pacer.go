package persist

import (
	"sync/atomic"
	"time"
)

const (
	paceRecords = 64 // records between two clock readings
	yieldEvery  = 100 * time.Microsecond
	restEvery   = time.Millisecond
	// mostRest bounds a rest beside a slow disk.
	mostRest = 20 * time.Millisecond
)

// pacer yields the processor during long work; nil does not.
type pacer struct {
	yield func()
	// hurry is nil to only yield. Work without hurry rests as long as it works.
	hurry           *atomic.Bool
	yielded, rested time.Time
}

func newPacer(yield func(), hurry *atomic.Bool) *pacer {
	now := time.Now()
	return &pacer{yield, hurry, now, now}
}

func (p *pacer) pace() {
	if p == nil {
		return
	}
	now := time.Now()
	if now.Sub(p.yielded) < yieldEvery {
		return
	}
	p.yield()
	if worked := now.Sub(p.rested); p.hurry != nil && !p.hurry.Load() && worked >= restEvery {
		time.Sleep(min(worked, mostRest))
		p.rested = time.Now()
	}
	p.yielded = time.Now()
}
