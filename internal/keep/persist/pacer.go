package persist

import (
	"sync/atomic"
	"time"
)

const (
	paceRecords = 64 // records are done between two looks at the clock
	yieldEvery  = 100 * time.Microsecond
	restEvery   = time.Millisecond
	// mostRest bounds a rest where the disk is slow.
	mostRest = 20 * time.Millisecond
)

// pacer lets others have the processor while much is gathered and written; nil does not.
type pacer struct {
	yield func()
	// hurry is nil for what only yields. What is not in a hurry rests for as long as it works.
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
