package main

import (
	"cellserver/internal/memory"
	"cellserver/internal/persist"
)

// degraded says in what ways a server that is ready does not do all that it should, each in one line; none while all
// is well. It is the one answer for /readyz and cellserver health. A degraded server stays ready: all of a fleet are
// degraded at once, by a flood of keys or a store that is gone, and what is left of the limits is worth more than none.
func (a *app) degraded() (ways []string) {
	disk, keys := diskDegraded(a.persistence()), memoryDegraded(&a.shortage, a.now())
	for _, way := range []string{disk, keys, a.remote.degraded()} {
		if way != "" {
			ways = append(ways, way)
		}
	}
	return ways
}

// diskDegraded leaves the cause to the log, as it may contain a path.
func diskDegraded(status func() persist.Status) string {
	if status == nil {
		return ""
	}
	switch st := status(); {
	case st.Fault == nil:
		return ""
	case st.Interval == 0:
		return "changes do not reach the disk, and calls that would change a key get MISCONF; the log says why"
	default:
		return "changes do not reach the disk, and would be forgotten by a restart; the log says why"
	}
}

func memoryDegraded(s *memory.Shortage, nowNs int64) string {
	switch evicted, refused := s.Recent(nowNs); {
	case evicted && refused:
		return "keys were evicted and new keys refused in the last minute; raise --maxmemory"
	case evicted:
		return "keys were evicted in the last minute, and have their full burst again; raise --maxmemory"
	case refused:
		return "new keys were refused in the last minute; raise --maxmemory"
	}
	return ""
}
