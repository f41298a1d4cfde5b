package cellserver

import (
	"errors"
	"math"
	"sync"
	"time"
)

// Funnel is a leaky bucket of MaxBurst + 1 units, of which Count leak every Period, as in CL.THROTTLE.
type Funnel struct {
	MaxBurst, Count int64
	Period          time.Duration
}

var errFunnel = errors.New("cellserver: a Funnel needs MaxBurst >= 0, Count > 0, Period > 0, none too large")

func (f Funnel) check() error {
	const century = 100 * 365 * 24 * time.Hour
	if f.MaxBurst < 0 || f.MaxBurst == math.MaxInt64 || f.Count <= 0 || f.Period <= 0 ||
		f.capacity() > int64(century/f.interval()) {
		return errFunnel
	}
	return nil
}

func (f Funnel) capacity() int64 { return f.MaxBurst + 1 }

// interval returns the time in which one unit leaks.
func (f Funnel) interval() time.Duration { return max(1, f.Period/time.Duration(f.Count)) }

// maxLocalKeys bounds the memory of a local, to some megabytes with keys of maxKeyBytes.
const maxLocalKeys = 10_000

// local has funnels of this process. Its zero value is empty.
type local struct {
	mu  sync.Mutex           // guards tat
	tat map[string]time.Time // when the funnel will be empty
}

// take requests n units of a key, by the generic cell rate algorithm.
func (l *local) take(now time.Time, key string, f Funnel, n int64) Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takeLocked(now, key, f, n)
}

// takeAtMost requests as many of n units as are left, or one if there are none.
func (l *local) takeAtMost(now time.Time, key string, f Funnel, n int64) Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	units := max(1, min(n, l.takeLocked(now, key, f, 0).Remaining))
	r := l.takeLocked(now, key, f, units)
	if r.Allowed {
		r.Taken = units
	}
	return r
}

func (l *local) takeLocked(now time.Time, key string, f Funnel, n int64) Result {
	interval, capacity := f.interval(), f.capacity()
	r := Result{Limit: capacity, RetryAfter: -1}
	tat, held := l.tat[key]
	if !held || tat.Before(now) {
		tat = now
	}
	free := time.Duration(capacity)*interval - tat.Sub(now)
	switch {
	case n > capacity:
	case time.Duration(n)*interval > free:
		r.RetryAfter = time.Duration(n)*interval - free
	default:
		r.Allowed = true
		tat, free = tat.Add(time.Duration(n)*interval), free-time.Duration(n)*interval
		l.putLocked(now, key, tat, held)
	}
	// Another limit of the same key may have filled it beyond this one.
	r.Remaining, r.ResetAfter = max(0, int64(free/interval)), tat.Sub(now)
	return r
}

func (l *local) putLocked(now time.Time, key string, tat time.Time, held bool) {
	if l.tat == nil {
		l.tat = map[string]time.Time{}
	}
	if !tat.After(now) {
		return
	}
	if !held && len(l.tat) >= maxLocalKeys {
		l.evictLocked()
	}
	l.tat[key] = tat
}

// evictLocked makes room by the key of a few that would be empty first, as the server does.
func (l *local) evictLocked() {
	const few = 8
	seen, first, at := 0, "", time.Time{}
	for key, tat := range l.tat {
		if seen == 0 || tat.Before(at) {
			first, at = key, tat
		}
		if seen++; seen == few {
			break
		}
	}
	delete(l.tat, first)
}
