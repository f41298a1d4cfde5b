package storage

import (
	"errors"

	"cellserver/internal/app/settings"
	"cellserver/internal/keep/memory"
	"cellserver/internal/store"
)

// diskDegraded omits the cause, which may contain a path and is in the log.
func diskDegraded(status func() store.Durability) string {
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

var errDiskFault = errors.New("changes do not reach the disk; the log says why")

// diskReady is a part of /readyz. The cause may contain a path and is in the log.
func diskReady(o *settings.Options, status func() store.Durability) error {
	if o.UnreadyOnDiskFault && status != nil && status().Fault != nil {
		return errDiskFault
	}
	return nil
}
